"""How a compiled program is called: its C entry point's arguments, as a value that is written beside the library.

A library together with its signature can be called without the stages that made it. Types, axes and facts of the
arguments are here; the code, and how arrays become pointers, are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bbrewrite.core.elements import Element
from bbrewrite.core.roles import Role


@dataclass(frozen=True)
class Argument:
    """A tensor that the entry point takes a pointer to. `axes` are root indices; `facts` what is assumed of it.

    Where `preparation` names a C function, the entry point takes what that function made of the array.
    """

    name: str
    role: Role
    element: Element
    axes: tuple[str, ...]
    facts: tuple[str, ...] = ()
    preparation: str = ""

    @cached_property
    def numpy_type(self) -> np.dtype[np.generic]:
        """The type of arrays that are passed; kept, for calls are short."""
        return self.element.numpy_type


@dataclass(frozen=True)
class Signature:
    """The entry point's name and its arguments in order: tensors, then the extents of root indices, then threads."""

    entry: str
    arguments: tuple[Argument, ...]
    extents: tuple[str, ...]

    @cached_property
    def inputs(self) -> tuple[Argument, ...]:
        """Inputs and weights in order of declaration."""
        return tuple(argument for argument in self.arguments if argument.role in (Role.INPUT, Role.WEIGHT))

    @cached_property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.role is Role.OUTPUT)

    @cached_property
    def buffers(self) -> tuple[Argument, ...]:
        """Lists in global memory between kernels; the caller gives memory for them."""
        return tuple(argument for argument in self.arguments if argument.role is Role.BUFFER)

    def to_json(self) -> str:
        arguments = [
            {
                "name": argument.name,
                "role": argument.role.value,
                "element": argument.element.value,
                "axes": argument.axes,
                "facts": argument.facts,
                "preparation": argument.preparation,
            }
            for argument in self.arguments
        ]
        return json.dumps({"entry": self.entry, "arguments": arguments, "extents": self.extents}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Signature:
        """The signature that `to_json` wrote. Raises ValueError or KeyError for other text."""
        told: Mapping[str, Any] = json.loads(text)
        arguments = tuple(
            Argument(
                item["name"],
                Role(item["role"]),
                Element(item["element"]),
                tuple(item["axes"]),
                tuple(item["facts"]),
                item["preparation"],
            )
            for item in told["arguments"]
        )
        return cls(told["entry"], arguments, tuple(told["extents"]))
