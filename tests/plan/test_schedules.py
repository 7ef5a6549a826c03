"""Kernels that are equal up to names are scheduled once, and what is followed is what would be found."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.spans import Source
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.nests.nest import Nest, NestBuilder
from bbrewrite.plan.planner import Planner
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.scheduling.schedule import ScheduleSearch
from bbrewrite.plan.scheduling.schedules import KnownSchedules, Schedules
from bbrewrite.plan.term_costs import LARGEST_BLOCK
from tests.plan.pipelines import TARGET, shipped_rules

BODIES = {
    "product": "output Y[m, n] = sum[k](A[m, k] * B[k, n])\n",
    "attention": "S[m, k] = sum[n](D[m, n] * C[k, n])\nP[m, k] = softmax[k](where(k <= m, S[m, k], -inf))\n"
    "output Y[m, n] = sum[k](P[m, k] * B[k, n])\n",
    "statistics": "output Y[m, k] = layer_norm[k](A[m, k])\n",
    "few rows": "output Y[q, n] = sum[k](F[q, k] * B[k, n])\n",
}
HEADER = "program p\nindex m = 300, n = 96, k = 300, q = 2\ninput A[m, k], B[k, n], C[k, n], D[m, n], F[q, k] : f32\n"
WORDS = ["one", "two", "three", "four", "few", "result", "scores", "weights"]
NAMES = dict(zip("ABCDFYSPmnkq", [*WORDS, *"ijlr"], strict=True))


def _plan(text: str, known: KnownSchedules | None) -> Plan:
    rules = shipped_rules()
    array = parse_program(Source("p", text), rules.table)
    assert isinstance(array, ArrayProgram)
    block = lower(array, rules.table)
    inlined = inline(block)
    graph = saturate(inlined.roots, inlined.indices, block.tensors, block.assumptions, rules)
    extents = {index.name: index.extent or 1 for index in inlined.indices if index.same_as is None}
    machine = Machine.running(block, TARGET, 2, extents)
    return Planner(graph, block, inlined.roots, Schedules(inlined.indices, rules.table, machine, known)).chosen()


def _renamed(text: str) -> str:
    return re.sub(r"\b[A-Za-z]\b", lambda name: NAMES.get(name.group(), name.group()), text)


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_under_other_names_follows_what_was_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + BODIES[name]
    known = KnownSchedules()
    first = _plan(text, known)
    anew = _plan(_renamed(text), None)
    monkeypatch.setattr(ScheduleSearch, "run", lambda _: pytest.fail("a kernel was scheduled again"))
    followed = _plan(_renamed(text), known)
    assert followed.seconds == first.seconds == anew.seconds
    assert followed.kernels == anew.kernels
    assert followed.schedules == anew.schedules


def test_other_extents_are_scheduled_anew() -> None:
    text = HEADER + BODIES["product"]
    known = KnownSchedules()
    _plan(text, known)
    before = len(known.by_form)
    larger = _plan(text.replace("m = 300", "m = 900"), known)
    assert len(known.by_form) > before
    assert larger == _plan(text.replace("m = 300", "m = 900"), None)


@pytest.mark.parametrize("name", BODIES)
def test_nests_are_built_once_for_all_extents(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found with those that other extents left is what would be found without."""
    text = HEADER.replace("k = 300", "k = 256") + BODIES[name]
    known, larger = KnownSchedules(), text.replace("m = 300", "m = 1024").replace("n = 96", "n = 80")
    built: list[str] = []

    def build(builder: NestBuilder, original: Callable[[NestBuilder], Nest] = NestBuilder.build) -> Nest:
        built.append("")
        return original(builder)

    monkeypatch.setattr(NestBuilder, "build", build)
    _plan(text, known)
    built.clear()
    found, with_known = _plan(larger, known), len(built)
    built.clear()
    assert found == _plan(larger, None)
    assert 2 * with_known < len(built)


@pytest.mark.parametrize("rows", [1, 2])
def test_products_of_a_single_row_read_long_runs_of_memory(rows: int) -> None:
    """They stream through their other operand, so blocks are as wide as processors can share them out."""
    text = f"program p\nindex m = {rows}, k = 2048, n = 8192\ninput A[m, k] : f32\nweight B[k, n] : f32\n"
    (kernel,) = _plan(text + "output Y[m, n] = sum[k](A[m, k] * B[k, n])\n", None).kernels.kernels
    assert ((kernel.indices["n"].block or 0) > LARGEST_BLOCK) == (rows == 1)
