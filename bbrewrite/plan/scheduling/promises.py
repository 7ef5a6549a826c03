"""What keeping a value local promises: the time of all that only serves to make it again, or to load it.

Building a nest with one more value kept takes far longer than telling which statements it could do without. What those
take is estimated from the nest's own events, each by its share of what the nest takes in all. So a promise orders the
values to be tried and leaves out those that could not matter; what keeping one really gains is for `schedule.py` to
find.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import ceil, prod

from bbrewrite.core.terms import Read, Term
from bbrewrite.plan.costs.cost import STATEMENT_SECONDS
from bbrewrite.plan.costs.events import Event, NestEvents
from bbrewrite.plan.kernel import Let, Merge, Store, Update, walk_statements
from bbrewrite.plan.nests.nest import Nest
from bbrewrite.plan.target import Target
from bbrewrite.plan.term_costs import ROW_SECONDS

# With other values at hand loops may merge, and other block sizes be better: a promise is taken for so much more.
SLACK = 1.5


class Promises:
    """The promises of one nest that takes so many seconds at these block sizes."""

    def __init__(
        self,
        nest: Nest,
        events: NestEvents,
        seconds: float,
        blocks: Mapping[str, int],
        extents: Mapping[str, int],
        target: Target,
    ) -> None:
        self._nest = nest
        self._blocks = blocks
        self._extents = extents
        made, loaded = defaultdict[str, float](float), defaultdict[Term, float](float)
        for event, own in self._priced(events, target):
            made[event.made] += own
            if event.block is not None:
                loaded[event.block] += own
        total = sum(made.values())
        scale = SLACK * max(0.0, seconds - target.launch_seconds) / total if total else 0.0
        self._made = {name: own * scale for name, own in made.items()}
        self._loaded = {block: own * scale for block, own in loaded.items()}

    def of(self, term: Term) -> float:
        """What keeping a value could gain, in seconds."""
        if isinstance(term, Read):
            return self._loaded.get(term, 0.0)
        first, *again = self._nest.recomputed[term]
        needed = self._reached(dict.fromkeys(again, first))
        return sum(own for name, own in self._made.items() if name and name not in needed)

    def _priced(self, events: NestEvents, target: Target) -> Iterator[tuple[Event, float]]:
        """Every event with about how long it takes."""
        vector = 1 / (target.vector_operations_per_second * target.vector_lanes)
        byte = target.tier_seconds_per_byte(target.shared_tiers[0], target.processors)
        prices: list[tuple[Iterable[Event], float]] = [
            (events.vector_work, vector),
            (events.copying, vector),
            (events.packing, vector * target.packing_operations),
            (events.folded_rows, ROW_SECONDS),
            (events.products, 1 / target.matrix_flops_per_second),
            (events.statements, STATEMENT_SECONDS),
            (events.loads, byte),
            (events.stores, byte),
        ]
        for group, price in prices:
            for event in group:
                yield event, price * event.amount * self._times(event)

    def _times(self, event: Event) -> float:
        """How many elements an event works on in all."""
        trips = (ceil(self._extents[i] / self._blocks[i]) for i in event.loops if i not in event.axes)
        return prod(trips) * prod(self._extents[axis] for axis in event.axes)

    @cached_property
    def _uses(self) -> tuple[frozenset[str], Mapping[str, set[str]]]:
        """The local blocks that are stored, and of each those that it is made from."""
        stored: set[str] = set()
        made_from: dict[str, set[str]] = {}
        for statement in walk_statements(self._nest.body):
            if isinstance(statement, Store):
                stored |= statement.expression.local_names
            elif isinstance(statement, Merge):
                made_from.setdefault(statement.target.name, set()).add(statement.source.name)
            elif isinstance(statement, Let | Update):
                made_from.setdefault(statement.target.name, set()).update(statement.expression.local_names)
        return frozenset(stored), made_from

    def _reached(self, instead: Mapping[str, str]) -> set[str]:
        """The local blocks that are needed if some are taken instead of others."""
        stored, made_from = self._uses
        found: set[str] = set()
        waiting = list(stored)
        while waiting:
            name = waiting.pop()
            name = instead.get(name, name)
            if name not in found:
                found.add(name)
                waiting += made_from.get(name, ())
        return found
