"""Products whose operands a program says are wider than what they are made of: one operand is marked `widened`.

Units for products want operands of 16 bits, and a value that stays local is rounded to them where all that it comes
from has such a type: storing it would round it as well. Where the program says that an operand is f32 it must not be,
whatever rules make of the expression that computes it. The steps of library functions are no such word of the
program's: their sums are f32, and what they result in has the type of their operand.

A list declared bf16 ends this, since bf16 has the range of f32. One declared f16 does not: rules may move a scale that
kept it in its range to the other side of the product.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from bbrewrite.core.arrays import ArrayProgram, Element
from bbrewrite.core.elements import Element as ElementType
from bbrewrite.core.terms import Read, untransposed, walk
from bbrewrite.lower.array_expressions import walk as walk_expression
from bbrewrite.lower.block_builder import BlockBuilder, Value

_NARROW = frozenset({ElementType.F16, ElementType.BF16})


@dataclass(frozen=True)
class Precision:
    """What products must know of an array program's tensors: which are given, which floats of 16 bits have a part in,
    and which of f16 come from such as are declared wider.
    """

    given: frozenset[str]
    narrow: frozenset[str]
    cut: frozenset[str]

    def product(self, builder: BlockBuilder, a: Value, b: Value) -> Value:
        """A block product, with a mark on one operand where neither may be rounded to 16 bits.

        It is on the operand that rules have least to do with, for nothing passes through it.
        """
        may_be_rounded = all(_reads(operand, self.narrow) for operand in (a, b))
        is_wide = any(operand.element is ElementType.F32 or _reads(operand, self.cut) for operand in (a, b))
        if not (may_be_rounded and is_wide):
            return builder.apply("dot", a, b)
        if self._is_given(a) and not self._is_given(b):
            return builder.apply("dot", builder.apply("widened", a), b)
        return builder.apply("dot", a, builder.apply("widened", b))

    def _is_given(self, value: Value) -> bool:
        inner = untransposed(value.term)
        return isinstance(inner, Read) and inner.tensor in self.given


def precision_of(program: ArrayProgram, own: Set[str]) -> Precision:
    """The precision of a program whose library calls are expanded; `own` are the names that it had before."""
    narrow = {tensor.name for tensor in program.inputs if tensor.element in _NARROW}
    declared: set[str] = set()
    cut: set[str] = set()
    for definition in program.definitions:
        name, element = definition.tensor.name, definition.tensor.element
        read = {node.tensor for node in walk_expression(definition.expression) if isinstance(node, Element)}
        if element in _NARROW or not read.isdisjoint(narrow):
            narrow.add(name)
        if element.is_float and element not in _NARROW and name in own and name in narrow:
            declared.add(name)
        elif element.is_float and element is not ElementType.BF16 and not read.isdisjoint(declared):
            declared.add(name)
            cut |= {name} if element is ElementType.F16 else set[str]()
    given = frozenset(tensor.name for tensor in program.inputs)
    return Precision(given, frozenset(narrow), frozenset(cut))


def _reads(value: Value, names: frozenset[str]) -> bool:
    return any(node.tensor in names for node in walk(value.term) if isinstance(node, Read))
