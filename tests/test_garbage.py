"""Garbage is looked for rarely while programs are read and planned, as before afterwards; planning makes hardly any."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

import bbrewrite
from bbrewrite.cli.exit_codes import INPUT_AT_FAULT
from bbrewrite.cli.main import cli
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import rewrite_bottom_up, walk
from bbrewrite.garbage import OBJECTS, rare_collections
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.plan.nests.naming import name_values, named_operands
from bbrewrite.plan.partition import KernelOutput, KernelTerm
from bbrewrite.rules.rules import RuleSet
from tests.cli.conftest import ROOT
from tests.programs import apply, attention, read, total

VALUE = apply("exp", apply("row_shift", read("A", "m", "n"), total("n", apply("row_sum", read("A", "m", "n")))))


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("own", [(700, 10, 10), (0, 10, 10), (10 * OBJECTS, 5, 5)])
def test_the_users_threshold_comes_back(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    seen: list[int] = []
    with pytest.raises(ZeroDivisionError), rare_collections():
        _fail_after_another(seen)
    assert seen == [own[0] and max(own[0], OBJECTS)] * 2
    assert gc.get_threshold() == own


def _fail_after_another(seen: list[int]) -> None:
    with rare_collections():
        seen.append(gc.get_threshold()[0])
    seen.append(gc.get_threshold()[0])
    raise ZeroDivisionError


@pytest.mark.parametrize("module", ["bbrewrite.cli.asking", "bbrewrite.api.stages"], ids=["command", "compile"])
def test_rules_are_read_within(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.set_threshold(700)
    seen: list[int] = []

    def reading(_: object) -> RuleSet:
        seen.append(gc.get_threshold()[0])
        raise InputError([Diagnostic("seen", "enough")])

    program, rules = ROOT / "examples/attention.bb", ROOT / "rules"
    if module == "bbrewrite.cli.asking":
        monkeypatch.setattr(f"{module}.load_rules", reading)
        assert CliRunner().invoke(cli, ["fuse", str(rules), str(program)]).exit_code == INPUT_AT_FAULT
    else:
        monkeypatch.setattr(f"{module}.known_rules", reading)
        with pytest.raises(InputError):
            bbrewrite.compile(program, rules=rules, target="numpy")
    assert seen == [OBJECTS]


@pytest.mark.parametrize(
    "work",
    [
        lambda: list(walk(VALUE)),
        lambda: rewrite_bottom_up(VALUE, lambda term: term),
        lambda: named_operands([VALUE], name_values(_kernel(), frozenset(), builtin_table())),
    ],
    ids=["walk", "rewrite", "name"],
)
def test_what_is_done_for_every_term_leaves_no_cycles(work: Callable[[], object]) -> None:
    work()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            work()
        assert gc.collect() == 0
    finally:
        gc.enable()


def _kernel() -> KernelTerm:
    return KernelTerm("O", (KernelOutput(attention().outputs[0], VALUE),))
