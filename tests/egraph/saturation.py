"""Small programs and rules to saturate: what tests of the e-graph share."""

from __future__ import annotations

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Assumption, BlockProgram, Role
from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Term
from bbrewrite.egraph.engine import Limits
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules, parse_rules
from bbrewrite.rules.rules import RuleSet
from tests.programs import define, indices, program, read, tensor

SHIPPED = load_rules(resource_directory("rules"))


def rules(text: str) -> RuleSet:
    return parse_rules([Source("test.rules", text)])


def run(
    source: BlockProgram, ruleset: RuleSet = SHIPPED, limits: Limits | None = None, fast_math: bool = False
) -> FrozenGraph:
    inlined = inline(source)
    return saturate(
        inlined.roots,
        inlined.indices,
        source.tensors,
        source.assumptions,
        ruleset,
        limits,
        sibling_pairs(source),
        fast_math,
    )


def single(
    body: Term,
    names: str = "m n",
    table: IndexTable | None = None,
    assumptions: tuple[Assumption, ...] = (),
    inputs: str = "A B",
) -> BlockProgram:
    """One output over inputs A, B (matrices, m by n), weight W, vector v, scalar s."""
    tensors = [tensor(name, "m n", Role.INPUT) for name in inputs.split()]
    tensors += [tensor("W", "m n", Role.WEIGHT), tensor("v", "m", Role.INPUT), tensor("s", "", Role.INPUT)]
    return program("p", table or indices(m=64, n=64), tensors, [define("Y", names, body, Role.OUTPUT)], assumptions)


def fires(ruleset: RuleSet, source: BlockProgram) -> bool:
    return any(run(source, ruleset).report.rules_applied.values())


A, B, W = read("A", "m", "n"), read("B", "m", "n"), read("W", "m", "n")
LOG = "rule r\n    log(x)  =>  log(x) + 0\n    where {}(x)\n"
