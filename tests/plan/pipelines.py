"""The stages from text to a plan in one call, for tests of planning and of what comes after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.host import shipped_host_file, with_caches, with_vectors
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.planner import Planner
from bbrewrite.plan.plans import Plan
from bbrewrite.plan.repeated_loads import repeated_load_notes
from bbrewrite.plan.scheduling.schedules import Schedules
from bbrewrite.plan.target import Target, load_target
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules, parse_rules
from bbrewrite.rules.rules import RuleSet

TARGET = load_target(shipped_host_file())
# A processor with vectors of eight floats and smaller caches.
NARROW = with_vectors(with_caches(TARGET, {"L2": 2**19, "L3": 2**25}), {"sse2", "avx", "avx2"})
NO_RULES = parse_rules([])


@cache
def shipped_rules() -> RuleSet:
    """The rules that come with the package."""
    return load_rules(resource_directory("rules"))


def rules_from(*texts: str) -> RuleSet:
    """Rules from texts."""
    return parse_rules([Source(f"rules{number}", text) for number, text in enumerate(texts)])


def shipped_texts() -> dict[str, str]:
    """The text of each shipped rule file."""
    return {path.name: path.read_text() for path in sorted(Path(resource_directory("rules")).glob("*.rules"))}


@dataclass(frozen=True)
class Planned:
    """A program with everything made on the way to its plan."""

    array: ArrayProgram
    block: BlockProgram
    graph: FrozenGraph
    plan: Plan
    table: OperatorTable
    extents: Mapping[str, int]
    threads: int

    @property
    def repeated(self) -> tuple[str, ...]:
        """What is said of what the plan loads several times."""
        return repeated_load_notes(self.plan, self.extents, self.threads, self.table)


def plan_text(
    text: str,
    rules: RuleSet,
    threads: int = 2,
    fast_math: bool = False,
    block: int | None = None,
    target: Target = TARGET,
    **sizes: int,
) -> Planned:
    """Plans a program; `sizes` replace extents of root indices, `block` fixes the size of every block."""
    array = parse_program(Source("test", text), rules.table)
    assert isinstance(array, ArrayProgram)
    block_program = lower(array, rules.table)
    if block is not None:
        fixed = [replace(i, block=block, block_is_fixed=True) if i.block else i for i in block_program.indices]
        block_program = replace(block_program, indices=IndexTable.of(fixed))
    inlined = inline(block_program)
    graph = saturate(
        inlined.roots,
        inlined.indices,
        block_program.tensors,
        block_program.assumptions,
        rules,
        siblings=sibling_pairs(block_program),
        fast_math=fast_math,
    )
    roots = [index for index in inlined.indices if index.same_as is None]
    extents = {index.name: sizes.get(index.name, 1 if index.extent is None else index.extent) for index in roots}
    machine = Machine.running(block_program, target, threads, extents)
    schedules = Schedules(inlined.indices, rules.table, machine)
    plan = Planner(graph, block_program, inlined.roots, schedules).chosen()
    return Planned(array, block_program, graph, plan, rules.table, extents, threads)
