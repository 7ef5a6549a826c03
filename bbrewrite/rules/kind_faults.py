"""Puts into words why no kinds fit a rule: the two places that disagree, wherever two can be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Apply, Local, Term
from bbrewrite.lang.diagnostics import Diagnostic, Related
from bbrewrite.rules.inference import Inference
from bbrewrite.rules.kinds import ANY, SCALAR, Kinds, Use, given, in_words, taken


@dataclass(frozen=True)
class Equation:
    """Two terms that a rule equates, and where they are written."""

    left: Term
    right: Term
    left_span: Span
    right_span: Span

    @property
    def terms(self) -> tuple[Term, Term]:
        return (self.left, self.right)


def kind_fault(
    equations: Sequence[Equation], scalars: frozenset[Term], uses: Sequence[Use], table: OperatorTable
) -> Diagnostic | None:
    """The fault of a rule whose terms have no kinds that fit, else None. `scalars` are said to be so by a condition."""
    sides = [equation.terms for equation in equations]
    if Inference(table, scalars).solve([], sides).fits:
        return None
    return _Explanation(table, scalars, uses).of(equations)


class _Explanation:
    """Looks for the nearest contradiction: two uses of one value, an operand, operands together, the two sides."""

    def __init__(self, table: OperatorTable, scalars: frozenset[Term], uses: Sequence[Use]) -> None:
        self._table = table
        self._scalars = scalars
        self._uses = uses
        self._variables = self._from_uses()

    def of(self, equations: Sequence[Equation]) -> Diagnostic:
        return (
            self._conflicting_uses()
            or self._unfit_operand()
            or self._unlike_operands()
            or self._unlike_sides(equations)
        )

    def _inferred(self, terms: Sequence[Term], known: Mapping[Term, Kinds]) -> Inference:
        return Inference(self._table, self._scalars).solve(terms, known=known)

    def _given(self, term: Term) -> Kinds:
        return SCALAR if term in self._scalars else given(term, self._table)

    def _from_uses(self) -> dict[Term, Kinds]:
        """What all uses of a variable leave of its kinds."""
        found: dict[Term, Kinds] = {}
        for use in self._uses:
            if isinstance(use.operand, Local):
                found[use.operand] = found.get(use.operand, ANY) & taken(use.parent, use.position, self._table)
        return found

    def _conflicting_uses(self) -> Diagnostic | None:
        """Two places that take one term as different kinds."""
        for second, first in ((b, a) for position, b in enumerate(self._uses) for a in self._uses[:position]):
            here = taken(second.parent, second.position, self._table)
            there = taken(first.parent, first.position, self._table)
            if second.operand == first.operand and not here & there:
                name = f"`{second.operand.name}`" if isinstance(second.operand, Local) else "this value"
                note = Related(first.span, f"here it is {in_words(there)}")
                return Diagnostic("kind", f"{name} is {in_words(here)} here", second.span, related=(note,))
        return None

    def _unfit_operand(self) -> Diagnostic | None:
        """An operand of a kind that its operator does not take."""
        for use in self._uses:
            wanted, found = taken(use.parent, use.position, self._table), self._given(use.operand)
            if not wanted & found:
                message = f"`{_name(use.parent)}` takes {in_words(wanted)} here, this is {in_words(found)}"
                return Diagnostic("kind", message, use.span)
        return None

    def _unlike_operands(self) -> Diagnostic | None:
        """Operands that do not go together, each being what its own operators and the uses of its variables make it."""
        for parent in dict.fromkeys(use.parent for use in self._uses):
            found = self._inferred([*parent.children], self._variables)
            known = {child: found.kinds(child) for child in parent.children}
            if found.fits and not self._inferred([parent], {**self._variables, **known}).fits:
                written = [use for use in self._uses if use.parent == parent]
                shown = " and ".join(in_words(known[child]) for child in parent.children)
                notes = tuple(Related(use.span, f"this is {in_words(known[use.operand])}") for use in written[:-1])
                message = f"`{_name(parent)}` does not take {shown} together"
                return Diagnostic("kind", message, written[-1].span, related=notes)
        return None

    def _unlike_sides(self, equations: Sequence[Equation]) -> Diagnostic:
        for equation in equations:
            found = [self._inferred([side], self._variables) for side in equation.terms]
            together = Inference(self._table, self._scalars).solve([], [equation.terms], self._variables)
            if all(side.fits for side in found) and not together.fits:
                left, right = (side.shown(term) for side, term in zip(found, equation.terms, strict=True))
                note = Related(equation.left_span, f"a {left}")
                message = f"the left side is a {left}, the right side a {right}"
                if left == right:
                    message = "the two sides need different kinds of their variables"
                    note = Related(equation.left_span, "the left side")
                return Diagnostic("kind", message, equation.right_span, related=(note,))
        message = "no kinds of values (matrix, vector, scalar) fit every operator of this rule"
        note = Related(equations[0].left_span, "the left side")
        return Diagnostic("kind", message, equations[0].right_span, related=(note,))


def _name(term: Term) -> str:
    return term.operator if isinstance(term, Apply) else type(term).__name__.lower()
