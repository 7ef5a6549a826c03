"""What the parts of a large program share in saturation: engines that know the rules, and the e-graphs of equal parts.

Reading the rules takes an engine longer than rewriting a few definitions with them. So each set of rules is read once,
with the constructors of the whole program, and every part is rewritten in a copy that is thrown away. A constructor of
which a part has no term changes nothing. A small program has an engine of its own, which needs no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Term, walk
from bbrewrite.egraph.engine import new_graph
from bbrewrite.egraph.extents_seen import comparisons_of_extents, extents_seen
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.possible import possible_text
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.egraph.vocabulary import STRUCTURE, constructor_of
from bbrewrite.rules.rules import RuleSet

if TYPE_CHECKING:
    from egglog import bindings


@dataclass(eq=False)
class _OfRules:
    """What is known of a set of rules: e-graphs without terms, and what parts came to."""

    ruleset: RuleSet
    fast_math: bool
    engines: dict[Masks, bindings.EGraph] = field(default_factory=dict[Masks, "bindings.EGraph"])
    frozen: dict[object, FrozenGraph] = field(default_factory=dict[object, FrozenGraph])

    @cached_property
    def comparisons(self) -> tuple[Term, ...]:
        return comparisons_of_extents(self.ruleset, self.fast_math)


class PreparedEngines:
    """The engines of a program, one for each set of rules and kind of masks that is asked for, and e-graphs found."""

    def __init__(self, program: BlockProgram) -> None:
        # Inlining adds what there is beside operators.
        own = (constructor_of(term) for definition in program.definitions for term in walk(definition.term))
        self._constructors = frozenset(own).union(STRUCTURE)
        self._known: list[_OfRules] = []

    @contextmanager
    def graph(self, ruleset: RuleSet, masks: Masks, fast_math: bool) -> Generator[bindings.EGraph]:
        """An e-graph that knows the rules; what is done with it inside is forgotten."""
        engines = self._of(ruleset, fast_math).engines
        if masks not in engines:
            engines[masks] = new_graph(possible_text(ruleset, masks, self._constructors, fast_math))
        graph = engines[masks]
        graph.parse_and_run_program("(push)")
        try:
            yield graph
        finally:
            graph.parse_and_run_program("(pop)")

    def frozen(
        self, ruleset: RuleSet, fast_math: bool, indices: IndexTable, part: object, make: Callable[[], FrozenGraph]
    ) -> FrozenGraph:
        """The e-graph of a part, made once for all that differ in nothing but extents in which rules see no difference.

        `part` is what saturation starts from beside the indices.
        """
        known = self._of(ruleset, fast_math)
        key = (part, extents_seen(indices, known.comparisons))
        if key not in known.frozen:
            known.frozen[key] = make()
        return known.frozen[key]

    def _of(self, ruleset: RuleSet, fast_math: bool) -> _OfRules:
        for known in self._known:
            # Sets of rules are large, and nobody makes the same one twice.
            if known.ruleset is ruleset and known.fast_math == fast_math:
                return known
        self._known.append(_OfRules(ruleset, fast_math))
        return self._known[-1]
