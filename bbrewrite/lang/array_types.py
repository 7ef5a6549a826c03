"""Element types of array expressions, as they follow from the operator table."""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.core import arrays
from bbrewrite.core.elements import Element, as_float
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.types import result_element


def element_of(
    expression: arrays.ArrayExpression, tensors: Mapping[str, Tensor], table: OperatorTable
) -> Element | None:
    """The element type of a resolved expression's values; None for a whole number."""
    match expression:
        case arrays.Literal(value):
            return number_element(value)
        case arrays.SizeOf() | arrays.Position():
            return Element.INDEX
        case arrays.Element(tensor):
            return tensors[tensor].element
        case arrays.Call(operator, operands):
            elements = tuple(element_of(operand, tensors, table) for operand in operands)
            return result_element(table.functions[operator], elements)
        case arrays.Fold(reduction, _, body):
            return fold_element(reduction, element_of(body, tensors, table))
        case arrays.LibraryCall(operand=operand):
            return as_float(element_of(operand, tensors, table))
        case _:
            raise AssertionError(expression)


def number_element(value: float) -> Element | None:
    """Whole numbers take any type (None); a fraction or infinity needs a float."""
    return None if value.is_integer() else Element.NUMBER


def fold_element(reduction: str, element: Element | None) -> Element | None:
    """The element type of a reduction's result; truth values are counted."""
    if reduction == "mean":
        return as_float(element)
    return Element.I32 if element is Element.BOOL and reduction in ("sum", "prod") else element
