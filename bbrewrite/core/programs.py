"""Block programs: named block terms over tensors in global memory.

This is the form that lowering makes, that `bbrewrite lower` prints, and that fusion rewrites. Each
definition is a list of blocks in global memory (a buffer or an output), or a scalar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from bbrewrite.core.elements import Element, wider
from bbrewrite.core.indices import EqualExtents, IndexTable
from bbrewrite.core.roles import Role as Role
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Map, Term


@dataclass(frozen=True)
class Tensor:
    """A named array in global memory with the indices that give its extents, row-major.

    `comes_from` is the narrower type of what a buffer is computed from, where it is declared wider than that.
    """

    name: str
    indices: tuple[str, ...]
    element: Element
    role: Role
    comes_from: Element | None = None

    @property
    def natural(self) -> Element:
        """The type of what is in it before it is stored."""
        return self.comes_from or self.element


def as_computed(tensor: Tensor) -> Tensor:
    """The tensor in its natural type."""
    return tensor if tensor.comes_from is None else replace(tensor, element=tensor.comes_from, comes_from=None)


def stored_wider(tensor: Tensor, declared: Element | None) -> Tensor:
    """The tensor as it is stored where a definition declares it: in that type, if it holds all that its own does."""
    element = tensor.element
    if declared is None or declared is element or wider(declared, element) is not declared:
        return tensor
    return replace(tensor, element=declared, comes_from=element)


@dataclass(frozen=True)
class Assumption:
    """A declared fact about an input or weight: `assume positive(sigma)`."""

    fact: str  # nonzero, positive, nonnegative or finite
    tensor: str


@dataclass(frozen=True)
class Definition:
    """`S = map m: map n: ...`. The maps around the body, outermost first, are the tensor's indices."""

    tensor: Tensor
    term: Term

    @property
    def body(self) -> Term:
        """The term inside the outer maps."""
        term = self.term
        for _ in self.tensor.indices:
            assert isinstance(term, Map)
            term = term.body
        return term


@dataclass(frozen=True)
class BlockProgram:
    """A block program; definitions are in an order in which each reads only earlier ones.

    `equal_extents` are the reads that only some extents allow: they follow from the rest, but for their places.
    `places` tells where a program's text has a term first, of those that may be wrong at some extents or blocks.
    """

    name: str
    indices: IndexTable
    inputs: tuple[Tensor, ...]  # inputs and weights in order of declaration
    assumptions: tuple[Assumption, ...]
    definitions: tuple[Definition, ...]
    equal_extents: tuple[EqualExtents, ...] = field(default=(), compare=False)
    places: Mapping[Term, Span] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def tensor(self, name: str) -> Tensor:
        """The input or defined tensor of that name."""
        return self.tensors[name]

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """The inputs and what is defined, by name."""
        found = {tensor.name: tensor for tensor in self.inputs}
        return found | {definition.tensor.name: definition.tensor for definition in self.definitions}

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(d.tensor for d in self.definitions if d.tensor.role is Role.OUTPUT)
