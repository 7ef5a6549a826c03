"""Array programs: what a user writes, checked and resolved.

The front end makes this form from text: names are resolved, users' `def`s are expanded, indices have
roots, every read has addresses and every definition an element type. Nothing here knows about blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bbrewrite.core.addresses import Address
from bbrewrite.core.indices import EqualExtents, IndexTable
from bbrewrite.core.programs import Assumption, Tensor
from bbrewrite.core.spans import Span


@dataclass(frozen=True)
class ArrayExpression:
    """The base of expressions; the span is for messages and does not take part in comparison."""


@dataclass(frozen=True)
class Literal(ArrayExpression):
    """A number or infinity."""

    value: float
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SizeOf(ArrayExpression):
    """The extent of an index as a value."""

    index: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Position(ArrayExpression):
    """An index as a value: the element's position along it."""

    index: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Element(ArrayExpression):
    """An element of a tensor (input, weight or earlier definition); no addresses for a scalar."""

    tensor: str
    addresses: tuple[Address, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Call(ArrayExpression):
    """An elementwise operator of the table by its name ("add", "exp", "where", ...)."""

    operator: str
    operands: tuple[ArrayExpression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Fold(ArrayExpression):
    """A reduction over one or more indices, bound in the body: sum, max, min, prod, or mean.

    `mean` is kept as such here; lowering writes it as a sum divided by the extents.
    """

    reduction: str
    indices: tuple[str, ...]
    body: ArrayExpression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class LibraryCall(ArrayExpression):
    """softmax, log_softmax, logsumexp, layer_norm, rms_norm, l2_norm or variance over indices.

    The indices are bound in the operand; where the result has one entry for each of their positions
    (softmax, norms), the same names index that result. `eps` is None where the function has none.
    """

    function: str
    indices: tuple[str, ...]
    operand: ArrayExpression
    eps: float | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ArrayDefinition:
    """`P[m, n] = ...`; an index of the left side that the right side lacks is a broadcast."""

    tensor: Tensor
    expression: ArrayExpression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Repeat:
    """`repeat layer`: definitions that are made once for each position of an index, in order.

    `carried` are the values that the first iteration is given, `following` those that each gives the next one, under
    the same names and in the same order; the last are what the rest of the program reads. `position` is how many of
    the program's other definitions come before.
    """

    index: str
    carried: tuple[ArrayDefinition, ...]
    body: tuple[ArrayDefinition, ...]
    following: tuple[ArrayDefinition, ...]
    position: int


@dataclass(frozen=True)
class ArrayProgram:
    """A checked array program. `indices[...].block` holds the user's block sizes (all fixed), else None.

    `equal_extents` are the reads that only some extents allow: they follow from the rest, but for their places.
    `places` tells where inputs are declared. Stages after the front end take programs whose repeats are expanded
    (`lower/repeats.py`).
    """

    name: str
    indices: IndexTable
    inputs: tuple[Tensor, ...]
    assumptions: tuple[Assumption, ...]
    definitions: tuple[ArrayDefinition, ...]
    repeats: tuple[Repeat, ...] = ()
    equal_extents: tuple[EqualExtents, ...] = field(default=(), compare=False)
    places: Mapping[str, Span] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    @property
    def tensors(self) -> dict[str, Tensor]:
        found = {tensor.name: tensor for tensor in self.inputs}
        repeated = [definition for repeat in self.repeats for definition in (*repeat.carried, *repeat.body)]
        return found | {definition.tensor.name: definition.tensor for definition in (*repeated, *self.definitions)}
