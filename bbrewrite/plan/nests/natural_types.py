"""The element types from which blocks come, before anything is widened for computing.

Local blocks are computed in single precision whatever tensors they come from, and sums in double precision until they
are rounded. Units for products want operands of 16 bits, and rounding an operand to them is right where the program
says that it has such a type: where all it is computed from has, and no mark (`core/widening.py`) says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core.elements import Element, wider
from bbrewrite.core.programs import Tensor, as_computed
from bbrewrite.core.terms import Cast, Local, Term, rewrite_bottom_up
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Let, Merge, Statement, Update, walk_statements


class NaturalTypes:
    """The types of a kernel's terms, in which local blocks have those of what they are computed from.

    `held` types the blocks of the kernel's body as they lie in local memory; `tensors` are all that it uses.
    """

    def __init__(self, body: tuple[Statement, ...], held: Typing, tensors: Mapping[str, Tensor]) -> None:
        self._held = held
        natural = held.with_tensors({name: as_computed(tensor) for name, tensor in tensors.items()})
        computed = [statement for statement in walk_statements(body) if isinstance(statement, Let | Update | Merge)]
        types = {s.target.name: BlockType(s.target.type.axes, None) for s in computed}
        while True:
            self._typing = natural.with_locals(types)
            found = dict(types)
            for statement in computed:
                old = found[statement.target.name]
                value = Local(statement.source.name) if isinstance(statement, Merge) else statement.expression
                found[statement.target.name] = BlockType(old.axes, wider(old.element, self.element(value)))
            if found == types:
                return
            types = found

    def element(self, term: Term) -> Element | None:
        """The type that a term comes from."""
        return self._typing.block(rewrite_bottom_up(term, self._without_rounding)).element

    def _without_rounding(self, term: Term) -> Term:
        """What a sum that is held as f64 is rounded to for the blocks beside it says nothing of where it comes from."""
        if not isinstance(term, Cast) or term.element != Element.F32.value:
            return term
        is_held_wide = self._held.block(term.value).element is Element.F64
        return term.value if is_held_wide and self._typing.block(term.value).element is not Element.F64 else term
