"""`fuse --html`: puts a fusion, its pictures and its derivation on one page."""

from __future__ import annotations

from pathlib import Path

from bbrewrite.cli.derivations import CheckedDerivations, CheckedSteps, heading, rule_place, verdict_text
from bbrewrite.cli.report import movement_rows
from bbrewrite.core.printing import print_shared_program
from bbrewrite.explain.derivation import Derivation
from bbrewrite.fusion import Fusion
from bbrewrite.picture.build import picture_of
from bbrewrite.picture.page import DerivationStep, DerivationText, Form, Page, render
from bbrewrite.picture.svg import draw
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.writing import told_of_faults


def write_html_report(path: Path, fusion: Fusion, derivations: CheckedDerivations) -> None:
    """Writes the page. Raises InputError where the file cannot be written."""
    page = html_report(fusion, derivations)
    with told_of_faults(path, "--html"):
        path.write_text(page, encoding="utf-8")


def html_report(fusion: Fusion, derivations: CheckedDerivations) -> str:
    """The page as an HTML document."""
    sizes = ", ".join(f"{name} = {extent}" for name, extent in fusion.sizes.items())
    threads = fusion.request.threads
    return render(
        Page(
            fusion.request.program.name,
            f"{sizes}; {threads} thread{'s' if threads != 1 else ''}",
            movement_rows(fusion.before, fusion.after),
            (_form("Unfused", fusion.unfused, fusion), _form("Fused", fusion.fused, fusion)),
            [_derivation(derivation, checked, derivations) for derivation, checked in derivations.all],
            fusion.notes,
        )
    )


def _form(title: str, plan: Plan, fusion: Fusion) -> Form:
    request = fusion.request
    table = request.rules.table
    picture = picture_of(plan, request.extents, request.threads, table)
    return Form(
        title, draw(picture), print_shared_program(plan.fused, table), print_kernel_program(plan.kernels, table)
    )


def _derivation(derivation: Derivation, checked: CheckedSteps, derivations: CheckedDerivations) -> DerivationText:
    said = heading(derivation, checked)
    steps = [
        DerivationStep(
            rule=step.rule.name,
            place=rule_place(step.rule),
            meaning=step.rule.meaning,
            where="in " + step.definition + (f", inside {', '.join(step.loops)}" if step.loops else ""),
            before=derivations.abbreviator.text(step.before),
            after=derivations.abbreviator.text(step.after),
            verdict=verdict_text(verdict),
            is_wrong=verdict.differs,
        )
        for step, verdict in checked
    ]
    return DerivationText(said[:1].upper() + said[1:], steps)
