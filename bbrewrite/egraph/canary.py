"""The canary: classes whose members cannot be equal, which shows that a rule is unsound.

Shapes are found from the bottom up, each class's from any member whose operands' shapes are known; members
without a type are dropped. A number stands for a block of any shape where it meets one, so `x / x => 1` is no
fault; but a class that has a shape keeps no plain number, because folds (`row_sum`) need the shape that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Local, Number
from bbrewrite.core.types import BlockType, BlockTypeError, ListType, PairType, Type, Typing
from bbrewrite.egraph.view import EClass, ENode
from bbrewrite.lang.diagnostics import Diagnostic, InputError


class UnsoundRules(InputError):
    """The rules have made equal what is not."""


def check_classes(
    classes: Mapping[int, EClass],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    table: OperatorTable,
    applied: Mapping[str, int],
) -> dict[int, EClass]:
    """The classes without the members that have no type. Raises UnsoundRules where two members disagree."""
    checker = _Checker(classes, indices, tensors, table)
    checker.find_types()
    checked: dict[int, EClass] = {}
    for number, found in classes.items():
        _check_numbers(found, applied)
        if number in checker.types:
            checked[number] = EClass(checker.kept(number, applied), found.free, found.facts)
    return checked


class _Checker:
    """Types of classes as they become known."""

    def __init__(
        self,
        classes: Mapping[int, EClass],
        indices: IndexTable,
        tensors: Mapping[str, Tensor],
        table: OperatorTable,
    ) -> None:
        self.types: dict[int, Type] = {}
        self._classes = classes
        self._locals: dict[str, Type] = {}
        self._leaves = {number: Local(str(number)) for number in classes}
        self._typing = Typing(table, indices, tensors, self._locals)

    def find_types(self) -> None:
        """The type of every class that has a well-founded member; a number's only where there is no other."""
        self._settle(with_numbers=False)
        self._settle(with_numbers=True)

    def kept(self, number: int, applied: Mapping[str, int]) -> tuple[ENode, ...]:
        """The members of a class that have its type."""
        expected = self.types[number]
        kept: list[ENode] = []
        for node in self._classes[number].nodes:
            found = self._type(node)
            if found is None or (_is_shaped(expected) and isinstance(node.head, Number)):
                continue
            # Element types are not shown: they may differ.
            if found != expected and str(_paired(found)) != str(_paired(expected)):
                raise _unsound(f"a {found} equal to a {expected}", applied)
            kept.append(node)
        return tuple(kept)

    def _settle(self, with_numbers: bool) -> None:
        waiting = [number for number in self._classes if number not in self.types]
        while waiting:
            later = [number for number in waiting if not self._settle_class(number, with_numbers)]
            if len(later) == len(waiting):
                return
            waiting = later

    def _settle_class(self, number: int, with_numbers: bool) -> bool:
        nodes = self._classes[number].nodes
        only_numbers = all(isinstance(node.head, Number) for node in nodes)
        for node in nodes:
            if isinstance(node.head, Number) and not (with_numbers or only_numbers):
                continue
            found = self._type(node)
            if found is not None:
                self.types[number] = self._locals[str(number)] = found
                return True
        return False

    def _type(self, node: ENode) -> Type | None:
        if any(child not in self.types for child in node.children):
            return None
        try:
            return self._typing.of(node.build(tuple([self._leaves[child] for child in node.children])))
        except BlockTypeError:
            return None


def _is_shaped(found: Type) -> bool:
    return isinstance(found, BlockType) and bool(found.axes)


def _paired(found: Type) -> Type:
    """The type with pairs of lists written as lists of pairs, which they equal."""
    match found:
        case ListType(index, item):
            return ListType(index, _paired(item))
        case PairType(first, second):
            first, second = _paired(first), _paired(second)
            if isinstance(first, ListType) and isinstance(second, ListType) and first.index == second.index:
                return ListType(first.index, _paired(PairType(first.item, second.item)))
            return PairType(first, second)
        case _:
            return found


def _check_numbers(found: EClass, applied: Mapping[str, int]) -> None:
    values = sorted({node.head.value for node in found.nodes if isinstance(node.head, Number)})
    if len(values) > 1:
        raise _unsound(f"{values[0]:g} equal to {values[1]:g}", applied)


def _unsound(what: str, applied: Mapping[str, int]) -> UnsoundRules:
    names = ", ".join(name for name, count in applied.items() if count)
    message = f"the rules make {what}, so one of them is unsound: {names}"
    return UnsoundRules([Diagnostic("unsound-rules", message, hint="`bbrewrite fuzz` finds which one, and why")])
