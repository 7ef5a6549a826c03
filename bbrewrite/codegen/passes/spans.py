"""Limits work on masked blocks to the entries that the mask shows: from which column to which, row by row.

Constants are propagated through a list of steps under the assumption that an entry is hidden (`constants.py`): an
entrywise step that makes a constant of it, or a fold for which that is neutral, need not look at hidden entries; a
product whose left operand is zero there adds nothing; and a block that only such steps read need not be computed there.
Each row has its span of columns that may be seen (`Spans`), and a row of which nothing is hidden does without the
condition. Nothing here knows of softmax or attention. This is an optimisation: steps mean the same without it, but for
infinities and NaN of inputs that meet nothing but weights of 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from bbrewrite.codegen.scalars import folded_letter, signature_of
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    FindSpans,
    Fold,
    Pack,
    PackedInPassing,
    PackedOperand,
    PreparedOperand,
    Product,
    Repeat,
    RowPass,
    Rows,
    SpannedRows,
    Spans,
    Step,
    WhereEmpty,
    inner_steps,
    names_read,
    names_written,
    walk_steps,
)
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Apply, Cast, Local, Term, walk
from bbrewrite.core.types import Typing
from bbrewrite.plan.kernel import LocalBlock
from bbrewrite.plan.masks.constants import UNKNOWN, Constant, Entries, EntriesOf, either
from bbrewrite.plan.masks.linear_conditions import all_of, any_of, linear_condition
from bbrewrite.plan.masks.visible import ALWAYS, Condition, LoopBounds, visible_blocks

# Makes a local block of a stem, axes and an element type.
type MakeBlock = Callable[[str, tuple[str, ...], Element], LocalBlock]
type _Known = dict[str, Entries]
type _Axes = tuple[str, str]
# Conditions, each with the value that it has at a hidden entry.
type _Assumption = Mapping[Term, bool]


def with_spans(
    steps: tuple[Step, ...], typing: Typing, table: OperatorTable, finite: frozenset[str], make_block: MakeBlock
) -> tuple[Step, ...]:
    """The steps, limited where that is possible. The tensors `finite` are finite where inputs are."""
    if not any(_conditions_of(part) for step in walk_steps(steps) for part in _parts(step)):
        return steps  # nothing hides anything
    finder = _SpanFinder(steps, typing, table, finite, make_block)
    finder.visit(steps, {})
    return finder.rebuilt(steps)


@dataclass(frozen=True)
class _Limits:
    """What an assumption on hidden entries of blocks over two axes makes of a list of steps."""

    items: tuple[int, ...]  # the places of the entrywise steps and loops over rows that need not look at them
    values: Mapping[str, float]  # what hidden entries of the blocks are that these make
    products: frozenset[int]  # the identities of the products to which they add nothing


class _SpanFinder:
    def __init__(
        self,
        steps: tuple[Step, ...],
        typing: Typing,
        table: OperatorTable,
        finite: frozenset[str],
        make_block: MakeBlock,
    ) -> None:
        self._typing = typing
        self._table = table
        self._finite = finite
        self._make_block = make_block
        self._leaves = [step for step in walk_steps(steps) if not inner_steps(step)]
        self._writers = Counter(name for step in self._leaves for name in names_written(step))
        # By identity, since equal steps may stand in several places.
        self._replaced: dict[int, Step] = {}
        self._found: dict[int, list[FindSpans]] = {}

    def rebuilt(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """The list with what has been found."""
        result: list[Step] = list(self._found.get(id(steps), ()))
        for step in steps:
            kept = self._replaced.get(id(step), step)
            if isinstance(kept, Repeat | ByFirst | WhereEmpty):
                kept = replace(kept, body=self.rebuilt(kept.body))
            result.append(kept)
        return tuple(result)

    def visit(self, steps: tuple[Step, ...], known: _Known) -> None:
        """Looks for spans in a list of steps and in those inside. `known` holds before it, and then after it."""
        for name in _written(steps):
            known.pop(name, None)  # it may be written later in the list and read in the next iteration
        for axes in dict.fromkeys(axes for step in steps if (axes := self._item_axes(step)) is not None):
            self._limit(steps, axes, known)
        for step in steps:
            if isinstance(step, Repeat | ByFirst | WhereEmpty):
                self.visit(step.body, dict(known))
            self._run((step,), known)

    # What is known of blocks

    def _run(self, steps: tuple[Step, ...], known: _Known) -> None:
        """Changes `known` from what holds of all entries before the steps to what holds after them."""
        for step in steps:
            match step:
                case Assign(LocalBlock(name), term) | Fold(LocalBlock(name), term):
                    known[name] = self._entries_of(term, known)
                case Pack(packed, source):
                    known[packed.name] = self._entries_of(source, known)
                case Product(LocalBlock(name)):
                    added = self._product_entries(step, known)
                    adds = step.accumulate and not step.sets_first
                    known[name] = either(known.get(name, UNKNOWN), added) if adds else added
                case Rows():
                    self._run(step.steps, known)
                case WhereEmpty(_, body):
                    self._run(body, known)  # or else a loop that follows overwrites what this would write
                case Repeat(_, body) | ByFirst(body):
                    self._run_repeatedly(body, known)
                case _:
                    for name in names_written(step):
                        known[name] = UNKNOWN

    def _run_repeatedly(self, body: tuple[Step, ...], known: _Known) -> None:
        """What holds after any number of iterations."""
        names = _written(body)
        while True:
            after = dict(known)
            self._run(body, after)
            joined = {name: either(known.get(name, UNKNOWN), after.get(name, UNKNOWN)) for name in names}
            if all(known.get(name, UNKNOWN) == joined[name] for name in names):
                return
            known.update(joined)

    def _entries_of(self, term: Term, known: _Known, assumption: _Assumption | None = None) -> Entries:
        return EntriesOf(self._table, known, (assumption or {}).get, self._finite).of(term)

    def _product_entries(self, step: Product, known: _Known) -> Entries:
        right = step.right
        if isinstance(right, PackedOperand):
            right = Local(right.name)
        elif isinstance(right, PreparedOperand | PackedInPassing):
            right = right.source
        return self._entries_of(Apply("dot", (step.left, right)), known)

    # Items: entrywise steps, folds of rows, and loops over rows with several of these

    def _item_axes(self, step: Step) -> _Axes | None:
        """The axes of the blocks over which an item runs; None for other steps."""
        found = {axes for part in _parts(step) if len(axes := self._axes(part)) == 2}
        if len(found) != 1:
            return None
        ((row, column),) = found
        return row, column

    def _axes(self, part: Assign | Fold) -> tuple[str, ...]:
        if isinstance(part, Assign) and isinstance(part.target, LocalBlock):
            return part.target.type.axes
        return self._axes_of(part.expression if isinstance(part, Assign) else part.fold.operands[0])

    def _axes_of(self, term: Term) -> tuple[str, ...]:
        return self._typing.block(term).axes

    # Assumptions

    def _limit(self, steps: tuple[Step, ...], axes: _Axes, known: _Known) -> None:
        """Limits the items over blocks with these axes, for one mask after another."""
        taken: frozenset[int] = frozenset()
        while True:
            conditions = self._conditions(steps, axes, taken)
            single = [(condition, value) for condition in conditions for value in (False, True)]
            found = [self._limits(steps, axes, known, {condition: value}, taken) for condition, value in single]
            limits = next((one for one in found if one.items), None)
            if limits is not None:
                hidden = {c: value for (c, value), one in zip(single, found, strict=True) if one == limits}
                visible = all_of(tuple(self._linear(c, not value) for c, value in hidden.items()))
                hides = any_of(tuple(self._linear(c, value) for c, value in hidden.items()))
            else:
                # Hidden where no condition holds; that one of them holds does not settle the others.
                limits = self._limits(steps, axes, known, dict.fromkeys(conditions, False), taken)
                hidden = {}
                visible, hides = any_of(tuple(self._linear(c, True) for c in conditions)), ALWAYS
            if not limits.items:
                return
            bounds = visible_blocks(visible, axes[1]) or LoopBounds()
            if bounds != LoopBounds() or hides != ALWAYS:
                self._apply(steps, limits, self._spans(axes, bounds, hides), hidden)
            taken |= set(limits.items)

    def _linear(self, condition: Term, holds: bool) -> Condition:
        return linear_condition(condition, holds, self._typing)

    def _conditions(self, steps: tuple[Step, ...], axes: _Axes, taken: frozenset[int]) -> list[Term]:
        """The conditions on columns by which items choose."""
        found: dict[Term, None] = {}
        for place, step in enumerate(steps):
            if place not in taken and self._item_axes(step) == axes:
                for part in _parts(step):
                    for condition in _conditions_of(part):
                        if axes[1] in condition.free:
                            found[condition] = None
        return [c for c in found if any(self._linear(c, holds) != ALWAYS for holds in (True, False))]

    def _limits(
        self, steps: tuple[Step, ...], axes: _Axes, known: _Known, assumption: _Assumption, taken: frozenset[int]
    ) -> _Limits:
        known = dict(known)
        hidden: _Known = {}  # the hidden entries of blocks
        items: list[int] = []
        values: dict[str, float] = {}
        products: set[int] = set()
        for place, step in enumerate(steps):
            products |= self._without_terms(step, axes, known | hidden)
            if place in taken or self._item_axes(step) != axes:
                self._run((step,), known)
                continue
            made: dict[str, float] = {}
            ignores, depends = True, False
            for part in _parts(step):
                if self._axes(part) == axes:
                    value = self._hidden_value(part, known | hidden, assumption)
                    ignores = ignores and value is not None
                    depends = depends or self._hidden_value(part, known, {}) is None
                    if isinstance(part, Assign) and value is not None:
                        hidden[part.target.name] = value
                        made[part.target.name] = value.value
                self._run((part,), known)
            if ignores and depends:
                items.append(place)
                values |= made
        return _Limits(tuple(items), values, frozenset(products))

    def _without_terms(self, step: Step, axes: _Axes, known: _Known) -> set[int]:
        """The products in a step to which hidden entries of their left operand add nothing."""
        match step:
            case Product(_, left):
                is_nothing = isinstance(self._product_entries(step, known), Constant)  # which is 0, for a sum
                return {id(step)} if is_nothing and self._typing.block(left).axes == axes else set()
            case Repeat(_, body):
                known = {name: entries for name, entries in known.items() if name not in _written(body)}
                found: set[int] = set()
                for inner in body:
                    found |= self._without_terms(inner, axes, known)
                    self._run((inner,), known)
                return found
            case _:
                return set()

    def _hidden_value(self, part: Assign | Fold, known: _Known, assumption: _Assumption) -> Constant | None:
        """What a step makes of a hidden entry, where that is a number by the assumption and, for a fold, neutral."""
        if isinstance(part, Assign):
            is_block = isinstance(part.target, LocalBlock) and not part.target.list_indices
            if not is_block or self._writers[part.target.name] > 1:
                return None
            term = part.expression
        else:
            operator = self._table.operators[part.fold.operator]
            signature = signature_of(operator, (2,))
            if folded_letter(signature) != signature.operands[0][-1]:
                return None
            (term,) = part.fold.operands
        entries = self._entries_of(term, known, assumption)
        if not isinstance(entries, Constant):
            return None
        if isinstance(part, Fold):
            identity = self._table.monoids[self._table.operators[part.fold.operator].fold].identity[0]
            return entries if entries.value == identity else None
        return entries

    # Limiting steps

    def _spans(self, axes: _Axes, bounds: LoopBounds, hides: Condition) -> Spans:
        row, column = axes
        begin = self._make_block(f"{column}_begin", (row,), Element.INDEX)
        past = self._make_block(f"{column}_past", (row,), Element.INDEX)
        whole = self._make_block(f"{row}_whole", (row,), Element.BOOL)
        return Spans(axes, begin, past, whole, bounds, hides)

    def _apply(self, steps: tuple[Step, ...], limits: _Limits, spans: Spans, hidden: _Assumption) -> None:
        limited = {id(part) for place in limits.items for part in _parts(steps[place])}
        for place in limits.items:
            step = steps[place]
            rows = step if isinstance(step, Rows) else Rows(spans.axes[0], (RowPass(_parts(step)),))
            made = [part.target for part in _parts(step) if isinstance(part, Assign)]
            filled = tuple(
                (target, limits.values[target.name])
                for target in made
                if isinstance(target, LocalBlock) and self._is_read_by_others(target.name, limited)
            )
            self._replaced[id(step)] = SpannedRows(rows, self._settled(rows, hidden), spans, filled)
        inside = list(walk_steps(steps))
        here = set(map(id, inside))
        for step in inside:
            if not (isinstance(step, Product) and isinstance(step.right, PackedOperand)):
                continue
            target = step.target
            name = target.name
            is_own = all(id(leaf) in here for leaf in self._leaves if name in names_written(leaf))
            if id(step) in limits.products:
                self._replaced[id(step)] = replace(step, terms=spans)
            elif not isinstance(target, LocalBlock) or target.type.axes != spans.axes:
                continue
            elif is_own and not self._is_read_by_others(name, limited):
                self._replaced[id(step)] = replace(step, wanted=spans)
        self._found.setdefault(id(steps), []).append(FindSpans(spans))

    def _is_read_by_others(self, name: str, limited: set[int]) -> bool:
        """Whether a step that is not limited reads a block, other than by adding a product to it."""
        return any(
            name in names_read(replace(step, accumulate=False) if isinstance(step, Product) else step)
            for step in self._leaves
            if id(step) not in limited
        )

    def _settled(self, rows: Rows, hidden: _Assumption) -> Rows:
        """The loop over rows for a row of which nothing is hidden."""

        @cache
        def chosen(term: Term) -> Term:
            operands = tuple(map(chosen, term.children))
            if not isinstance(term, Apply):
                return term.with_children(operands)
            if term.operator == "where" and term.children[0] in hidden:
                branch = operands[2 if hidden[term.children[0]] else 1]
                element = self._typing.block(term).element
                if element is not None and self._typing.block(branch).element is not element:
                    return Cast(element.value, branch)
                return branch
            if not self._table.operators[term.operator].is_elementwise:
                # It needs whole blocks, even of a number.
                pairs = zip(operands, term.children, strict=True)
                operands = tuple(new if self._axes_of(new) == self._axes_of(old) else old for new, old in pairs)
            return term.with_children(operands)

        def settled(part: Assign | Fold) -> Assign | Fold:
            if isinstance(part, Assign):
                return replace(part, expression=chosen(part.expression))
            fold = chosen(part.fold)
            assert isinstance(fold, Apply)
            return replace(part, fold=fold)

        return Rows(rows.axis, tuple(RowPass(tuple(map(settled, one.steps))) for one in rows.passes))


def _parts(step: Step) -> tuple[Assign | Fold, ...]:
    if isinstance(step, Rows):
        return step.steps
    return (step,) if isinstance(step, Assign | Fold) else ()


def _conditions_of(part: Assign | Fold) -> list[Term]:
    """The conditions by which a step chooses."""
    terms = walk(part.expression if isinstance(part, Assign) else part.fold)
    return [term.operands[0] for term in terms if isinstance(term, Apply) and term.operator == "where"]


def _written(steps: tuple[Step, ...]) -> frozenset[str]:
    return frozenset[str]().union(*map(names_written, steps))
