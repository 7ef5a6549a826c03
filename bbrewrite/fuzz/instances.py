"""Instances of a rule: extents, positions of free indices, and exact values of every pattern variable.

A pattern variable stands for a term, so under loops it is a function of the indices on which it depends: a table with
one value for each of their positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.types import Type

type Array = npt.NDArray[Any]
type Value = Array | list[Value] | tuple[Value, Value]


@dataclass(frozen=True)
class IndexInstance:
    """An index of `extent` elements in blocks of `block`; None is a point loop."""

    extent: int
    block: int | None

    @property
    def trips(self) -> int:
        """How often a loop runs."""
        return self.extent if self.block is None else -(-self.extent // self.block)

    def length(self, position: int) -> int:
        """The elements of a block, of which the last is shorter where the block size does not divide the extent."""
        return 1 if self.block is None else max(1, min(self.block, self.extent - position * self.block))


@dataclass(frozen=True)
class Variable:
    """A pattern variable's values, by the positions of the indices on which it depends."""

    type: Type
    depends: tuple[str, ...]
    values: Mapping[tuple[int, ...], Value]


@dataclass(frozen=True)
class Instance:
    """See the module text. `outer` is each index's position where no loop of the rule binds it.

    `lengths` gives each axis its length, or the index along which it lies.
    """

    indices: Mapping[str, IndexInstance]
    outer: Mapping[str, int]
    lengths: Mapping[str, int | str]
    variables: Mapping[str, Variable]

    def value(self, name: str, position: Mapping[str, int]) -> Value:
        variable = self.variables[name]
        return variable.values[tuple(position[index] for index in variable.depends)]

    def shape(self, axes: tuple[str, ...], position: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(self.length(axis, position) for axis in axes)

    def length(self, axis: str, position: Mapping[str, int]) -> int:
        found = self.lengths[axis]
        return self.indices[found].length(position[found]) if isinstance(found, str) else found


def entries(value: Value) -> list[Any]:
    """Every entry of a value's blocks."""
    if isinstance(value, np.ndarray):
        return list(value.flat)
    return [entry for item in value for entry in entries(item)]
