"""Takes a kernel's block statements apart into the steps of a GPU.

Blocks that are read come to shared memory first; folds and products get blocks of their own in registers. What threads
need in another order than they hold it (a vector along the columns of a matrix, a transposed or a right operand) is
published to shared memory. A product is done on tensor cores where both operands come from tensors of one 16-bit type,
or of f32 where the user lets them be rounded to tf32.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bbrewrite.codegen.cuda.axes import loop_axes, places_among
from bbrewrite.codegen.cuda.memory import KernelMemory
from bbrewrite.codegen.cuda.steps import (
    Assign,
    Fold,
    GpuKernel,
    Product,
    Publish,
    Remark,
    Repeat,
    Stage,
    Step,
    Tile,
    TileView,
    names_used,
    walk_steps,
)
from bbrewrite.codegen.describe import describe
from bbrewrite.codegen.scalars import folded_letter, operand_positions, signature_of, value_element
from bbrewrite.codegen.targets import addends_of, list_indices
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Cast, Local, Number, Read, Term, is_transpose, rewrite_bottom_up, untransposed
from bbrewrite.core.widening import unwidened
from bbrewrite.plan.kernel import (
    Kernel,
    Let,
    LocalBlock,
    Loop,
    Statement,
    Store,
    Update,
    compute_element,
)

NARROW = frozenset({Element.F16, Element.BF16})


def flatten(kernel: Kernel, table: OperatorTable, tf32: bool = False) -> GpuKernel:
    """The kernel's steps, without synchronisation. Raises BlockTypeError for an ill-typed expression."""
    memory = KernelMemory(kernel, table, NARROW | {Element.F32} if tf32 else NARROW)
    steps = _with_unrolled(_statements(memory, kernel.body, frozenset(kernel.grid)), memory)
    used = {name for step in walk_steps(steps) for name in names_used(step)}
    entries = _entry_tiles(steps, memory)
    return GpuKernel(
        steps,
        tuple(block for block in memory.blocks.values() if block.name in used),
        tuple(memory.tiles.values()),
        tuple(memory.scratch.values()),
        entries,
        entries | _read_by_column(steps),
    )


@dataclass
class _Scope:
    """A list of steps under construction: copies that it begins, what follows, and what has been published in it."""

    stages: dict[Read, Stage] = field(default_factory=dict[Read, Stage])
    steps: list[Step] = field(default_factory=list[Step])
    published: dict[tuple[str, Element], Tile] = field(default_factory=dict[tuple[str, Element], Tile])

    def wrote(self, names: frozenset[str]) -> None:
        """Forgets what was published of blocks that have changed."""
        for key in list(self.published):
            if key[0] in names:
                del self.published[key]

    @property
    def all_steps(self) -> tuple[Step, ...]:
        # Copies begin as early as they can, so that they arrive while something else is computed.
        return (*self.stages.values(), *self.steps)


def _statements(memory: KernelMemory, body: tuple[Statement, ...], bound: frozenset[str]) -> tuple[Step, ...]:
    """Steps of a list of statements inside loops over `bound`."""
    scope = _Scope()
    for statement in body:
        if isinstance(statement, Loop):
            inner = _statements(memory, statement.body, bound | {statement.index})
            scope.steps.append(Repeat(statement.index, inner, bounds=statement.bounds, share=statement.share))
            scope.wrote(frozenset(name for step in walk_steps(inner) for name in names_used(step)))
            continue
        assert isinstance(statement, Let | Update | Store), "reductions are not split among the blocks of a grid"
        if isinstance(statement, Let) and statement.target.name in memory.views:
            assert isinstance(statement.expression, Read)
            scope.steps.append(Stage(memory.views[statement.target.name], statement.expression))
            continue
        target = statement.tensor if isinstance(statement, Store) else statement.target
        unbound = [index for index in list_indices(target) if index not in bound]
        remark = Remark(describe(statement, memory.table))
        if unbound:
            inner_scope = _Scope()
            _StatementFlattener(memory, inner_scope, target).run(statement.expression)
            steps: tuple[Step, ...] = (*inner_scope.all_steps,)
            for index in reversed(unbound):
                steps = (Repeat(index, steps),)
            scope.steps += (remark, *steps)
        else:
            scope.steps.append(remark)
            _StatementFlattener(memory, scope, target).run(statement.expression)
        scope.wrote(frozenset({target.name}))
    return scope.all_steps


class _StatementFlattener:
    """Flattens one statement into a scope."""

    def __init__(self, memory: KernelMemory, scope: _Scope, target: LocalBlock | Tensor) -> None:
        self._memory = memory
        self._scope = scope
        self._target = target
        self._table = memory.table
        self._typing = memory.typing
        self._done: dict[Term, Local] = {}

    def run(self, expression: Term) -> None:
        expression = rewrite_bottom_up(expression, self._simplified)
        target = self._target
        if isinstance(target, LocalBlock):
            addends = addends_of(expression, self._typing)
            own = Local(target.name, target.list_indices)
            products = [addend for addend in addends if self._adds_to_target(addend, target)]
            others = [addend for addend in addends if addend not in products]
            if products and others in ([], [own]):
                if not others:
                    self._scope.steps.append(Assign(target, Number(0.0)))
                for product in products:
                    self._product(product, target)
                return
            if self._is_fold(expression) and compute_element(target.type.element) is not Element.BOOL:
                assert isinstance(expression, Apply)
                self._fold(expression, target)
                return
        self._scope.steps.append(Assign(target, self._assigned(expression)))

    def _simplified(self, term: Term) -> Term:
        match term:
            case Apply("power", (base, Number(2.0))):
                element = self._typing.block(term).element
                own = self._typing.block(base).element
                whole = base if element is None or element is own else Cast(element.value, base)
                return Apply("multiply", (whole, whole))
            case Apply("transpose", (Apply("transpose", (inner,)),)):
                return inner
            case _:
                return term

    def _adds_to_target(self, term: Term, target: LocalBlock) -> bool:
        return (
            isinstance(term, Apply)
            and term.operator == "dot"
            and self._typing.block(term).axes == target.type.axes
            and self._product_element(term) is compute_element(target.type.element)
        )

    # Expressions: what is left after folds and products have blocks of their own

    def _entrywise(self, term: Term) -> Term:
        """The expression over tiles, and over blocks in registers at the entry that is computed."""
        own = self._typing.block(term).axes
        return self._placed(self._without_folds(term), tuple(range(len(own))), {})

    def _assigned(self, term: Term) -> Term:
        """The same for the statement's target, whose axes may be in another order, or more."""
        own = self._typing.block(term).axes
        axes = loop_axes(self._target, own, self._memory.kernel.indices)
        return self._placed(self._without_folds(term), places_among(own, axes), {})

    def _without_folds(self, term: Term) -> Term:
        def change(node: Term) -> Term:
            if not isinstance(node, Apply) or not self._table.operators[node.operator].fold:
                return node
            if node not in self._done:
                self._done[node] = self._folded(node)
            return self._done[node]

        # Operands of folds and products are taken apart by those themselves, from the outside in.
        if isinstance(term, Apply) and self._table.operators[term.operator].fold:
            return change(term)
        return term.with_children(tuple(self._without_folds(child) for child in term.children))

    def _folded(self, node: Apply) -> Local:
        kind = self._typing.block(node)
        if node.operator == "dot":
            target = self._memory.temporary("dot", kind.axes, self._product_element(node))
            self._scope.steps.append(Assign(target, Number(0.0)))
            self._product(node, target)
        else:
            element = value_element(node, self._context, self._typing)
            # Truth values are counted, or compared as 0 and 1.
            kept = Element.INDEX if element is Element.BOOL else element
            target = self._memory.temporary(node.operator, kind.axes, kept)
            self._fold(node, target)
        return Local(target.name)

    @property
    def _context(self) -> Element:
        element = self._target.element if isinstance(self._target, Tensor) else self._target.type.element
        element = compute_element(element)
        return element if element.is_float else Element.F32

    def _placed(self, term: Term, places: tuple[int, ...], known: dict[tuple[Term, tuple[int, ...]], Term]) -> Term:
        """A fold-free term with its leaves replaced by what holds the entry at these places of the result's axes."""
        key = term, places
        if key not in known:
            known[key] = self._placed_fresh(term, places, known)
        return known[key]

    def _placed_fresh(
        self, term: Term, places: tuple[int, ...], known: dict[tuple[Term, tuple[int, ...]], Term]
    ) -> Term:
        match term:
            case Apply():
                ranks = tuple(len(self._typing.block(operand).axes) for operand in term.operands)
                inner = operand_positions(self._table.operators[term.operator], ranks, places)
                operands = [self._placed(o, p, known) for o, p in zip(term.operands, inner, strict=True)]
                return Apply(term.operator, tuple(operands), term.indices)
            case Cast(element, value):
                return Cast(element, self._placed(value, places, known))
            case Read() if self._memory.is_staged(term):
                return self._entry_of(self._staged(term), (), places)
            case Local(name, lists) if name in self._memory.views:
                return self._entry_of(self._memory.views[name], lists, places)
            case Local(_, _) if not _is_own(places):
                return self._entry_of(self._published(term, None), (), places)
            case _:
                return term

    def _entry_of(self, tile: Tile, lists: tuple[str, ...], places: tuple[int, ...]) -> Local:
        if not _is_own(places):
            self._memory.read_across.add(tile.name)
        return Local(tile.name, lists)

    def _is_fold(self, term: Term) -> bool:
        return isinstance(term, Apply) and bool(self._table.operators[term.operator].fold) and term.operator != "dot"

    def _fold(self, fold: Apply, target: LocalBlock) -> None:
        (operand,) = fold.operands
        axes = self._typing.block(operand).axes
        signature = signature_of(self._table.operators[fold.operator], (len(axes),))
        along_columns = len(axes) == 2 and folded_letter(signature) == signature.operands[0][1]
        columns = axes[1] if len(axes) == 2 else ""
        scratch = None if along_columns else self._memory.scratch_for(columns, compute_element(target.type.element))
        entry = self._placed(self._without_folds(operand), tuple(range(len(axes))), {})
        self._scope.steps.append(Fold(target, Apply(fold.operator, (entry,), fold.indices), scratch))

    # Shared memory

    def _staged(self, read: Read) -> Tile:
        stages = self._scope.stages
        if read not in stages:
            stages[read] = Stage(self._memory.tile(read.tensor, read), read)
        return stages[read].tile

    def _published(self, local: Local, narrow: Element | None) -> Tile:
        block = self._memory.blocks[local.name]
        element = narrow or compute_element(block.type.element)
        key = local.name, element
        published = self._scope.published
        if key not in published:
            published[key] = self._memory.tile(local.name, block, narrow=narrow)
            self._scope.steps.append(Publish(published[key], block))
        return published[key]

    # Products

    def _product_element(self, term: Term) -> Element:
        element = compute_element(self._typing.block(term).element)
        return Element.INDEX if element is Element.BOOL else element

    def _product(self, product: Term, target: LocalBlock) -> None:
        left, right = map(unwidened, product.children)
        # Of what is loaded as it is nothing is rounded, so that marks on it mean nothing.
        is_computed = None in map(self._loaded_element, (left, right))
        operands = product.children if is_computed else (left, right)
        types = {self._loaded_element(operand) or self._memory.natural.element(operand) for operand in operands}
        narrow = types.pop() if len(types) == 1 and types <= self._memory.tensor_core_types else None
        if narrow is Element.F32:
            # Operands of tf32 are f32 in memory.
            left, right = operands
        contracted = self._typing.block(left).axes[1]
        right_view = self._view(right, narrow)
        left_view = self._view_of_leaf(left) or self._left_in_registers(left, narrow)
        self._scope.steps.append(Product(target, left_view, right_view, contracted, narrow))

    def _loaded_element(self, term: Term) -> Element | None:
        """The type in which an operand is loaded to shared memory; None where it is computed."""
        leaf = untransposed(term)
        if isinstance(leaf, Read) and self._memory.is_staged(leaf):
            return self._memory.tensors[leaf.tensor].element
        view = self._memory.views.get(leaf.name) if isinstance(leaf, Local) else None
        return None if view is None else view.element

    def _left_in_registers(self, left: Term, narrow: Element | None) -> TileView | LocalBlock:
        """Tensor cores take the left operand from the registers in which it was computed."""
        if narrow is None or is_transpose(left):
            return self._view(left, narrow)
        return self._in_block(left)

    def _view_of_leaf(self, term: Term) -> TileView | None:
        """The term as a tile that is in shared memory anyway."""
        transposed = is_transpose(term)
        leaf = term.children[0] if transposed else term
        if self._memory.is_staged(leaf):
            assert isinstance(leaf, Read)
            return TileView(self._staged(leaf), transposed)
        if isinstance(leaf, Local) and leaf.name in self._memory.views:
            return TileView(self._memory.views[leaf.name], transposed)
        return None

    def _view(self, term: Term, narrow: Element | None) -> TileView:
        """The term in shared memory."""
        found = self._view_of_leaf(term)
        if found is not None:
            return found
        transposed = is_transpose(term)
        block = self._in_block(term.children[0] if transposed else term)
        return TileView(self._published(Local(block.name, block.list_indices), narrow), transposed)

    def _in_block(self, term: Term) -> LocalBlock:
        """The term as a block in registers."""
        plain = self._without_folds(term)
        if isinstance(plain, Local) and plain.name in self._memory.blocks and plain.name not in self._memory.views:
            return self._memory.blocks[plain.name]
        element = value_element(term, self._context, self._typing)
        stem = term.operator if isinstance(term, Apply) else "block"
        block = self._memory.temporary(stem, self._typing.block(term).axes, element)
        self._scope.steps.append(Assign(block, self._entrywise(plain)))
        return block


def _with_unrolled(steps: tuple[Step, ...], memory: KernelMemory) -> tuple[Step, ...]:
    """Loops that address lists in registers unrolled: registers have no addresses at run time."""
    lists = {block.name: block.list_indices for block in memory.blocks.values() if block.name not in memory.views}
    result: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            inside = {name for inner in walk_steps(step.body) for name in names_used(inner)}
            unrolled = any(step.index in lists.get(name, ()) for name in inside)
            result.append(replace(step, body=_with_unrolled(step.body, memory), unrolled=unrolled))
        else:
            result.append(step)
    return tuple(result)


def _entry_tiles(steps: tuple[Step, ...], memory: KernelMemory) -> frozenset[str]:
    """The tiles that threads read in pairs of entries.

    Products take most registers, which pairs would want more of (a norm before three products of tf32 spilled); without
    them a kernel waits for its memory.
    """
    if any(isinstance(step, Product) for step in walk_steps(steps)):
        return frozenset()
    return frozenset(t.name for t in memory.tiles.values() if len(t.axes) == 2) - memory.read_across


def _read_by_column(steps: tuple[Step, ...]) -> frozenset[str]:
    """The tiles from which products of tf32 read single entries or pairs: fragments come whole from rows alone.

    With the left operand in registers it is the other way: a thread has neighbours, which lie in rows in pairs.
    """
    found: set[str] = set()
    for step in walk_steps(steps):
        if isinstance(step, Product) and step.narrow is Element.F32:
            views = [view for view in (step.left, step.right) if isinstance(view, TileView)]
            found |= {view.tile.name for view in views if view.transposed == (len(views) == 2)}
    return frozenset(found)


def _is_own(places: tuple[int, ...]) -> bool:
    """Whether the places of an entry are those at which a thread has it."""
    return places == tuple(range(len(places)))
