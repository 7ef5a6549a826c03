"""The scope check of extraction: no value is used outside a loop whose index it mentions, however cheap it is."""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core.addresses import index_address
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import BlockProgram, Definition, Role
from bbrewrite.core.terms import At, Map, Reduce, Term
from bbrewrite.egraph.view import EClass, ENode, FrozenGraph, SaturationReport
from bbrewrite.explain.matching import head_key
from bbrewrite.plan.extraction.extract import Limits, extract
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.term_costs import TermCosts
from tests.plan.pipelines import TARGET
from tests.programs import apply, read, tensor, total


def test_plans_keep_to_scope() -> None:
    """A class holds a cheap term that mentions k and a dear one that does not: outside k's loop only this one will do.

    Once as a block of the output, once as a list that a loop over k reads: neither an output nor a list in global
    memory may mention an index of a loop around it.
    """
    dear = total("n", apply("row_sum", read("A", "m", "n")))
    cheap = read("B", "k", "m")
    _check_scope({"root": Map("m", dear)}, {dear: cheap})
    stored = Map("m", dear)
    inside = Reduce("sum", "k", (At(stored, index_address("m")),))
    _check_scope({"root": Map("m", inside)}, {stored: Map("m", cheap)})


def _check_scope(roots: Mapping[str, Term], equal: Mapping[Term, Term]) -> None:
    numbers: dict[Term, int] = {}
    classes: dict[int, EClass] = {}

    def number(term: Term) -> int:
        if term not in numbers:
            node = _node(term)
            numbers[term] = len(numbers)
            members = [node]
            if term in equal:
                members.insert(0, _node(equal[term]))
            classes[numbers[term]] = EClass(tuple(members), term.free)
        return numbers[term]

    def _node(term: Term) -> ENode:
        return ENode(head_key(term), tuple(number(child) for child in term.children))

    found = {name: number(term) for name, term in roots.items()}
    graph = FrozenGraph(classes, found, SaturationReport(0, 0, 0, "saturated", {}))
    table = IndexTable.of([Index("m", 256, None, 64), Index("n", 4096, None, 64), Index("k", 2)])
    inputs = (tensor("A", "m n", Role.INPUT), tensor("B", "k m", Role.INPUT))
    outputs = tuple(Definition(tensor(name, "m", Role.OUTPUT), term) for name, term in roots.items())
    lists = Lists(graph, BlockProgram("scope", table, inputs, (), outputs), table, builtin_table())
    tensors = {t.name: t for t in inputs} | lists.tensors
    costs = TermCosts(builtin_table(), table, tensors, Machine(TARGET, 2, {}))
    kernels = extract(graph, lists, costs, Limits(1, 64)).kernels
    assert {kernel.stores for kernel in kernels} == {(name,) for name in lists.by_name}, "every list has a kernel"
    for form in kernels:
        assert not form.term.free, "a kernel uses a term outside the loop of an index that it mentions"
