"""The straight line of stages, with times: from a program and rules to plans, kernels, outputs and a verdict.

Pure functions from one stage's form to the next; the command line and tests call them and print what they return.
The unfused program goes through the very same stages with an empty rule set. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.view import SaturationReport
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lower.lowering import lower
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.planner import Plan, plan_program
from bbrewrite.plan.schedule import Machine
from bbrewrite.plan.target import host_target
from bbrewrite.rules.rules import RuleSet
from bbrewrite.timing import median_time, timed
from bbrewrite.verify.compare import Comparison, compare_outputs

type Array = npt.NDArray[Any]
type Program = ArrayProgram | BlockProgram


@dataclass(frozen=True)
class Movement:
    """What a planned program moves and computes: counts, bytes and operations for the extents at hand.

    `local_bytes` is the local memory of the kernel that needs most, on one processor.
    """

    kernels: int
    buffers: int
    global_bytes: int
    flops: int
    local_bytes: int


@dataclass(frozen=True)
class FusedProgram:
    """A program planned without and with rules. Times are those of the form with rules."""

    blocks: BlockProgram
    table: OperatorTable
    unfused: Plan
    fused: Plan
    saturation: SaturationReport
    saturate_ms: float
    extract_ms: float


def fuse(
    blocks: BlockProgram, rules: RuleSet, extents: Mapping[str, int], threads: int, fast_math: bool
) -> FusedProgram:
    """Plans a lowered program with and without the rules. Raises InputError where a rule proves unsound."""
    machine = Machine(host_target(), threads, extents)
    inlined = inline(blocks)

    def planned(rules: RuleSet) -> tuple[Plan, SaturationReport, float, float]:
        graph, saturate_ms = timed(
            lambda: saturate(
                inlined.roots, inlined.indices, blocks.tensors, blocks.assumptions, rules, fast_math=fast_math
            )
        )
        plan, extract_ms = timed(lambda: plan_program(graph, blocks, inlined.indices, rules.table, machine))
        return plan, graph.report, saturate_ms, extract_ms

    unfused, *_ = planned(replace(rules, rules=()))
    fused, report, saturate_ms, extract_ms = planned(rules)
    return FusedProgram(blocks, rules.table, unfused, fused, report, saturate_ms, extract_ms)


def movement(plan: Plan) -> Movement:
    """A plan's totals, as reports show them."""
    return Movement(
        len(plan.kernels.kernels),
        len(plan.kernels.buffers),
        round(plan.global_bytes),
        round(plan.flops),
        round(plan.local_bytes),
    )
