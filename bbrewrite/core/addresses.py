"""Addresses: which element or block of a tensor's axis a read touches.

An address is floor((sum of coefficient * index + sum of coefficient * size + offset) / divisor), which
covers affine addresses (`m + 1`, `size(n) - 1 - n`) and divisions by a constant (`h / 4`). A plain index
is the common case. Bounds are checked elsewhere, once extents are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class Address:
    """See the module text. `indices` and `sizes` are sorted by name, without zero coefficients."""

    indices: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[str, int], ...] = ()
    offset: int = 0
    divisor: int = 1

    @property
    def plain_index(self) -> str | None:
        """The index's name where the address is just that index, else None."""
        if self.divisor == 1 and self.offset == 0 and not self.sizes and len(self.indices) == 1:
            name, coefficient = self.indices[0]
            return name if coefficient == 1 else None
        return None

    @property
    def index_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.indices)

    def renamed(self, renaming: Mapping[str, str]) -> Address:
        """The address with indices renamed; two that become one are added."""
        return make_address(
            [(renaming.get(name, name), coefficient) for name, coefficient in self.indices],
            [(renaming.get(name, name), coefficient) for name, coefficient in self.sizes],
            self.offset,
            self.divisor,
        )

    def __str__(self) -> str:
        parts = [_product(coefficient, name) for name, coefficient in self.indices]
        parts += [_product(coefficient, f"size({name})") for name, coefficient in self.sizes]
        parts.sort(key=lambda part: part.startswith("-"))
        if self.offset or not parts:
            # A positive constant before a negative term reads as the user wrote it: 2 - n.
            leading = self.offset > 0 and bool(parts) and parts[0].startswith("-")
            parts.insert(0 if leading else len(parts), str(self.offset))
        text = parts[0] + "".join(f" - {part[1:]}" if part.startswith("-") else f" + {part}" for part in parts[1:])
        if self.divisor == 1:
            return text
        return f"{text} / {self.divisor}" if len(parts) == 1 and "*" not in text else f"({text}) / {self.divisor}"


def make_address(
    indices: list[tuple[str, int]],
    sizes: list[tuple[str, int]] | None = None,
    offset: int = 0,
    divisor: int = 1,
) -> Address:
    """An address in canonical form: equal names are added, zero coefficients dropped, common factors cancelled."""
    index_parts, size_parts = _collected(indices), _collected(sizes or [])
    # All coefficients being multiples of `common`, what the offset exceeds one by never reaches the next.
    common = gcd(divisor, *(coefficient for _, coefficient in (*index_parts, *size_parts)))
    return Address(_cancelled(index_parts, common), _cancelled(size_parts, common), offset // common, divisor // common)


def index_address(name: str) -> Address:
    """The address that is a plain index."""
    return Address(((name, 1),))


def _collected(parts: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    totals: dict[str, int] = {}
    for name, coefficient in parts:
        totals[name] = totals.get(name, 0) + coefficient
    return tuple(sorted((name, total) for name, total in totals.items() if total))


def _cancelled(parts: tuple[tuple[str, int], ...], factor: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, coefficient // factor) for name, coefficient in parts)


def _product(coefficient: int, name: str) -> str:
    if coefficient == 1:
        return name
    return f"-{name}" if coefficient == -1 else f"{coefficient} * {name}"
