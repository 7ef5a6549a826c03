"""Why a rule did not fire: its nearest match in the saturated e-graph, and what kept that from being one.

Either the patterns do not fit anywhere (the nearest partial match and its gaps), or they fit and a condition is
not proved, or the rule is off, or its phase was over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from bbrewrite.core.programs import Assumption, BlockProgram, Definition, Role, Tensor
from bbrewrite.core.terms import Apply, Component, Local, Read, Reduce, Size, Term, walk
from bbrewrite.core.types import BlockTypeError
from bbrewrite.egraph.inline import inline
from bbrewrite.egraph.saturate import saturate
from bbrewrite.egraph.siblings import sibling_pairs
from bbrewrite.egraph.view import FrozenGraph
from bbrewrite.explain.abbreviate import Abbreviator
from bbrewrite.explain.conditions import holds, known_numbers
from bbrewrite.explain.conditions_text import condition_text, pattern_text
from bbrewrite.explain.frozen import Saturated
from bbrewrite.explain.matching import Binding, find_pattern, instance, rule_matches
from bbrewrite.explain.near_matches import (
    Gap,
    MissingOperator,
    TwoIndices,
    TwoValues,
    largest_part,
    nearest_match,
)
from bbrewrite.explain.replay import with_root_sizes
from bbrewrite.lang.diagnostics import Diagnostic, InputError, all_of, did_you_mean
from bbrewrite.rules.rules import (
    FACTS,
    PHASES,
    Comparison,
    Condition,
    Fact,
    IsConst,
    IsScalar,
    NotFree,
    Rule,
    RuleSet,
    Siblings,
)

_MOST_MATCHES = 500


@dataclass(frozen=True)
class Place:
    """A match: the definition of the program to which it belongs, and what the patterns match there."""

    definition: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """A match that did not come off: what of the rule fits and where, and a sentence for each premise that fails."""

    place: Place
    premises: tuple[str, ...]
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Why a rule fired or not.

    `hits` are the engine's matches, `places` where they are in the saturated e-graph. `off` tells that the rule takes
    part only with fast math, which the rest of the answer then supposes. `failures` are the nearest matches that
    failed, `by_condition` tells that in them only conditions do. `missing` are operators that occur nowhere.
    """

    rule: Rule
    hits: int
    places: tuple[Place, ...]
    off: bool
    failures: tuple[Failure, ...]
    by_condition: bool
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def find_rule(name: str, ruleset: RuleSet) -> Rule:
    """The rule of that name. Raises InputError with the nearest name."""
    for rule in ruleset.rules:
        if rule.name == name:
            return rule
    names = [rule.name for rule in ruleset.rules]
    hint = did_you_mean(name, names) or all_of("the rules are", names) or "there are no rules"
    raise InputError([Diagnostic("unknown-rule", f"there is no rule `{name}`", hint=hint)])


def why_not(program: BlockProgram, ruleset: RuleSet, rule: Rule, fast_math: bool = False) -> Answer:
    """The answer for one rule. Raises InputError where the rules prove unsound."""
    off = rule.fast_math is not None and not fast_math
    if off:
        # The answer supposes that it is on.
        rules = tuple(replace(other, fast_math=None) if other.name == rule.name else other for other in ruleset.rules)
        ruleset = replace(ruleset, rules=rules)
    graph = saturated(program, ruleset, fast_math)
    answer = Investigation(program, graph, ruleset, fast_math).answer(find_rule(rule.name, ruleset))
    return replace(answer, rule=rule, off=off)


def saturated(
    program: BlockProgram, ruleset: RuleSet, fast_math: bool, assumptions: Sequence[Assumption] = ()
) -> FrozenGraph:
    """The e-graph of a program, with more assumptions than its own."""
    inlined = inline(program)
    return saturate(
        inlined.roots,
        inlined.indices,
        program.tensors,
        (*program.assumptions, *assumptions),
        ruleset,
        siblings=sibling_pairs(program),
        fast_math=fast_math,
    )


class Investigation:
    """Looks for the matches of rules in one saturated e-graph."""

    def __init__(self, program: BlockProgram, graph: FrozenGraph, ruleset: RuleSet, fast_math: bool) -> None:
        inlined = inline(program)
        self._program = program
        self._ruleset = ruleset
        self._fast_math = fast_math
        self._graph = Saturated(graph, program, inlined.indices, ruleset.table)
        definitions = {name: with_root_sizes(term, inlined.indices) for name, term in inlined.roots.items()}
        self._abbreviator = Abbreviator(definitions, inlined.indices, ruleset.table)
        self._homes = _homes(program, graph)
        self._readable = self._graph.readable(definitions)

    def answer(self, rule: Rule) -> Answer:
        """Why the rule fired or not, given that it took part."""
        report = self._graph.graph.report
        hits = report.rules_applied.get(rule.name, 0)
        places: dict[Place, None] = {}
        failed: list[tuple[Binding, list[Condition], tuple[tuple[str, Term], ...]]] = []
        for patterns in _sides(rule):
            for binding in islice(rule_matches(patterns, self._graph), _MOST_MATCHES):
                unproved = [c for c in rule.conditions if not holds(c, binding, self._graph)]
                if unproved:
                    failed.append((binding, unproved, patterns))
                else:
                    places.setdefault(self._place(patterns, binding))
        notes = self._notes(rule, hits, bool(places))
        if any(isinstance(condition, Siblings) for condition in rule.conditions):
            # Its patterns fit any two lists, one taken twice among them; what counts are pairs of definitions.
            failures = () if places else self._strangers()
            return Answer(rule, hits, tuple(places), False, failures, True, (), notes)
        if failed:
            fewest = min(len(unproved) for _, unproved, _ in failed)
            nearest = [item for item in failed if len(item[1]) == fewest]
            failures = tuple(
                dict.fromkeys(
                    Failure(
                        self._place(patterns, binding),
                        tuple(self._unproved(condition, binding) for condition in unproved),
                        self._assumptions(rule, unproved, binding) if not hits else (),
                    )
                    for binding, unproved, patterns in nearest[:3]
                )
            )
            return Answer(rule, hits, tuple(places), False, failures, True, (), notes)
        if places or hits:
            return Answer(rule, hits, tuple(places), False, (), False, (), notes)
        failures = tuple(f for patterns in _sides(rule) if (f := self._partial(patterns)) is not None)
        return Answer(rule, 0, (), False, failures, False, self._missing(rule), notes)

    def _notes(self, rule: Rule, hits: int, matches: bool) -> tuple[str, ...]:
        stopped = self._graph.graph.report.stopped_by
        if stopped != "saturated":
            return (f"saturation stopped at the limit on {stopped}, so not everything was looked for",)
        if matches and not hits:
            later = ", ".join(PHASES[PHASES.index(rule.phase) + 1 :])
            return (
                f"the rule belongs to phase `{rule.phase}`, which was over when a rule of a later phase ({later})"
                " made what it matches",
            )
        return ()

    # --- what fits

    def _place(self, patterns: Sequence[tuple[str, Term]], binding: Binding) -> Place:
        """A full match, as terms."""
        values = {name: self._readable[number] for name, number in binding.values.items()}
        terms = tuple(self._text(instance(p, binding, values, self._graph.indices)) for _, p in patterns)
        return Place(self._home(binding.values[patterns[0][0]]), terms)

    def _home(self, number: int) -> str:
        return self._homes.get(number, "")

    def _text(self, term: Term) -> str:
        return self._abbreviator.text(term)

    def _class_text(self, number: int) -> str:
        return self._text(self._readable[number])

    def _partial(self, patterns: tuple[tuple[str, Term], ...]) -> Failure | None:
        found = nearest_match(patterns, self._graph)
        if found is not None:
            place = Place(self._home(found.root), (self._class_text(found.root),))
            return Failure(place, tuple(dict.fromkeys(map(self._gap, found.gaps))))
        part = largest_part(patterns, self._graph)
        if part is None:
            return None
        pattern, number = part
        shown = pattern_text(pattern, self._ruleset.table)
        first = pattern_text(patterns[0][1], self._ruleset.table)
        premise = f"only the part `{shown}` occurs; around it the rule wants `{first}`"
        return Failure(Place(self._home(number), (self._class_text(number),)), (premise,))

    def _gap(self, gap: Gap) -> str:
        match gap:
            case MissingOperator(pattern, number):
                wanted = pattern_text(pattern, self._ruleset.table)
                return f"where the rule has `{wanted}` the program has `{self._class_text(number)}`"
            case TwoValues(variable, first, second):
                one, other = self._class_text(first), self._class_text(second)
                return f"`{variable}` would stand for two different terms, `{one}` and `{other}`"
            case TwoIndices(variable, first, second):
                return f"`{variable}` would be both {first} and {second}: these loops must match, and they do not"

    def _missing(self, rule: Rule) -> tuple[str, ...]:
        """Operators of the rule's patterns that occur nowhere, each once."""
        present = {_head_name(node.head) for c in self._graph.graph.classes.values() for node in c.nodes}
        wanted = [{_head_name(node) for _, pattern in side for node in walk(pattern)} for side in _sides(rule)]
        absent = [names - present - {""} for names in wanted]
        # As rules write them: `*`, not `multiply`.
        functions = self._ruleset.table.functions
        written = {functions[name].symbol or name if name in functions else name for name in absent[0]}
        return tuple(sorted(written)) if all(absent) else ()

    # --- what is not proved

    def _unproved(self, condition: Condition, binding: Binding) -> str:
        text = condition_text(condition, self._ruleset.table)
        return f"the condition `{text}` is not proved: {self._reason(condition, binding)}"

    def _reason(self, condition: Condition, binding: Binding) -> str:
        if isinstance(condition, Comparison):
            return self._comparison_reason(condition.term, binding)
        assert not isinstance(condition, Siblings)
        number = find_pattern(condition.term, binding, self._graph)
        shown = pattern_text(condition.term, self._ruleset.table)
        if number is None:
            return f"`{shown}` does not occur in the program"
        term = self._readable[number]
        value = f"`{shown}` is `{self._text(term)}`"
        match condition:
            case NotFree(index, _):
                return f"{value}, which depends on {binding.indices[index]}"
            case IsConst():
                inputs = ", ".join(tensor.name for tensor in self._inputs(term) if tensor.role is not Role.WEIGHT)
                return f"{value}, which reads {inputs or 'more than weights'}"
            case IsScalar():
                return f"{value}, {self._kind(term)}"
            case Fact(fact, _):
                return f"{value}, of which it is not known that every entry is {fact}"

    def _kind(self, term: Term) -> str:
        try:
            return f"a {self._graph.typing.of(term)}"
        except BlockTypeError:
            return "which is no scalar"

    def _comparison_reason(self, term: Term, binding: Binding) -> str:
        variable, extent = known_numbers(binding, self._graph)
        parts: list[str] = []
        for node in walk(term):
            if isinstance(node, Local):
                value = variable(node.name)
                shown = self._class_text(binding.values[node.name])
                parts.append(f"`{node.name}` is `{shown}`" + (", which is no number" if value is None else ""))
            if isinstance(node, Size):
                size = extent(node.index)
                shown = f"{size:g}" if size is not None else "not known"
                parts.append(f"size({binding.indices[node.index]}) is {shown}")
        return " and ".join(parts) or "it is false"

    def _strangers(self) -> tuple[Failure, ...]:
        """Pairs of definitions that are no siblings, those that are most like siblings first, each with the reason."""
        lists = [definition for definition in self._program.definitions if definition.tensor.indices]
        if len(lists) < 2:
            premise = "the condition `siblings` does not hold: the program has no two definitions that are lists"
            return (Failure(Place("", ()), (premise,)),)
        found: list[tuple[int, Failure]] = []
        for position, second in enumerate(lists):
            for first in lists[:position]:
                rank, reason = self._estrangement(first, second)
                names = (first.tensor.name, second.tensor.name)
                premise = f"the condition `siblings` does not hold: {reason}"
                found.append((rank, Failure(Place(" and ".join(names), ()), (premise,))))
        found.sort(key=lambda item: item[0])
        return tuple(failure for _, failure in found[:3])

    def _estrangement(self, first: Definition, second: Definition) -> tuple[int, str]:
        """Why two definitions, in order of the program, are no siblings; the smaller the number the nearer they are."""
        x, y = first.tensor, second.tensor
        common = _tensors_read(first) & _tensors_read(second)
        if x.indices[0] != y.indices[0]:
            reason = (
                f"the outer loops must match, and they are {x.indices[0]} of {x.name} and {y.indices[0]} of {y.name}"
            )
            return (0 if common else 3), reason
        if x.name in _tensors_needed(self._program, y.name):
            return 1, f"{y.name} needs {x.name}, so it cannot be made in one loop with it"
        return 2, f"{x.name} and {y.name} read no common tensor"

    def _inputs(self, term: Term) -> tuple[Tensor, ...]:
        read = {node.tensor for node in walk(term) if isinstance(node, Read)}
        return tuple(tensor for tensor in self._program.inputs if tensor.name in read)

    def _assumptions(self, rule: Rule, unproved: Sequence[Condition], binding: Binding) -> tuple[str, ...]:
        """The weakest declarations under which the rule would fire; each is tried."""
        facts = [condition for condition in unproved if isinstance(condition, Fact)]
        if len(facts) < len(unproved):
            return ()
        numbers = [find_pattern(fact.term, binding, self._graph) for fact in facts]
        terms = [self._readable[number] for number in numbers if number is not None]
        inputs = dict.fromkeys(tensor for term in terms for tensor in self._inputs(term))
        for fact in ("nonzero", "nonnegative", "finite", "positive"):
            assert fact in FACTS
            for tensor in inputs:
                extra = Assumption(fact, tensor.name)
                graph = saturated(self._program, self._ruleset, self._fast_math, [extra])
                if graph.report.rules_applied.get(rule.name):
                    return (f"with `assume {fact}({tensor.name})` in the program it would fire",)
        return ()


def _sides(rule: Rule) -> list[tuple[tuple[str, Term], ...]]:
    return [rule.matches, rule.rewrites] if rule.both_ways else [rule.matches]


def _homes(program: BlockProgram, graph: FrozenGraph) -> dict[int, str]:
    """For each class the earliest definition of the program that holds it."""
    homes: dict[int, str] = {}
    for definition in program.definitions:
        name = definition.tensor.name
        for number in _reached(graph, graph.roots[name]):
            homes.setdefault(number, name)
    return homes


def _reached(graph: FrozenGraph, root: int) -> Iterator[int]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        number = waiting.pop()
        if number not in seen and number in graph.classes:
            seen.add(number)
            yield number
            waiting += [child for node in graph.classes[number].nodes for child in node.children]


def _tensors_read(definition: Definition) -> frozenset[str]:
    return frozenset(term.tensor for term in walk(definition.term) if isinstance(term, Read))


def _tensors_needed(program: BlockProgram, name: str) -> frozenset[str]:
    """Every tensor on which a definition depends."""
    needed: dict[str, frozenset[str]] = {}
    for definition in program.definitions:
        read = _tensors_read(definition)
        needed[definition.tensor.name] = read.union(*(needed.get(tensor, frozenset()) for tensor in read))
    return needed[name]


def _head_name(term: Term) -> str:
    """The operator of a term's head as rules write it; "" for what is no operator."""
    match term:
        case Apply(operator, _, _):
            return operator
        case Reduce(monoid, _, _):
            return f"reduce({monoid}, ...)"
        case Component(position, _):
            return ("first", "second")[position]
        case _:
            return type(term).__name__.lower() if term.children else ""
