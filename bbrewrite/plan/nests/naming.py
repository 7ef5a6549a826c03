"""Which values of a kernel get a name.

A named value is computed by a statement of its own and may be hoisted, shared or kept as a local list; any
other value is part of the expression of the statements that use it. Reductions are always named. Other
operators are named where more than one statement uses them, or where they vary with fewer loops than their
user and so can leave its innermost loop. Loads are named only when they are to be kept local.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Read, Reduce, Term, untransposed, walk
from bbrewrite.core.widening import unwidened
from bbrewrite.plan.partition import KernelTerm

# An expression of at most this many vector instructions is cheaper to repeat than to keep.
TRIVIAL_WORK = 1.0


@dataclass(frozen=True)
class Naming:
    """The named terms of a kernel, operands before users."""

    named: tuple[Term, ...]
    members: frozenset[Term] = field(repr=False)

    def __contains__(self, term: Term) -> bool:
        return term in self.members


def name_values(kernel: KernelTerm, kept: frozenset[Term], table: OperatorTable) -> Naming:
    """The named terms of a kernel; `kept` are those to be kept local, loads among them."""
    order: list[Term] = []
    seen: set[Term] = set()
    for output in kernel.outputs:
        for term in walk(output.body):
            if term not in seen:
                seen.add(term)
                order.append(term)
    # For each term the domains of the statements that use it; users come before their operands.
    hosts: dict[Term, set[tuple[object, frozenset[str]]]] = {term: set() for term in order}
    for output in kernel.outputs:
        hosts[output.body].add((output.tensor.name, frozenset(output.tensor.indices)))
    named: list[Term] = []
    work = _WorkOf(table, _product_operands(order))
    for term in reversed(order):
        if _needs_name(term, hosts[term], kept, work):
            named.append(term)
            domain = term.free | {term.index} if isinstance(term, Reduce) else term.free
            passed_on: set[tuple[object, frozenset[str]]] = {(term, domain)}
        else:
            passed_on = hosts[term]
        for child in term.children:
            hosts[child] |= passed_on
    named.reverse()
    return Naming(tuple(named), frozenset(named))


def named_operands(expressions: Iterable[Term], naming: Naming) -> list[Term]:
    """The named terms that expressions use directly, in order of first use."""
    found: dict[Term, None] = {}
    for expression in expressions:
        _add_named(expression, naming, found)
    return list(found)


def _add_named(term: Term, naming: Naming, found: dict[Term, None]) -> None:
    if term in naming.members:
        found.setdefault(term)
        return
    for child in term.children:
        _add_named(child, naming, found)


def _needs_name(term: Term, hosts: set[tuple[object, frozenset[str]]], kept: frozenset[Term], work: _WorkOf) -> bool:
    match term:
        case Reduce():
            return True
        case Read():
            return term in kept
        case Apply():
            if term in kept:
                return True
            varies_less = any(domain != term.free for _, domain in hosts)
            return (len(hosts) > 1 or varies_less) and work.of(term) > TRIVIAL_WORK
        case _:
            return False


def _product_operands(terms: list[Term]) -> frozenset[Term]:
    """Operands of products that are no block in memory, even transposed: they are written to one for the product."""
    found: set[Term] = set()
    for term in terms:
        if isinstance(term, Apply) and term.operator == "dot":
            for operand in term.operands:
                block = unwidened(operand)
                plain = untransposed(block)
                if not isinstance(plain, Read | Reduce):
                    found.add(operand)
    return frozenset(found)


class _WorkOf:
    """Vector instructions of an expression, named parts aside; a `dot`, a fold or a product's operand is never
    trivial.
    """

    def __init__(self, table: OperatorTable, product_operands: frozenset[Term]) -> None:
        self._table = table
        self._product_operands = product_operands
        self._known: dict[Term, float] = {}

    def of(self, term: Term) -> float:
        if term not in self._known:
            own = 0.0
            if isinstance(term, Apply):
                operator = self._table.operators[term.operator]
                function = self._table.functions.get(operator.function)
                # A user's function counts as heavy: its body is at least one operator.
                own = (TRIVIAL_WORK + 1 if function.body else function.work) if function else 0.0
                own += TRIVIAL_WORK + 1 if operator.fold or term in self._product_operands else 0.0
            below = sum(self.of(child) for child in term.children if not isinstance(child, Reduce))
            self._known[term] = own + below
        return self._known[term]
