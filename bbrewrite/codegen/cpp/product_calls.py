"""Prints packings and block products: calls of `bb_pack.hpp`, `bb_dot.hpp` and `bb_spans.hpp`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from bbrewrite.codegen.cpp.prepared import packed_apart
from bbrewrite.codegen.scope import KernelScope, factor
from bbrewrite.codegen.steps import FlatKernel, Pack, PackedInPassing, PackedOperand, PreparedOperand, Product
from bbrewrite.codegen.text import storage_type
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.terms import Local, Read
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


def _ahead(operand: PackedInPassing, scope: KernelScope) -> str:
    """How far behind a block the one lies that the next product takes.

    That is the next one of the innermost loop that has a next one, with the loops inside it at their first.
    """
    strides = _strides(operand.source, scope)
    cases: list[tuple[str, str]] = []
    to_the_first = ""
    for index in takewhile(strides.__contains__, operand.moved):
        place, stride = scope.index(index), strides[index]
        start, count = (place.start, place.count) if place.start else (place.number, "1")
        cases.append((f"{start} + {count} < {scope.size(index)}", _entries(count, stride) + to_the_first))
        to_the_first += f" - {_entries(start, stride)}"
    if not cases:
        return "0"
    *inner, (_, outermost) = cases
    return "".join(f"{has_next} ? {ahead} : " for has_next, ahead in inner) + outermost


def _strides(source: Read | Local, scope: KernelScope) -> Mapping[str, str]:
    """How far apart entries of a tensor lie along each index that is one of its axes."""
    if isinstance(source, Local):
        return {}
    strides = scope.tensor_strides(source.tensor)
    pairs = zip(source.addresses, strides, strict=True)
    return {address.plain_index: stride for address, stride in pairs if address.plain_index is not None}


def _entries(number: str, stride: str) -> str:
    if number == "1" or stride == "1":
        return stride if number == "1" else number
    return f"{number} * {factor(stride)}"


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
        right = scope.place(step.right.source)
        operands += [right.pointer, right.strides[0], scope.locals[step.right.panel.name], _ahead(step.right, scope)]
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
