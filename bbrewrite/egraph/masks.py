"""Index sets as bit masks in egglog: machine integers where the bits suffice, big integers where they do not."""

from __future__ import annotations

from dataclasses import dataclass

_MACHINE_BITS = 62  # an i64 has 63 bits and a sign; shifts stay clear of both


@dataclass(frozen=True)
class Masks:
    """How masks are spelled: `sort`, and the numbers zero and one of that sort."""

    sort: str
    zero: str
    one: str

    @staticmethod
    def for_count(count: int) -> Masks:
        """The masks that hold `count` indices."""
        if count <= _MACHINE_BITS:
            return Masks("i64", "0", "1")
        return Masks("BigInt", "(bigint 0)", "(bigint 1)")

    def literal(self, mask: int) -> str:
        """A mask as a constant."""
        return str(mask) if self.sort == "i64" else f'(from-string "{mask}")'

    def bit(self, index: str) -> str:
        """The mask of one index, whose number is spelled by `index`."""
        return f"(<< {self.one} {index})"

    def union(self, masks: list[str]) -> str:
        """The union of masks, the empty one included."""
        if not masks:
            return self.zero
        text = masks[0]
        for mask in masks[1:]:
            text = f"(| {text} {mask})"
        return text

    def without(self, mask: str, bit: str) -> str:
        """The mask less a bit that it may hold."""
        return f"(- {mask} (& {mask} {bit}))"
