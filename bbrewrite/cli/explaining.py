"""What people see of derivations, of rules that did not fire, and of the tables of rules and plans."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bbrewrite.cli.asking import progress, read_request
from bbrewrite.cli.candidates import print_candidate_names
from bbrewrite.cli.derivations import CheckedDerivations, heading, rule_place, verdict_text
from bbrewrite.explain.checking import Verdict
from bbrewrite.explain.derivation import Step
from bbrewrite.explain.statistics import RuleStatistics, rule_statistics
from bbrewrite.explain.why_not import Answer, Failure, Investigation, find_rule, why_not
from bbrewrite.fusion import Fusion, Snapshot, candidate_movements
from bbrewrite.lang.diagnostics import counted
from bbrewrite.resources import resource_directory

_MOST_PLACES = 5
_WIDTH = 100


def explain_fusion(fusion: Fusion, parts: Sequence[str], as_json: Mapping[str, Any] | None) -> bool:
    """Prints the asked parts: "explain", "stats", "snapshots". Whether every step of the derivations is right.

    They are printed as one JSON object with what `as_json` holds already, where it is given.
    """
    found: dict[str, Any] = dict(as_json or {})
    right = True
    if "explain" in parts:
        found_derivations: list[dict[str, Any]] = []
        for number, part in enumerate(fusion.classes, 1):
            with progress() as say:
                derivations = CheckedDerivations(part, say)
            printer = _Printer(derivations)
            right = right and derivations.is_right
            if as_json is not None:
                found_derivations += printer.derivations_json()
                continue
            if fusion.cover:
                print_candidate_names(fusion, number)
            printer.print_derivations()
            _print_idle_rules(part)
        if as_json is not None:
            found["derivations"] = found_derivations
            found["ok"] = right
    request = fusion.request
    if "stats" in parts:
        statistics = rule_statistics(request.blocks, request.rules, request.fast_math)
        if as_json is not None:
            found["rules"] = [_statistics_json(item) for item in statistics]
        else:
            _print_statistics(statistics)
    if "snapshots" in parts:
        rows = candidate_movements(fusion)
        if as_json is not None:
            found["snapshots"] = [asdict(row) for row in rows]
        else:
            _print_snapshots(rows)
    if as_json is not None:
        click.echo(json.dumps(found))
    return right


def why_not_command(name: str, paths: tuple[Path, ...], rules: Path | None, **choices: Any) -> None:
    """Prints why a rule fired or not. `paths` are the program, or rules and the program."""
    if len(paths) == 2 and rules is None:
        rules, program = paths
    elif len(paths) == 1:
        (program,) = paths
    else:
        raise click.UsageError("give the rule's name and one program")
    request, _ = read_request(rules or resource_directory("rules"), program, **choices)
    rule = find_rule(name, request.rules)
    with progress() as step:
        step("saturating")
        answer = why_not(request.blocks, request.rules, rule, request.fast_math)
    _print_answer(answer)


class _Printer:
    """Prints derivations whose steps were checked."""

    def __init__(self, derivations: CheckedDerivations) -> None:
        self._derivations = derivations

    def print_derivations(self) -> None:
        number = 0
        for derivation, checked in self._derivations.all:
            click.echo(f"\n{heading(derivation, checked)}")
            for step, verdict in checked:
                number += 1
                self._print_step(number, step, verdict)
        wrong = self._derivations.wrong
        if wrong:
            names = ", ".join(dict.fromkeys(step.rule.name for step in wrong))
            click.echo(f"\nWRONG: {counted(len(wrong), 'step')} of these do not hold; the rules at fault: {names}")

    def _print_step(self, number: int, step: Step, verdict: Verdict) -> None:
        rule = step.rule
        backwards = "" if step.forward else ", from right to left"
        click.echo(f"\n{number:3}  {rule.name}  ({rule_place(rule)}){backwards}")
        if rule.meaning:
            click.echo(f"     {rule.meaning}")
        click.echo(f"     in {step.definition}" + (f", inside {', '.join(step.loops)}" if step.loops else ""))
        click.echo(f"       {self._derivations.abbreviator.text(step.before)}")
        click.echo(f"    => {self._derivations.abbreviator.text(step.after)}")
        click.echo(f"     {verdict_text(verdict)}")

    def derivations_json(self) -> list[dict[str, Any]]:
        number = 0
        found: list[dict[str, Any]] = []
        for derivation, checked in self._derivations.all:
            steps: list[dict[str, Any]] = []
            for step, verdict in checked:
                number += 1
                steps.append(
                    {
                        "number": number,
                        "rule": step.rule.name,
                        "place": rule_place(step.rule),
                        "meaning": step.rule.meaning,
                        "forward": step.forward,
                        "definition": step.definition,
                        "inside": list(step.loops),
                        "before": self._derivations.abbreviator.full(step.before),
                        "after": self._derivations.abbreviator.full(step.after),
                        "checked": None if not verdict.compared else verdict.agrees,
                    }
                )
            found.append({"output": derivation.output, "complete": derivation.complete, "steps": steps})
        return found


def _print_idle_rules(fusion: Fusion) -> None:
    """Rules that did not fire: those that only a condition kept from it each with its reason, the others by name."""
    request = fusion.request
    assert fusion.graph is not None, "a program in parts is explained part by part"
    investigation = Investigation(request.blocks, fusion.graph, request.rules, request.fast_math)
    idle = [
        investigation.answer(rule)
        for rule in request.rules.enabled(request.fast_math)
        if not fusion.saturation.rules_applied.get(rule.name)
    ]
    kept = [answer for answer in idle if answer.by_condition]
    if kept:
        click.echo("\nrules that only a condition kept from firing:")
    for answer in kept:
        click.echo(f"  {answer.rule.name}  ({rule_place(answer.rule)})")
        _print_failure(answer.failures[0], "    ")
    rest = [answer.rule.name for answer in idle if not answer.by_condition]
    if rest:
        text = f"rules that match nothing in this program: {', '.join(rest)}"
        click.echo("\n" + textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False))


def _print_answer(answer: Answer) -> None:
    rule = answer.rule
    click.echo(f"{rule.name}  ({rule_place(rule)})" + (f"\n{rule.meaning}" if rule.meaning else ""))
    if answer.off:
        click.echo(f'it is off: @fast_math("{rule.fast_math}"); --fast-math turns it on')
    if answer.hits:
        verb = "with it, it would fire" if answer.off else "it fired"
        click.echo(f"{verb}: {counted(answer.hits, 'match', 'matches')}")
    elif answer.missing:
        names = ", ".join(f"`{name}`" for name in answer.missing)
        click.echo(f"it matches nothing in the whole program: there is no {names} in it, nor do rules make one")
    else:
        click.echo("with it, it would not fire either" if answer.off else "it did not fire")
    for place in answer.places[:_MOST_PLACES]:
        terms = " and ".join(f"`{term}`" for term in place.terms)
        click.echo(f"  in {place.definition or 'the program'}: {terms}")
    if len(answer.places) > _MOST_PLACES:
        click.echo(f"  and {len(answer.places) - _MOST_PLACES} more")
    for note in answer.notes:
        click.echo(note)
    if answer.failures:
        click.echo(_failures_heading(answer))
    for failure in answer.failures:
        _print_failure(failure, "  ")


def _failures_heading(answer: Answer) -> str:
    if not answer.by_condition:
        return "nearest match:"
    if answer.hits:
        return "elsewhere its pattern fits and its conditions do not:"
    return "its pattern fits, its conditions do not:"


def _print_failure(failure: Failure, margin: str) -> None:
    terms = " and ".join(f"`{term}`" for term in failure.place.terms)
    click.echo(f"{margin}in {failure.place.definition or 'the program'}" + (f": {terms}" if terms else ""))
    for premise in failure.premises:
        click.echo(f"{margin}  {premise}")
    for hint in failure.hints:
        click.echo(f"{margin}  hint: {hint}")


def _statistics_json(item: RuleStatistics) -> dict[str, Any]:
    return {
        "rule": item.rule.name,
        "tries": item.tries,
        "hits": item.hits,
        "ms": round(item.ms, 3),
        "new_nodes": item.new_nodes,
    }


def _print_statistics(statistics: Sequence[RuleStatistics]) -> None:
    hitting = sorted((item for item in statistics if item.hits), key=lambda item: (-item.hits, item.rule.name))
    table = [(i.rule.name, str(i.tries), str(i.hits), f"{i.ms:.3f}", str(i.new_nodes)) for i in hitting]
    others = [item for item in statistics if not item.hits]
    if others:
        tries, ms = sum(item.tries for item in others), sum(item.ms for item in others)
        table.append((f"{counted(len(others), 'other')}", str(tries), "0", f"{ms:.3f}", "0"))
    click.echo("\nrules (tries are rounds in which a rule was looked for, each rule run by itself):")
    _print_table(("rule", "tries", "hits", "ms", "new nodes"), table)


def _print_snapshots(snapshots: Sequence[Snapshot]) -> None:
    rows = [
        (
            "chosen" if row.chosen else "",
            str(row.movement.kernels),
            str(row.movement.buffers),
            f"{row.movement.global_bytes:,}",
            f"{row.movement.local_bytes:,}",
            f"{row.movement.flops:,}",
            f"{row.seconds * 1000:.3f}",
        )
        for row in snapshots
    ]
    click.echo("\nplans that no other beats in all columns; of those nearly as fast as the fastest,")
    click.echo("the one with fewest buffers is chosen:")
    _print_table(("", "kernels", "buffers", "global bytes", "local bytes", "operations", "estimated ms"), rows)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        first, *others = (
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  " + "  ".join([first, *others]).rstrip())
