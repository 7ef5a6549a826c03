"""Index values without their spreads: how programs are written, and back.

Among elementwise operators an index value stands for its positions spread to the shape of the other operands:
`where(n <= m, S[m, n], -inf)`. Terms say so with an explicit `row_spread` or `col_spread` of the `IndexValue`;
texts leave it out where it follows from the rest:

- all operands of a tree of elementwise operators have one shape, so a matrix among its leaves gives the spreads;
- where the leaves are index values of two indices only, the outer of their loops gives the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, IndexValue, Term
from bbrewrite.core.types import BlockType, BlockTypeError, Typing

type _Shape = tuple[str, ...]


def with_spreads(
    term: Term,
    table: OperatorTable,
    typing: Typing,
    loops: tuple[str, ...] = (),
    origins: dict[Term, Term] | None = None,
) -> Term:
    """The term with index values spread to the shape of what stands beside them.

    `loops` are the indices of the loops around the term, outermost first. What has no shape is left as it is, for
    type checking to report. `origins`, where given, receives for each changed term the one that it was.
    """
    return _Spreader(table, typing, origins).visit(term, loops)


def without_spreads(term: Term, table: OperatorTable, typing: Typing, loops: tuple[str, ...] = ()) -> Term:
    """The term with the spreads left out that `with_spreads` puts back."""
    return _Stripper(table, typing).visit(term, loops)


def bare_index_values(term: Term, table: OperatorTable) -> Term:
    """The term with every spread of an index value among elementwise operators left out, for reading only."""
    return _Bare(table).visit(term, ())


def _is_elementwise(term: Term, table: OperatorTable) -> bool:
    return isinstance(term, Apply) and table.operators[term.operator].is_elementwise


def _is_spread_index(term: Term) -> bool:
    return (
        isinstance(term, Apply)
        and term.operator in ("row_spread", "col_spread")
        and isinstance(term.operands[0], IndexValue)
    )


class _Walk(ABC):
    """Visits trees of elementwise operators at their roots, everything else operand by operand.

    Memoised by term and the loops around it.
    """

    def __init__(self, table: OperatorTable) -> None:
        self._table = table
        self._done: dict[tuple[Term, tuple[str, ...]], Term] = {}

    def visit(self, term: Term, loops: tuple[str, ...]) -> Term:
        key = (term, loops)
        if key not in self._done:
            self._done[key] = self._visit(term, loops)
        return self._done[key]

    def _visit(self, term: Term, loops: tuple[str, ...]) -> Term:
        if _is_elementwise(term, self._table):
            return self.tree(term, loops)
        inner = loops if term.bound_index is None else (*(i for i in loops if i != term.bound_index), term.bound_index)
        return self._rebuilt(term, tuple(self.visit(child, inner) for child in term.children))

    @abstractmethod
    def tree(self, root: Term, loops: tuple[str, ...]) -> Term:
        """The changed tree of elementwise operators."""

    def _rebuilt(self, term: Term, children: tuple[Term, ...]) -> Term:
        return term if children == term.children else term.with_children(children)

    def leaves(self, root: Term) -> list[Term]:
        """The operands of the tree that are not elementwise operators themselves, each once."""
        seen: dict[Term, bool] = {}
        self._look(root, seen)
        return [term for term, is_leaf in seen.items() if is_leaf]

    def _look(self, term: Term, seen: dict[Term, bool]) -> None:
        """Goes through a tree of elementwise operators; what is seen is a leaf or no leaf."""
        if term not in seen:
            seen[term] = not _is_elementwise(term, self._table)
            for child in () if seen[term] else term.children:
                self._look(child, seen)

    def replaced(self, root: Term, leaves: dict[Term, Term]) -> Term:
        """The tree with its leaves replaced."""
        return self._with_leaves(root, dict(leaves))

    def _with_leaves(self, term: Term, done: dict[Term, Term]) -> Term:
        if term not in done:
            children = tuple([self._with_leaves(child, done) for child in term.children])
            done[term] = self._rebuilt(term, children)
        return done[term]


class _Spreader(_Walk):
    def __init__(self, table: OperatorTable, typing: Typing, origins: dict[Term, Term] | None) -> None:
        super().__init__(table)
        self._typing = typing
        self._origins = origins

    def _rebuilt(self, term: Term, children: tuple[Term, ...]) -> Term:
        found = super()._rebuilt(term, children)
        if self._origins is not None and found is not term:
            self._origins.setdefault(found, term)
        return found

    def tree(self, root: Term, loops: tuple[str, ...]) -> Term:
        leaves = self.leaves(root)
        changed = {leaf: self.visit(leaf, loops) for leaf in leaves}
        shape = _shape([changed[leaf] for leaf in leaves], self._typing, loops)
        for leaf in leaves:
            if isinstance(leaf, IndexValue):
                changed[leaf] = _spread(leaf, shape)
                if self._origins is not None:
                    self._origins.setdefault(changed[leaf], leaf)
        return self.replaced(root, changed)


def _spread(value: IndexValue, shape: _Shape) -> Term:
    """An index value as a matrix of that shape; unchanged where the shape is none or has no axis of that index."""
    if len(shape) != 2 or value.index not in shape:
        return value
    rows, columns = shape
    return Apply("row_spread", (value,), (columns,)) if value.index == rows else Apply("col_spread", (value,), (rows,))


def _shape(leaves: list[Term], typing: Typing, loops: tuple[str, ...]) -> _Shape:
    """The common shape of a tree's leaves: a matrix's among them, else a vector's, else by the order of the loops."""
    shapes = [_axes(leaf, typing) for leaf in leaves if not isinstance(leaf, IndexValue)]
    shape = max(shapes, key=len, default=())
    if shape:
        return shape
    indices = {axis for leaf in leaves if isinstance(leaf, IndexValue) for axis in _axes(leaf, typing)}
    if len(indices) != 2 or not indices <= set(loops):
        return ()
    rows, columns = sorted(indices, key=loops.index)
    return (rows, columns)


def _axes(term: Term, typing: Typing) -> _Shape:
    try:
        found = typing.of(term)
    except BlockTypeError:
        return ()
    return found.axes if isinstance(found, BlockType) else ()


class _Stripper(_Walk):
    def __init__(self, table: OperatorTable, typing: Typing) -> None:
        super().__init__(table)
        self._typing = typing

    def tree(self, root: Term, loops: tuple[str, ...]) -> Term:
        leaves = self.leaves(root)
        bare = {leaf: leaf.children[0] if _is_spread_index(leaf) else leaf for leaf in leaves}
        shape = _shape(list(bare.values()), self._typing, loops)
        # Only what parsing puts back just so is left out: one reversed spread keeps all of this tree's spreads.
        restored = all(_spread(value, shape) == leaf for leaf, value in bare.items() if isinstance(value, IndexValue))
        if not restored:
            bare = {leaf: leaf for leaf in leaves}
        return self.replaced(root, {leaf: self.visit(bare[leaf], loops) for leaf in leaves})


class _Bare(_Walk):
    def tree(self, root: Term, loops: tuple[str, ...]) -> Term:
        leaves = self.leaves(root)
        return self.replaced(
            root, {leaf: leaf.children[0] if _is_spread_index(leaf) else self.visit(leaf, loops) for leaf in leaves}
        )
