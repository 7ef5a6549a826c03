"""Loads that need no copy: local blocks that only hold blocks of a tensor, which caches keep while they are needed.

A copy pays where a loop inside uses a block again and again. So a block is a view where all its uses stand in the loops
around its load, or in others over the same indices: each use goes through the blocks once, as the load did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Read, walk
from bbrewrite.plan.kernel import Let, Loop, Statement, Store, Update


def views(body: tuple[Statement, ...], tensors: Mapping[str, Tensor]) -> Mapping[str, Read]:
    """The blocks that are views, with what they hold. The tensors' elements are held as they are stored."""
    loads: dict[str, tuple[Read, frozenset[str]]] = {}
    assigned = Counter[str]()
    used: dict[str, set[str]] = {}
    for loops, statement in _with_loops(body, frozenset()):
        if not isinstance(statement, Store):
            assigned[statement.target.name] += 1
        match statement:
            case Let(target, Read(tensor) as read) if is_held_as_stored(tensors[tensor]):
                loads[target.name] = (read, loops)
            case _:
                for leaf in walk(statement.expression):
                    if isinstance(leaf, Local):
                        used.setdefault(leaf.name, set()).update(loops)
    return {
        name: read
        for name, (read, loops) in loads.items()
        if assigned[name] == 1 and loops.issuperset(used.get(name, ()))
    }


def is_held_as_stored(tensor: Tensor) -> bool:
    """Whether a local block has a tensor's elements as they are in memory."""
    return tensor.element.is_float and tensor.element is tensor.element.compute_type


def _with_loops(
    body: tuple[Statement, ...], loops: frozenset[str]
) -> Iterator[tuple[frozenset[str], Let | Update | Store]]:
    """Every statement with an expression, with the indices of the loops around it."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _with_loops(statement.body, loops | {statement.index})
        elif isinstance(statement, Let | Update | Store):
            yield loops, statement
