"""Values of block programs that depend on block sizes, which a program that rules may rewrite should not.

`row_sum(X[m, n])` sums the entries of one block over n. Inside `reduce sum n:` the blocks' sums are combined; inside
`map n:` alone, or in a reduction that combines otherwise, what comes out is another value for other blocks. Users'
monoids are trusted: a running maximum that rescales a sum is what they are for. A block that spans its whole index is
no fault. Where the blocks' own values are wanted, this is a warning, not an error: text fixes the sizes (`by 16`).
"""

from __future__ import annotations

from collections.abc import Iterator

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram, Definition
from bbrewrite.core.terms import Apply, Map, Reduce, Term
from bbrewrite.core.types import Typing
from bbrewrite.lang.diagnostics import Diagnostic

_SIMPLE = ("sum", "prod", "max", "min")  # reductions that combine the results of the fold of the same name only


def block_size_warnings(program: BlockProgram, table: OperatorTable) -> tuple[Diagnostic, ...]:
    """A warning for each fold in the program whose value depends on the size of a block."""
    finder = _Finder(program, table)
    found = [warning for definition in program.definitions for warning in finder.definition(definition)]
    return tuple(dict.fromkeys(found))


class _Finder:
    def __init__(self, program: BlockProgram, table: OperatorTable) -> None:
        self._program = program
        self._table = table
        self._typing = Typing(table, program.indices, program.tensors)

    def definition(self, definition: Definition) -> Iterator[Diagnostic]:
        # Lists inside the definition may hold partial results, which a reduction around them combines.
        yield from self._walk(definition.body, frozenset(filter(self._is_cut, definition.tensor.indices)))

    def _walk(self, term: Term, mapped: frozenset[str]) -> Iterator[Diagnostic]:
        match term:
            case Map(index):
                mapped = mapped - {index}
            case Reduce(monoid, index, operands):
                mapped = mapped - {index}
                fold = self._fold_over(index, operands[0])
                if monoid in _SIMPLE and fold is not None and self._table.operators[fold.operator].fold != monoid:
                    yield self._warning(fold, index, f"and `reduce {monoid}` combines blocks otherwise")
            case Apply():
                for index in sorted(self._folded(term) & mapped):
                    yield self._warning(term, index, "and nothing combines the blocks")
            case _:
                pass
        for child in term.children:
            yield from self._walk(child, mapped)

    def _fold_over(self, index: str, term: Term) -> Apply | None:
        """The fold of a cut index that a term is, or a fold or reduction of it."""
        while self._is_cut(index) and index not in self._folded(term):
            if not (isinstance(term, Reduce) and term.index != index) and not self._folded(term):
                return None
            term = term.children[0]
        return term if isinstance(term, Apply) and self._is_cut(index) else None

    def _folded(self, term: Term) -> frozenset[str]:
        """The axes of its operands that an operator folds."""
        if not isinstance(term, Apply) or not self._table.operators[term.operator].fold:
            return frozenset()
        axes = frozenset[str]().union(*(self._typing.block(operand).axes for operand in term.operands))
        return axes - frozenset(self._typing.block(term).axes)

    def _is_cut(self, index: str) -> bool:
        """Whether an index has more than one block, as far as is known."""
        block, extent = self._program.indices[index].block, self._program.indices.extent(index)
        return block is not None and (extent is None or extent > block)

    def _warning(self, term: Apply, index: str, why: str) -> Diagnostic:
        message = f"the value depends on the block size of {index}: `{term.operator}` takes one block of it, {why}"
        hint = f"write `reduce {self._table.operators[term.operator].fold} {index}: {term.operator}(...)`"
        return Diagnostic("block-size", message, self._program.places.get(term), hint, severity="warning")
