"""Prints packings and block products: calls of `bb_pack.hpp`, `bb_dot.hpp` and `bb_spans.hpp`."""

from __future__ import annotations

from collections.abc import Mapping

from bbrewrite.codegen.cpp.prepared import packed_apart
from bbrewrite.codegen.scope import KernelScope, factor
from bbrewrite.codegen.steps import FlatKernel, Pack, PackedInPassing, PackedOperand, PreparedOperand, Product
from bbrewrite.codegen.text import storage_type
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.types import Typing


def block_size(index: Index, flat: FlatKernel, indices: IndexTable) -> str:
    """A block size as it was planned, or of rows that may be fewer, no more than caches keep."""
    for rows, along, element in flat.stored_rows:
        if rows == index.name:
            return f"bb::rows_kept_near<{storage_type(element)}>({index.block}, {indices[along].block})"
    return str(index.block)


def packed_size(operand: PackedOperand) -> str:
    """How many elements a packed operand takes."""
    return f"bb::packed_size<{storage_type(operand.element)}>({operand.contracted}, {operand.columns})"


def pack_calls(step: Pack, scope: KernelScope, typing: Typing) -> list[str]:
    """The statements that pack an operand, if that has not been done yet for its buffer."""
    operand, call = step.packed, _pack_call(step, scope, typing)
    if not operand.kept:
        return [call]
    number, label = scope.list_number(operand.kept), scope.list_number(operand.per)
    pointer, kind = scope.locals[operand.name], storage_type(operand.element)
    return [
        f"{kind}* const {pointer} = {scope.buffer(operand)} + {factor(number)} * {packed_size(operand)};",
        f"if (bb::relabel({scope.labels(operand)}[{number}], {label})) {{",
        f"  {call}",
        "}",
    ]


def _pack_call(step: Pack, scope: KernelScope, typing: Typing) -> str:
    rows, columns = (scope.index(axis).count for axis in typing.block(step.source).axes)
    contracted, wide = (columns, rows) if step.transposed else (rows, columns)
    place = scope.place(step.source)
    row, column = place.strides
    packed, kind = scope.locals[step.packed.name], storage_type(step.packed.element)
    if column == "1":
        call = f"bb::pack_{'nk' if step.transposed else 'kn'}({packed}, {place.pointer}, {row}, {contracted}, {wide});"
    else:
        strides = f"{column}, {row}" if step.transposed else f"{row}, {column}"
        call = f"bb::pack_strided({packed}, {place.pointer}, {strides}, {contracted}, {wide});"
    if place.inside:
        size = f"bb::packed_size<{kind}>({contracted}, {wide})"
        call = f"if ({place.inside}) {call} else bb::fill({packed}, {size}, {kind}{{}});"
    return call


def _first_packed(operand: PreparedOperand, across: str, scope: KernelScope) -> str:
    """Where a block begins among the columns of a weight that was packed ahead."""
    index = scope.index(across)
    if not packed_apart(across, scope.indices, scope.whole):
        return index.start
    return f"{index.number} * bb::packed_columns<{storage_type(operand.element)}>({index.block})"


def _ahead(operand: PackedInPassing, strides: Mapping[str, str], scope: KernelScope) -> str:
    """How far behind a block the one lies that the next product takes, where its two indices step by `strides`."""

    def entries(number: str, index: str) -> str:
        stride = strides[index]
        return number if stride == "1" else f"{number} * {factor(stride)}"

    moved = [index for index in operand.moved if index in strides]
    if not moved:
        return "0"
    inner = scope.index(moved[0])
    ahead = entries(inner.count, moved[0])
    if len(moved) == 1:
        return ahead
    anew = f"{entries(scope.index(moved[1]).count, moved[1])} - {entries(inner.start, moved[0])}"
    return f"{inner.start} + {inner.count} < {scope.size(moved[0])} ? {ahead} : {anew}"


def product_calls(step: Product, scope: KernelScope, typing: Typing) -> list[str]:
    """The statements that make a product, or add it to the target."""
    stored = scope.target(step.target)
    left, target = scope.place(step.left), scope.place(stored)
    row, column = typing.block(stored).axes
    rows, columns = scope.index(row).count, scope.index(column).count
    contracted = scope.index(typing.block(step.left).axes[1]).count
    operands = [target.pointer, target.strides[0], left.pointer, left.strides[0]]
    if isinstance(step.right, PackedOperand):
        kind = "dot"
        operands.append(scope.locals[step.right.name])
        spans = step.wanted or step.terms
        if spans:
            kind = "dot_wanted" if step.wanted else "dot_terms"
            operands += [scope.locals[spans.begin.name], scope.locals[spans.past.name]]
        elif step.right.kept:
            kind = "dot_kept"
            buffers = [scope.steps_of(index) for index in step.right.kept]
            operands.append(" * ".join([*buffers, packed_size(step.right)]))
    elif isinstance(step.right, PreparedOperand):
        kind = "dot_prepared"
        along = typing.block(step.left).axes[1]
        pointer = scope.pointers[step.right.source.tensor]
        operands += [pointer, scope.size(along), scope.index(along).start, _first_packed(step.right, column, scope)]
    elif isinstance(step.right, PackedInPassing):
        kind = "dot_in_passing"
        right, below = scope.place(step.right.source), typing.block(step.left).axes[1]
        ahead = _ahead(step.right, {below: right.strides[0], column: "1"}, scope)
        operands += [right.pointer, right.strides[0], scope.locals[step.right.panel.name], ahead]
    else:
        kind = "dot_kn"
        right = scope.place(step.right)
        operands += [right.pointer, right.strides[0]]
    arguments = f"({', '.join(operands)}, {rows}, {columns}, {contracted});"
    if not step.sets_first:
        return [f"bb::{kind}_{'add' if step.accumulate else 'set'}{arguments}"]
    return [
        f"if ({scope.index(step.sets_first).number} == 0) bb::{kind}_set{arguments}",
        f"else bb::{kind}_add{arguments}",
    ]
