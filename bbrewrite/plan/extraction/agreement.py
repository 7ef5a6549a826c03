"""Which term a form has for every class in it, as bits, so that many combinations of forms are compared quickly.

Two forms agree where no class has one term in the one and another in the other. What forms cost is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bbrewrite.core.bits import Bits, places
from bbrewrite.core.terms import Term


class Chosen(NamedTuple):
    """A bit for every class that has a term here, and one for every class together with that term."""

    classes: Bits = 0
    terms: Bits = 0

    def agrees_with(self, other: Chosen) -> bool:
        """Whether every class that has a term in both has the same."""
        both = self.classes & other.classes
        return not both or (self.terms & other.terms).bit_count() == both.bit_count()

    def with_bits(self, other: Chosen) -> Chosen:
        """Both together, whether or not they agree."""
        return Chosen(self.classes | other.classes, self.terms | other.terms)


NOTHING_CHOSEN = Chosen()


class ChosenTerms:
    """The bits of classes and of their terms, given as they are met."""

    def __init__(self) -> None:
        self._classes: dict[int, Bits] = {}
        self._terms: dict[tuple[int, Term], Bits] = {}
        self._of_class: dict[Bits, Bits] = {}  # a class's bit, and those of all its terms

    def one(self, identifier: int, term: Term) -> Chosen:
        """A class with its term."""
        own = self._classes.setdefault(identifier, 1 << len(self._classes))
        bit = self._terms.setdefault((identifier, term), 1 << len(self._terms))
        self._of_class[own] = self._of_class.get(own, 0) | bit
        return Chosen(own, bit)

    def bit_of(self, identifier: int) -> Bits:
        """The bit of a class, none while it has no term anywhere."""
        return self._classes.get(identifier, 0)

    def latest(self, several: Iterable[Chosen]) -> Chosen:
        """For every class the last of its terms."""
        classes = terms = 0
        for chosen in several:
            both = classes & chosen.classes
            if both:
                terms &= ~self._terms_of(both)
            classes |= chosen.classes
            terms |= chosen.terms
        return Chosen(classes, terms)

    def _terms_of(self, classes: Bits) -> Bits:
        terms = 0
        for place in places(classes):
            terms |= self._of_class[1 << place]
        return terms
