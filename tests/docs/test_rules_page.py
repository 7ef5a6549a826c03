"""The code blocks of docs/rules.md: good ones are in order and sound, bad ones give the message shown.

A bad rule that is only warned of for its scope is refused by fuzzing, as the page says.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bbrewrite.cli.main import cli
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.fuzz.campaign import Report, run_tasks, tasks_of
from bbrewrite.fuzz.soundness import Budget
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.diagnostics import InputError, render
from bbrewrite.plan.kernel import Loop
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.rules.format import format_rules
from bbrewrite.rules.load import parse_rules
from bbrewrite.verify.reference import evaluate
from tests.array_programs import draw_inputs
from tests.plan.pipelines import plan_text, rules_from, shipped_texts

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/rules.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"^```([a-z ]*)\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_GOOD = [text for kind, text in _BLOCKS if kind == "rules good"]
_BAD = [(text, *_BLOCKS[number + 1]) for number, (kind, text) in enumerate(_BLOCKS) if kind == "rules bad"]
_CASCADES = [(text, _BLOCKS[number - 1][1]) for number, (kind, text) in enumerate(_BLOCKS) if kind == "program cascade"]


def _source(text: str) -> Source:
    return Source("mine.rules", text)


def test_the_page_has_good_and_bad_blocks_alone() -> None:
    assert len(_GOOD) >= 5
    assert len(_BAD) >= 5
    kinds = {"rules good", "rules bad", "message", "program", "program cascade", "answer"}
    assert {kind for kind, _ in _BLOCKS} == kinds


@pytest.mark.parametrize("text", _GOOD)
def test_good_block(text: str) -> None:
    ruleset = parse_rules([_source(text)])
    assert not ruleset.warnings, render(ruleset.warnings)
    assert any(rule.tests for rule in ruleset.rules)
    failed = failed_examples(ruleset)
    assert not failed, render(failed)
    assert format_rules(_source(text)) == text


@pytest.mark.parametrize("text", _GOOD)
def test_good_block_is_sound(text: str) -> None:
    reports = _fuzzed(text)
    assert reports
    assert {report.name: report.verdict for report in reports if report.verdict != "sound"} == {}


@pytest.mark.parametrize("text", [text for text, _, message in _BAD if "warning[scope]" in message])
def test_rule_that_forgets_its_scope_is_refused(text: str) -> None:
    (report,) = _fuzzed(text)
    assert report.verdict == "unsound"
    assert report.lines


def test_answer_of_why_not(tmp_path: Path) -> None:
    texts = dict(_BLOCKS)
    program = tmp_path / "scaled_sum.bb"
    program.write_text(texts["program"], encoding="utf-8")
    result = CliRunner().invoke(cli, ["why-not", "hoist_scale_out_of_sum", str(_ROOT / "rules"), str(program)])
    assert re.sub(r"\(.*/(rules/\w+\.rules):\d+\)", r"(\1)", result.stdout) == texts["answer"]


def _fuzzed(text: str) -> list[Report]:
    ruleset = parse_rules([_source(text)])
    # As many instances on a busy machine as on another.
    budget = Budget(seconds=60, instances=100)
    tasks = tasks_of(ruleset, list(builtin_table().monoids), budget, 100, "")
    return list(run_tasks([_source(text)], ruleset, tasks, 1))


@pytest.mark.parametrize(("text", "kind", "message"), _BAD)
def test_bad_block(text: str, kind: str, message: str) -> None:
    assert kind == "message"
    try:
        found = parse_rules([_source(text)]).warnings
    except InputError as error:
        found = error.diagnostics
    assert render(found) + "\n" == message


@pytest.mark.parametrize(("program", "rules"), _CASCADES)
def test_program_is_one_kernel_with_the_rules_above_it(program: str, rules: str) -> None:
    texts = shipped_texts()
    ruleset = rules_from(texts["fusion.rules"], texts["linear.rules"], rules)
    planned = plan_text(program, ruleset)
    (kernel,) = planned.plan.kernels.kernels
    assert [s.index for s in kernel.body if isinstance(s, Loop)] == ["n"]
    extents = {**planned.extents, "m": 100, "n": 300}
    arrays = draw_inputs(planned.array, extents)
    found = run_kernels(planned.plan.kernels, arrays, extents, planned.table)
    expected = evaluate(planned.array, arrays, extents, planned.table)
    np.testing.assert_allclose(found["O"], expected["O"], rtol=0, atol=1e-5)
    without = plan_text(program, rules_from(texts["fusion.rules"], texts["linear.rules"]))
    assert "sum_of_powers" not in print_kernel_program(without.plan.kernels, without.table)
