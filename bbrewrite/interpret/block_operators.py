"""Block operators on NumPy arrays, as the operator table defines them.

An operator's letters say which entry of each operand meets which: operands are laid out over the letters of the
result followed by the folded ones, its scalar function is applied, and the folded letters are combined. Products
that are summed go through matrix multiplication, the same sum computed faster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bbrewrite.core.elements import Element
from bbrewrite.core.operators import Operator, OperatorTable, Signature
from bbrewrite.core.types import result_element
from bbrewrite.interpret.scalar_functions import Array, apply_function, compute_dtype, fold_axes


def apply_operator(
    table: OperatorTable,
    operator: Operator,
    operands: Sequence[Array],
    elements: Sequence[Element | None],
    spread_lengths: tuple[int, ...] = (),
) -> Array:
    """The operator's value. `spread_lengths` are the block lengths of its index attributes.

    Operands are in their compute types, with one dimension for each of their axes.
    """
    if operator.is_elementwise:
        return apply_function(table, operator.function, operands, elements)
    signature = _signature_for(operator, operands)
    if operator.name == "dot":
        dtype = compute_dtype(result_element(table.functions["multiply"], tuple(elements)))
        a, b = (operand.astype(dtype, copy=False) for operand in operands)
        return np.asarray(a @ b.T)
    folded = "".join(dict.fromkeys(c for letters in signature.operands for c in letters if c not in signature.result))
    layout = signature.result + folded
    placed = [_placed(a, letters, layout) for a, letters in zip(operands, signature.operands, strict=True)]
    value = apply_function(table, operator.function, placed, elements) if operator.function else placed[0]
    if spread_lengths:
        shape = tuple(spread_lengths[int(c)] if c.isdigit() else n for c, n in zip(layout, value.shape, strict=True))
        value = np.broadcast_to(value, shape)
    if operator.fold:
        value = fold_axes(operator.fold, value, tuple(range(len(signature.result), len(layout))))
    return value


def _signature_for(operator: Operator, operands: Sequence[Array]) -> Signature:
    ranks = tuple(operand.ndim for operand in operands)
    return next(s for s in operator.signatures if tuple(map(len, s.operands)) == ranks)


def _placed(operand: Array, letters: str, layout: str) -> Array:
    """The operand with its axes where the layout has their letters, and length 1 elsewhere."""
    present = [letter for letter in layout if letter in letters]
    ordered = operand.transpose([letters.index(letter) for letter in present])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if letter in letters else 1 for letter in layout])
