"""Rounds left operands of products where they are computed, instead of for every product that takes them.

A block of normalised rows is multiplied by one block of weights after another. Where such products take it as bf16
(`narrow.py`), a second block holds it rounded, and of the first one no list is kept where only its neighbours need it.
Blocks whose products stand beside them are rounded once as it is. This is an optimisation; a kernel means the same
without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from bbrewrite.codegen.access import classify
from bbrewrite.codegen.passes.narrow import is_rounded
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Local, Read, Term, untransposed, walk
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import (
    Kernel,
    Let,
    LocalBlock,
    Loop,
    Merge,
    Statement,
    Store,
    Update,
    walk_statements,
    with_expressions,
)
from bbrewrite.plan.nests.natural_types import NaturalTypes


def with_operands_rounded_once(kernel: Kernel, table: OperatorTable) -> Kernel:
    """The kernel with such blocks beside those that they round."""
    tensors = {tensor.name: tensor for tensor in (*kernel.reads, *kernel.writes)}
    if all(tensor.element is not Element.BF16 for tensor in kernel.reads):
        return kernel
    typing = Typing(table, kernel.indices, tensors, {block.name: block.type for block in kernel.local_blocks})
    natural = NaturalTypes(kernel.body, typing, tensors)
    writers = Counter(s.target.name for s in walk_statements(kernel.body) if isinstance(s, Let | Update | Merge))
    names = {*tensors, *writers}
    rounded: dict[str, LocalBlock] = {}

    def is_taken(product: Apply) -> bool:
        left, right = product.operands
        source = untransposed(right)
        is_placed = isinstance(source, Read) and classify(source, kernel.indices).placed
        return is_placed and is_rounded(left, source, tensors, natural)

    for statement, beside in _statements(kernel.body):
        for term in walk(statement.expression):
            match term:
                case Apply("dot", (Local(name, indices) as left, _)) if (
                    name not in beside and name not in rounded and writers[name] == 1 and is_taken(term)
                ):
                    own = next(n for n in (f"{name}_rounded_{i}" for i in range(1, len(names) + 2)) if n not in names)
                    names.add(own)
                    rounded[name] = LocalBlock(own, BlockType(typing.block(left).axes, Element.BF16), indices)
                case _:
                    pass
    if not rounded:
        return kernel

    def taken(term: Term) -> Term:
        match term:
            case Apply("dot", (Local(name, indices), right)) if name in rounded and is_taken(term):
                return Apply("dot", (Local(rounded[name].name, indices), right))
            case _:
                return term

    body = _with_roundings(with_expressions(kernel.body, taken), rounded)
    return replace(kernel, body=_one_at_a_time(body, rounded))


def _with_roundings(body: tuple[Statement, ...], rounded: Mapping[str, LocalBlock]) -> tuple[Statement, ...]:
    """The statements, with the roundings of blocks behind what computes them."""
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            statement = replace(statement, body=_with_roundings(statement.body, rounded))
        result.append(statement)
        if isinstance(statement, Let) and statement.target.name in rounded:
            target = statement.target
            result.append(Let(rounded[target.name], Local(target.name, target.list_indices)))
    return tuple(result)


def _one_at_a_time(body: tuple[Statement, ...], names: Collection[str]) -> tuple[Statement, ...]:
    """The statements, with those of these blocks kept one at a time that nothing needs but what stands beside them."""
    everywhere, beside = Counter[str](), Counter[str]()
    for statement, made in _statements(body):
        used = [leaf.name for leaf in walk(statement.expression) if isinstance(leaf, Local)]
        everywhere.update(used)
        beside.update(name for name in used if name in made)
    single = {name for name in names if everywhere[name] == beside[name]}

    def in_statement(statement: Statement) -> Statement:
        if isinstance(statement, Loop):
            return replace(statement, body=tuple(map(in_statement, statement.body)))
        if isinstance(statement, Let | Update) and statement.target.name in single:
            return replace(statement, target=replace(statement.target, list_indices=()))
        return statement

    def leaf(term: Term) -> Term:
        return Local(term.name) if isinstance(term, Local) and term.name in single else term

    return with_expressions(tuple(map(in_statement, body)), leaf)


def _statements(body: tuple[Statement, ...]) -> Iterator[tuple[Let | Update | Store, frozenset[str]]]:
    """Every statement, with the blocks that are written in its list."""
    beside = frozenset(s.target.name for s in body if isinstance(s, Let | Update | Merge))
    for statement in body:
        if isinstance(statement, Loop):
            yield from _statements(statement.body)
        elif isinstance(statement, Let | Update | Store):
            yield statement, beside
