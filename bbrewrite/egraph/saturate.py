"""Saturation: from the terms of a program and rules to the frozen e-graph of everything the rules equate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Assumption, Tensor
from bbrewrite.core.terms import Term
from bbrewrite.egraph.engine import Engine, Limits, new_graph
from bbrewrite.egraph.freeze import freeze
from bbrewrite.egraph.possible import possible_text
from bbrewrite.egraph.prepared import PreparedEngines
from bbrewrite.egraph.program import spell_program
from bbrewrite.egraph.siblings import sibling_facts
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.rules.rules import RuleSet


def saturate(
    roots: Mapping[str, Term],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    assumptions: Iterable[Assumption],
    ruleset: RuleSet,
    limits: Limits | None = None,
    siblings: Iterable[tuple[str, str]] = (),
    fast_math: bool = False,
    prepared: PreparedEngines | None = None,
) -> FrozenGraph:
    """The saturated e-graph of the roots, frozen.

    `tensors` are all tensors that the terms read; `siblings` the pairs of roots of which `siblings(x, y)` is
    true (see `siblings.py`); `prepared` are engines of the program that the roots are part of. Raises UnsoundRules, an
    InputError, where the rules have made two different numbers, or values of different shape, equal.
    """
    limits, siblings = limits or Limits(), tuple(siblings)
    given = (roots, indices, tensors, tuple(assumptions), ruleset, limits, siblings, fast_math)
    if prepared is None:
        return _saturated(*given, prepared)
    part = (tuple(roots.items()), tuple(tensors.items()), given[3], limits, siblings)
    return prepared.frozen(ruleset, fast_math, indices, part, lambda: _saturated(*given, prepared))


def _saturated(
    roots: Mapping[str, Term],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    assumptions: Iterable[Assumption],
    ruleset: RuleSet,
    limits: Limits,
    siblings: Iterable[tuple[str, str]],
    fast_math: bool,
    prepared: PreparedEngines | None,
) -> FrozenGraph:
    spelled = spell_program(roots, indices, tensors, assumptions, ruleset.table)
    pairs = sibling_facts(siblings, {name: spelled.globals[term] for name, term in roots.items()})
    with ExitStack() as stack:
        if prepared is None:
            graph = new_graph(possible_text(ruleset, spelled.masks, spelled.constructors, fast_math))
        else:
            graph = stack.enter_context(prepared.graph(ruleset, spelled.masks, fast_math))
        text = "\n".join([*spelled.lines, *pairs])
        engine = Engine(text, ruleset.enabled(fast_math), spelled.masks, limits, graph)
        engine.saturate()
        return freeze(engine, spelled, roots, indices, tensors, ruleset.table)
