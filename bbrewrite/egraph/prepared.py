"""Engines that know the rules already, for the parts of a large program.

Reading the rules takes an engine longer than rewriting a few definitions with them. So each set of rules is read once,
with the constructors of the whole program, and every part is rewritten in a copy that is thrown away. A constructor of
which a part has no term changes nothing. A small program has an engine of its own, which needs no copy.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import walk
from bbrewrite.egraph.engine import new_graph
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.possible import possible_text
from bbrewrite.egraph.vocabulary import STRUCTURE, constructor_of
from bbrewrite.rules.rules import RuleSet

if TYPE_CHECKING:
    from egglog import bindings


@dataclass(frozen=True, eq=False)
class _Prepared:
    """An e-graph without terms that knows some rules."""

    ruleset: RuleSet
    masks: Masks
    fast_math: bool
    graph: bindings.EGraph


class PreparedEngines:
    """The engines of a program: one for each set of rules and kind of masks that is asked for."""

    def __init__(self, program: BlockProgram) -> None:
        # Inlining adds what there is beside operators.
        own = (constructor_of(term) for definition in program.definitions for term in walk(definition.term))
        self._constructors = frozenset(own).union(STRUCTURE)
        self._prepared: list[_Prepared] = []

    @contextmanager
    def graph(self, ruleset: RuleSet, masks: Masks, fast_math: bool) -> Generator[bindings.EGraph]:
        """An e-graph that knows the rules; what is done with it inside is forgotten."""
        graph = self._graph(ruleset, masks, fast_math)
        graph.parse_and_run_program("(push)")
        try:
            yield graph
        finally:
            graph.parse_and_run_program("(pop)")

    def _graph(self, ruleset: RuleSet, masks: Masks, fast_math: bool) -> bindings.EGraph:
        for known in self._prepared:
            # Sets of rules are large, and nobody makes the same one twice.
            if known.ruleset is ruleset and (known.masks, known.fast_math) == (masks, fast_math):
                return known.graph
        graph = new_graph(possible_text(ruleset, masks, self._constructors, fast_math))
        self._prepared.append(_Prepared(ruleset, masks, fast_math, graph))
        return graph
