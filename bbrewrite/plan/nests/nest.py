"""Building a loop nest from a kernel's term, a loop order and a choice of what to keep local.

Every named value is a statement that runs over the indices on which it depends, nested in the given order.
Values are placed one after another, operands first, each into the first existing loop over its index in which
its operands are at hand, so that sibling loops merge when neither needs the other's result. A value needed
in another loop than the one that made it is either kept as a local list or computed again there.

The grid's indices surround everything: values that do not depend on one are recomputed in each of its blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bbrewrite.core.operators import Monoid, OperatorTable
from bbrewrite.core.terms import Cast, Local, Number, Reduce, Term
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import Let, Statement, Store, Update, local_element
from bbrewrite.plan.nests.draft import (
    DraftItem,
    DraftLine,
    DraftLoop,
    Instance,
    Path,
    common_length,
    loop_position,
    runs_inside,
)
from bbrewrite.plan.nests.draft_nest import DraftNest
from bbrewrite.plan.nests.equal_states import with_equal_states_once
from bbrewrite.plan.nests.naming import Naming, named_operands
from bbrewrite.plan.nests.states import (
    closure,
    components_read_by_others,
    needed_components,
    required_outside,
    substituted,
)
from bbrewrite.plan.partition import KernelOutput, KernelTerm


@dataclass(frozen=True)
class State:
    """What an accumulator is: a component of a monoid's state. `names` are the accumulators of all its components."""

    monoid: str
    component: int
    names: Mapping[int, str]


@dataclass(frozen=True)
class Nest:
    """A built nest. `recomputed` are the values computed again in other loops, each with the names under which it is
    made, the first one first: keeping them is an option.
    """

    body: tuple[Statement, ...]
    recomputed: Mapping[Term, tuple[str, ...]]
    accumulators: Mapping[str, str]  # accumulators of one component by name, with their monoids
    states: Mapping[str, State]  # all accumulators by name


class NestBuilder:
    """Builds one nest; see the module text."""

    def __init__(
        self,
        kernel: KernelTerm,
        naming: Naming,
        kept: frozenset[Term],
        order: tuple[str, ...],
        grid: tuple[str, ...],
        table: OperatorTable,
        typing: Typing,
    ) -> None:
        self._kernel = kernel
        self._naming = naming
        self._kept = kept
        self._rank = {index: position for position, index in enumerate(order)}
        self._grid = frozenset(grid)
        self._table = table
        self._typing = typing
        self._draft = DraftNest(typing)
        self._states: dict[tuple[object, ...], Instance] = {}
        self._in_loop: dict[tuple[DraftLoop, Term], Instance] = {}
        self._recomputed: set[Term] = set()
        self._accumulators: dict[str, str] = {}
        self._roles: dict[str, State] = {}

    def build(self) -> Nest:
        """The nest of the kernel's named values and stores."""
        for term in self._naming.named:
            self._place_at_home(term)
        for output in self._kernel.outputs:
            self._place_store(output)
        return Nest(
            with_equal_states_once(self._draft.statements()),
            {term: tuple(made.name for made in self._draft.instances(term)) for term in self._recomputed},
            MappingProxyType(self._accumulators),
            MappingProxyType(self._roles),
        )

    # Placement

    def _nest_of(self, indices: frozenset[str]) -> list[str]:
        return sorted(indices - self._grid, key=self._rank.__getitem__)

    def _place_at_home(self, term: Term) -> None:
        if isinstance(term, Reduce):
            self._place_reduction(term, ())
        else:
            path = self._path_for((), self._nest_of(term.free), term.children)
            self._add_let(term, path)

    def _add_let(self, term: Term, path: Path, before: DraftItem | None = None) -> None:
        expression = self._expression(term, path, before, is_definition=True)
        name = self._draft.fresh(_stem(term))
        line = DraftLine(Let, name, expression)
        if before is None:
            self._draft.insert_early(path, line)
        else:
            self._draft.insert(path, line, before)
        self._draft.set_type(name, self._typing.block(term))
        self._draft.register(term, Instance(name, path, path, line, (), len(path)))

    def _place_store(self, output: KernelOutput) -> None:
        path = self._path_for((), self._nest_of(frozenset(output.tensor.indices)), (output.body,))
        expression = self._expression(output.body, path, None)
        self._draft.insert(path, DraftLine(Store, "", expression, output), None)

    def _place_reduction(self, term: Reduce, base: Path, before: DraftItem | None = None) -> None:
        """Adds accumulators before, and an update inside, a loop over the reduction's index under `base`."""
        monoid = self._table.monoids[term.monoid]
        covered = {loop.index for loop in base}
        nest = [index for index in self._nest_of(term.free | {term.index}) if index not in covered]
        # Loops that shared states need go around the reduction's, whatever the order says.
        around = required_outside(term, monoid) | set(nest[: nest.index(term.index)])
        nest.sort(key=lambda index: 0 if index in around else 1 if index == term.index else 2)
        if len(monoid.state) == 1:
            self._place_accumulator(term, monoid, nest, base, before)
        else:
            self._place_states(term, monoid, nest, base, before)

    def _place_accumulator(
        self, term: Reduce, monoid: Monoid, nest: list[str], base: Path, before: DraftItem | None
    ) -> None:
        element = substituted(monoid.element[0], dict(zip(monoid.parameters, term.operands, strict=True)))
        path = self._path_for(base, nest, (element,), before)
        loop_at = loop_position(path, len(base), term.index)
        state = self._add_state(term, 0, _stem(term), path, loop_at)
        self._accumulators[state.name] = term.monoid
        self._roles[state.name] = State(term.monoid, 0, {0: state.name})
        right = self._expression(element, path, None)
        names = {monoid.left[0]: Local(state.name), monoid.right[0]: right}
        self._draft.insert(path, DraftLine(Update, state.name, substituted(monoid.combine[0], names)), None)
        self._finish(term, state, substituted(monoid.finish, {monoid.state[0]: Local(state.name)}))

    def _add_state(self, term: Reduce, component: int, stem: str, path: Path, loop_at: int) -> Instance:
        """An accumulator that starts before the loop at `loop_at`; loops of `path` below it make it a list."""
        name = self._draft.fresh(stem)
        self._draft.set_type(name, self._typing.state(term)[component])
        start = DraftLine(Let, name, Number(self._table.monoids[term.monoid].identity[component]))
        self._draft.insert(path[:loop_at], start, path[loop_at])
        inner = tuple(loop.index for loop in path[loop_at + 1 :])
        state = Instance(name, path[:loop_at], path[: loop_at + 1], start, inner, loop_at)
        self._draft.name(state)
        return state

    def _place_states(
        self, term: Reduce, monoid: Monoid, nest: list[str], base: Path, before: DraftItem | None
    ) -> None:
        """A monoid of several dependent components: those that others read are updated last in an iteration."""
        arguments = dict(zip(monoid.parameters, term.operands, strict=True))
        elements = tuple(substituted(element, arguments) for element in monoid.element)
        wanted = needed_components(monoid)
        bases = components_read_by_others(monoid, wanted)
        depth = nest.index(term.index) + 1
        loop_path = self._path_for(base, nest[:depth], tuple(elements[c] for c in wanted), before)
        loop_at = len(loop_path) - 1
        names: dict[str, Term] = {}
        states: dict[int, Instance] = {}
        for component in bases:
            state = states[component] = self._base_state(term, monoid, component, elements, loop_path)
            names[monoid.left[component]] = Local(state.name)
            names[monoid.right[component]] = self._local_of(elements[component], loop_path)
        shared = {c: self._with_shared_named(monoid.combine[c], names, loop_path) for c in wanted}
        for component in bases:
            self._close_with(states[component], shared[component], loop_path[-1])
        for component in wanted:
            if component not in bases:
                key = self._state_key(term, monoid, component, loop_path)
                if key not in self._states:
                    self._states[key] = self._payload_state(
                        term, monoid, component, elements[component], shared[component], loop_path, nest[depth:]
                    )
                states[component] = self._states[key]
        for component, state in states.items():
            known = {c: other.name for c, other in states.items()}
            self._roles[state.name] = State(monoid.name, component, known)
        finish = substituted(monoid.finish, {monoid.state[c]: Local(state.name) for c, state in states.items()})
        payload = next((states[c] for c in wanted if c not in bases), states[wanted[-1]])
        assert len(payload.path) == loop_at
        self._finish(term, payload, finish)

    def _state_key(self, term: Reduce, monoid: Monoid, component: int, loop_path: Path) -> tuple[object, ...]:
        used = closure(monoid, component)
        parameters = {name for c in used for name in monoid.element[c].local_names}
        operands = tuple(
            operand for name, operand in zip(monoid.parameters, term.operands, strict=True) if name in parameters
        )
        # Beside a matrix a state may be narrower than it is by itself.
        return (monoid.name, component, self._typing.state(term)[component], operands, loop_path[-1])

    def _base_state(
        self, term: Reduce, monoid: Monoid, component: int, elements: tuple[Term, ...], loop_path: Path
    ) -> Instance:
        key = self._state_key(term, monoid, component, loop_path)
        if key not in self._states:
            self._ensure_local(elements[component], loop_path)
            stem = f"{monoid.state[component]}_{monoid.name}"
            self._states[key] = self._add_state(term, component, stem, loop_path, len(loop_path) - 1)
        return self._states[key]

    def _close_with(self, state: Instance, value: Term, loop: DraftLoop) -> None:
        """Updates a state at the end of each iteration, after everything that reads its old value."""
        if not any(isinstance(item, DraftLine) and item.target == state.name for item in loop.closing):
            loop.closing.append(DraftLine(Update, state.name, value))

    def _payload_state(
        self,
        term: Reduce,
        monoid: Monoid,
        component: int,
        element: Term,
        combine: Term,
        loop_path: Path,
        inner_nest: list[str],
    ) -> Instance:
        """A state that no other reads, updated in loops below the reduction's where its element has more indices."""
        factors = self._draft.named(combine.local_names)
        path = self._path_for(loop_path, inner_nest, (element,), None, factors)
        state = self._add_state(term, component, _stem(term), path, len(loop_path) - 1)
        right = self._expression(element, path, None)
        names = {monoid.left[component]: Local(state.name), monoid.right[component]: right}
        line = DraftLine(Update, state.name, substituted(combine, names), combines=(monoid.name, component))
        self._draft.insert(path, line, None)
        return state

    def _with_shared_named(self, combine: Term, names: dict[str, Term], loop_path: Path) -> Term:
        """The combination with every part that depends on base states alone computed once in the iteration."""

        def visit(node: Term) -> Term:
            if isinstance(node, Local):
                return names.get(node.name, node)
            mentioned = node.local_names
            if mentioned and mentioned <= names.keys():
                return self._named_in_loop(substituted(node, names), loop_path)
            return node.with_children(tuple(visit(child) for child in node.children))

        return visit(combine)

    def _named_in_loop(self, expression: Term, loop_path: Path) -> Term:
        """A local that holds an expression over locals, computed once an iteration of the innermost loop."""
        if isinstance(expression, Local):
            return expression
        changed = expression.with_children(
            tuple(self._named_in_loop(child, loop_path) if child.children else child for child in expression.children)
        )
        key = (loop_path[-1], changed)
        if key not in self._in_loop:
            name = self._draft.fresh(_stem(changed))
            self._draft.set_type_of(name, changed)
            line = DraftLine(Let, name, changed)
            self._draft.insert(loop_path, line, None)
            self._in_loop[key] = Instance(name, loop_path, loop_path, line, (), len(loop_path))
            self._draft.name(self._in_loop[key])
        return Local(self._in_loop[key].name)

    def _finish(self, term: Reduce, state: Instance, finish: Term) -> None:
        """Registers the reduction's result: the state itself, or a value computed from states after the loop, which
        is no wider than what is reduced."""
        element = local_element(self._typing.block(term).element)
        rounded = self._draft.type_of(finish).element is not element
        if rounded:
            finish = self._draft.rounding(Cast(element.value, finish))
        if finish == Local(state.name):
            self._draft.register(term, state)
        elif state.inner or rounded:
            # Computed where it is used: a list of accumulators has no loop of its own after the reduction, and who
            # computes with the result rounds later.
            state.result = finish
            self._draft.register(term, state)
        else:
            name = self._draft.fresh(_stem(term))
            self._draft.set_type_of(name, finish)
            line = DraftLine(Let, name, finish)
            block = self._draft.block(state.path)
            block.items.insert(block.items.index(state.whole_path[len(state.path)]) + 1, line)
            self._draft.register(term, Instance(name, state.path, state.path, line, (), len(state.path)))

    def _path_for(
        self,
        base: Path,
        nest: list[str],
        expressions: tuple[Term, ...],
        before: DraftItem | None = None,
        locals_used: list[Instance] | None = None,
    ) -> Path:
        """Loops for a nest of indices under `base` in which what the expressions name is at hand."""
        terms = named_operands(expressions, self._naming)
        operands = [instance for term in terms for instance in self._draft.nearest(term, base)]
        return self._draft.path_for(base, nest, operands + (locals_used or []), before)

    # References

    def _expression(self, term: Term, path: Path, before: DraftItem | None, is_definition: bool = False) -> Term:
        """The term with every named operand replaced by a local that is at hand in `path`."""
        if term in self._naming and not is_definition:
            return self._reference(term, path, before)
        return term.with_children(tuple(self._expression(child, path, before) for child in term.children))

    def _reference(self, term: Term, path: Path, before: DraftItem | None) -> Term:
        for instance in self._draft.instances(term):
            if path[: len(instance.path)] == instance.path and not runs_inside(instance, path):
                return instance.result or Local(instance.name)
        base = self._base_for(term, path)
        # Inside a loop over its own index a reduction cannot be run again: its values would be taken for that loop's.
        is_bound = isinstance(term, Reduce) and any(loop.index == term.index for loop in base)
        if term in self._kept or is_bound:
            instance = self._draft.instances(term)[0]
            shared = common_length(instance.path, path)
            instance.shared_loops = min(instance.shared_loops, shared)
            return instance.result or Local(instance.name)
        self._recompute(term, base, path[len(base)] if len(base) < len(path) else before)
        return self._reference(term, path, before)

    def _base_for(self, term: Term, path: Path) -> Path:
        """The outermost loops of a path that have all indices of a term."""
        wanted = term.free - self._grid
        depth = 0
        while not wanted <= {loop.index for loop in path[:depth]}:
            depth += 1
        return path[:depth]

    def _recompute(self, term: Term, base: Path, before: DraftItem | None) -> None:
        """Computes a value again inside these loops, ahead of its user."""
        self._recomputed.add(term)
        if isinstance(term, Reduce):
            self._place_reduction(term, base, before)
        else:
            self._add_let(term, base, before)

    def _ensure_local(self, term: Term, path: Path) -> None:
        """Makes a term available as a named value in `path`."""
        if term in self._naming:
            self._reference(term, path, None)
            return
        known = self._draft.instances(term)
        if not any(path[: len(instance.path)] == instance.path for instance in known):
            self._add_let(term, path)

    def _local_of(self, term: Term, path: Path) -> Term:
        if term in self._naming:
            return self._reference(term, path, None)
        instance = next(i for i in self._draft.instances(term) if path[: len(i.path)] == i.path)
        return Local(instance.name)


def _stem(term: Term) -> str:
    match term:
        case Reduce(monoid, index):
            return f"{monoid}_{index}"
        case _:
            label = getattr(term, "operator", None) or getattr(term, "tensor", "value")
            return f"{label}_block"
