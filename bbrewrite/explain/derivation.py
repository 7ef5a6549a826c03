"""The derivation of a plan: which rules, applied where, lead from the unfused program to the chosen terms.

A derivation is a proof that the two are equal, written down as its distinct rule instances in the order in which they
are first needed. Between two steps there is nothing but putting equals for equals inside a larger term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Map, Reduce, Term
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.explain.frozen import Saturated
from bbrewrite.explain.replay import Instance, Replay, with_root_sizes
from bbrewrite.rules.rules import Rule, RuleSet


@dataclass(frozen=True)
class Step:
    """One rule instance. `before` and `after` are equal terms; a rule that is not `forward` is read right to left.

    `definition` is the definition of the program in which the step is made, `loops` the loops around it there,
    outermost first (`map m`, `reduce sum n`).
    """

    rule: Rule
    before: Term
    after: Term
    forward: bool
    definition: str
    loops: tuple[str, ...]
    instance: Instance


@dataclass(frozen=True)
class Derivation:
    """How an output's term came about. `complete` is false where no way was found, and then there are no steps.

    Steps that another output has needed already are not said again.
    """

    output: str
    source: Term
    target: Term
    complete: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Explained:
    """The derivations of a program's outputs. `definitions` has the unfused term of every definition, for printing."""

    program: BlockProgram
    indices: IndexTable
    definitions: Mapping[str, Term]
    derivations: tuple[Derivation, ...]


def derive(
    program: BlockProgram,
    graph: FrozenGraph,
    chosen: Mapping[str, Term],
    ruleset: RuleSet,
    table: OperatorTable,
    fast_math: bool = False,
) -> Explained:
    """The derivations of the `chosen` terms of a program's outputs, which `graph` holds."""
    inlined = inline(program)
    indices = inlined.indices
    definitions = {name: with_root_sizes(term, indices) for name, term in inlined.roots.items()}
    pairs = [(definitions[x], definitions[y]) for x, y in sibling_pairs(program)]
    fired = [rule for rule in ruleset.enabled(fast_math) if graph.report.rules_applied.get(rule.name)]
    names = {term: name for name, term in reversed(definitions.items())}
    derivations: list[Derivation] = []
    wanted = {output: (definitions[output], with_root_sizes(term, indices)) for output, term in chosen.items()}
    replay = Replay(Saturated(graph, program, indices, table), pairs)
    for source, _ in wanted.values():
        replay.add(source)
    replay.run(fired, list(wanted.values()))
    writer = _Writer(replay, names)
    for output, (source, target) in wanted.items():
        complete = replay.equal(source, target)
        steps = tuple(writer.steps(source, target, output, ())) if complete else ()
        derivations.append(Derivation(output, source, target, complete, steps))
    return Explained(program, indices, definitions, tuple(derivations))


class _Writer:
    """Writes proofs down, each distinct equality and each distinct rule instance once."""

    def __init__(self, replay: Replay, names: Mapping[Term, str]) -> None:
        self._replay = replay
        self._names = names
        self._shown: set[tuple[Term, Term]] = set()
        self._said: set[tuple[str, Term, Term]] = set()

    def steps(self, first: Term, second: Term, definition: str, loops: tuple[str, ...]) -> Iterator[Step]:
        """The steps from a term to an equal one that were not said yet."""
        if first == second or (first, second) in self._shown:
            return
        self._shown |= {(first, second), (second, first)}
        if first in self._names:
            definition, loops = self._names[first], ()
        for link in self._replay.path(first, second):
            if link.instance is None:
                inner = (*loops, *_loop(link.before))
                for old, new in zip(link.before.children, link.after.children, strict=True):
                    yield from self.steps(old, new, definition, inner)
                continue
            said = (link.instance.rule.name, link.instance.left, link.instance.right)
            if said not in self._said:
                self._said.add(said)
                yield Step(
                    link.instance.rule, link.before, link.after, link.is_forward, definition, loops, link.instance
                )


def _loop(term: Term) -> tuple[str, ...]:
    match term:
        case Map(index, _):
            return (f"map {index}",)
        case Reduce(monoid, index, _):
            return (f"reduce {monoid} {index}",)
        case _:
            return ()
