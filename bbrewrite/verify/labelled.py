"""Arrays whose dimensions are named by indices: how the reference aligns, combines and contracts values.

Shapes follow names, so operands need no common layout. Products are contracted two at a time through matrix
multiplication, which is what makes a reference at full size quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bbrewrite.core.arrays import Element as ElementRead
from bbrewrite.core.elements import Element

type Array = npt.NDArray[Any]
type Factor = tuple[Array, tuple[str, ...]]  # with the names of its dimensions


@dataclass(frozen=True)
class Outside:
    """Where a value rests on an element outside its tensor.

    `mask` has dimensions `names`; `read` is a read at fault, and `positions` those of reduced indices at which it is.
    """

    mask: npt.NDArray[np.bool_]
    names: tuple[str, ...]
    read: ElementRead
    positions: Mapping[str, int]


@dataclass(frozen=True)
class Labelled:
    """An array with one dimension for each name, its element type, and where it is not to be used."""

    array: Array
    names: tuple[str, ...]
    element: Element | None
    outside: Outside | None = None

    def along(self, names: Sequence[str]) -> Array:
        """The array with its dimensions in this order, and length 1 for names that it lacks."""
        return placed(self.array, self.names, names)


def placed(array: Array, own: Sequence[str], names: Sequence[str]) -> Array:
    """An array with dimensions `own` laid out along `names`, with length 1 for those that it lacks."""
    present = [name for name in names if name in own]
    ordered = array.transpose([own.index(name) for name in present])
    lengths = dict(zip(present, ordered.shape, strict=True))
    return ordered.reshape([lengths.get(name, 1) for name in names])


def union(groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The distinct names in order of first appearance."""
    return tuple(dict.fromkeys(name for group in groups for name in group))


def either(regions: Sequence[Outside | None]) -> Outside | None:
    """Where any of the values is outside; the read named is the first one that somewhere is."""
    found = [region for region in regions if region is not None]
    if len(found) < 2:
        return found[0] if found else None
    names = union([region.names for region in found])
    mask = placed(found[0].mask, found[0].names, names)
    for region in found[1:]:
        mask = mask | placed(region.mask, region.names, names)
    culprit = next((region for region in found if region.mask.any()), found[0])
    return replace(culprit, mask=mask, names=names)


def contract(factors: Sequence[Factor], summed: frozenset[str]) -> Factor:
    """The sum of a product over the `summed` names, each of which some factor has."""
    current = list(factors)
    while True:
        current = [_sum_private(current, k, summed) for k in range(len(current))]
        if len(current) == 1:
            return current[0]
        pairs = [(i, j) for i in range(len(current)) for j in range(i + 1, len(current))]
        i, j = min(pairs, key=lambda pair: _joined_size(current, pair, summed))
        joined = _join(current[i], current[j], _kept(current, (i, j), summed))
        current = [factor for k, factor in enumerate(current) if k not in (i, j)] + [joined]


def _sum_private(factors: Sequence[Factor], position: int, summed: frozenset[str]) -> Factor:
    """A factor with those of its summed names that no other factor has summed away."""
    array, names = factors[position]
    others = {name for k, (_, other) in enumerate(factors) if k != position for name in other}
    private = [name for name in names if name in summed and name not in others]
    if not private:
        return array, names
    total = array.sum(axis=tuple(names.index(name) for name in private), dtype=array.dtype)
    return np.asarray(total), tuple(name for name in names if name not in private)


def _kept(factors: Sequence[Factor], pair: tuple[int, int], summed: frozenset[str]) -> frozenset[str]:
    """The names that the product of a pair must keep."""
    others = {name for k, (_, names) in enumerate(factors) if k not in pair for name in names}
    both = {name for k in pair for name in factors[k][1]}
    return frozenset(name for name in both if name not in summed or name in others)


def _joined_size(factors: Sequence[Factor], pair: tuple[int, int], summed: frozenset[str]) -> int:
    lengths = {name: n for k in pair for n, name in zip(factors[k][0].shape, factors[k][1], strict=True)}
    size = 1
    for name in _kept(factors, pair, summed):
        size *= lengths[name]
    return size


def _join(a: Factor, b: Factor, kept: frozenset[str]) -> Factor:
    """The product of two factors summed over the names that are not kept, all of which both have."""
    (x, x_names), (y, y_names) = a, b
    summed = [name for name in x_names if name not in kept]
    if not summed:
        names = union([x_names, y_names])
        return placed(x, x_names, names) * placed(y, y_names, names), names
    batch = [name for name in x_names if name in y_names and name in kept]
    rows = [name for name in x_names if name not in y_names]
    columns = [name for name in y_names if name not in x_names]
    lengths = dict(zip((*x_names, *y_names), (*x.shape, *y.shape), strict=True))

    def matrices(array: Array, own: tuple[str, ...], first: list[str], second: list[str]) -> Array:
        shape = [_product(lengths, group) for group in (batch, first, second)]
        return array.transpose([own.index(name) for name in (*batch, *first, *second)]).reshape(shape)

    product = matrices(x, x_names, rows, summed) @ matrices(y, y_names, summed, columns)
    names = (*batch, *rows, *columns)
    return product.reshape([lengths[name] for name in names]), names


def _product(lengths: Mapping[str, int], names: Sequence[str]) -> int:
    total = 1
    for name in names:
        total *= lengths[name]
    return total
