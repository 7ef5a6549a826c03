"""How a compiled program is called: its C entry point's arguments, as a value that is kept beside the library.

A library together with its signature can be called without the stages that made it. Types, axes and facts of the
arguments are here; the code, and how arrays become pointers, are not. Light to import (`core/spans.py` says why).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bbrewrite.core.elements import Element
from bbrewrite.core.roles import Role

if TYPE_CHECKING:
    import numpy as np


class Argument(NamedTuple):
    """A tensor that the entry point takes a pointer to. `axes` are root indices; `facts` what is assumed of it.

    Where `preparation` names a C function, the entry point takes what that function made of the array.
    """

    name: str
    role: Role
    element: Element
    axes: tuple[str, ...]
    facts: tuple[str, ...] = ()
    preparation: str = ""

    @property
    def numpy_type(self) -> np.dtype[np.generic]:
        """The type of arrays that are passed."""
        return self.element.numpy_type


class Signature(NamedTuple):
    """The entry point's name and its arguments: inputs and weights in order of declaration, outputs, buffers, then the
    extents of root indices, then threads. Buffers are lists in global memory between kernels, whose memory is lent.
    """

    entry: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    buffers: tuple[Argument, ...]
    extents: tuple[str, ...]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All tensors, in the order in which the entry point takes pointers to them."""
        return (*self.inputs, *self.outputs, *self.buffers)

    @property
    def plain(self) -> tuple[Any, ...]:
        """The same in nothing but tuples and strings, as files keep it."""
        arguments = [(a.name, a.role.value, a.element.value, a.axes, a.facts, a.preparation) for a in self.arguments]
        return self.entry, tuple(arguments), self.extents

    @classmethod
    def of(cls, entry: str, arguments: Iterable[Argument], extents: Iterable[str]) -> Signature:
        """The signature of an entry point with these arguments, each of which has its role."""
        arguments = tuple(arguments)

        def of_role(*roles: Role) -> tuple[Argument, ...]:
            return tuple(argument for argument in arguments if argument.role in roles)

        return cls(entry, of_role(Role.INPUT, Role.WEIGHT), of_role(Role.OUTPUT), of_role(Role.BUFFER), tuple(extents))

    @classmethod
    def from_plain(cls, plain: Any) -> Signature:
        """The signature of which this is the plain form, as lists or tuples."""
        entry, arguments, extents = plain
        return cls.of(
            entry,
            (
                Argument(name, Role(role), Element(element), tuple(axes), tuple(facts), preparation)
                for name, role, element, axes, facts, preparation in arguments
            ),
            extents,
        )
