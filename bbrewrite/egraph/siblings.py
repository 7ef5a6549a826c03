"""Which definitions are worth making in one loop: what the condition `siblings(x, y)` of rule files says.

Two definitions are siblings where their outermost index is the same, both read one tensor, and neither depends
on the other. Two outputs are siblings too where they depend on one tensor, however far away, or on each other: both
are stored anyway. This is about worth, not truth, so it is asked of the program and not of the e-graph. More than two
come together pair by pair, in the program's order: each new one is a sibling of all before it and comes after them
(`analyses.py`), so that definitions which rules find equal are not paired over and over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bbrewrite.core.programs import BlockProgram, Definition, Role, Tensor
from bbrewrite.core.terms import Read, walk

RANK = "sibling-rank"


def sibling_pairs(program: BlockProgram) -> tuple[tuple[str, str], ...]:
    """The pairs, each once, the earlier definition first."""
    direct = {d.tensor.name: _tensors_read(d) for d in program.definitions}
    needs: dict[str, frozenset[str]] = {}
    for name, tensors in direct.items():
        needs[name] = tensors.union(*(needs.get(tensor, frozenset()) for tensor in tensors))

    def are_siblings(x: Tensor, y: Tensor) -> bool:
        if x.indices[0] != y.indices[0]:
            return False
        if x.role is y.role is Role.OUTPUT:
            return bool(needs[x.name] & needs[y.name])
        return bool(direct[x.name] & direct[y.name]) and x.name not in needs[y.name]

    lists = [definition.tensor for definition in program.definitions if definition.tensor.indices]
    return tuple((x.name, y.name) for position, y in enumerate(lists) for x in lists[:position] if are_siblings(x, y))


def sibling_facts(pairs: Iterable[tuple[str, str]], classes: Mapping[str, str]) -> list[str]:
    """The facts of an egglog program. `classes` gives what each definition is called there, in the program's order."""
    ranks = [f"(set ({RANK} {called}) {position})" for position, called in enumerate(classes.values())]
    known = [f"(siblings {classes[x]} {classes[y]})" for x, y in pairs]
    return [*ranks, *known] if known else []


def _tensors_read(definition: Definition) -> frozenset[str]:
    return frozenset(term.tensor for term in walk(definition.term) if isinstance(term, Read))
