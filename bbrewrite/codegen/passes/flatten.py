"""Takes the block statements of a kernel apart into steps.

Folds and products inside an expression become temporary local blocks; so do costly vectors that are spread over a
matrix, and costly subterms that two steps need. `acc := e + dot(a, b)` becomes an assignment and a product that adds
to `acc`. What a step looks like in a target language is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bbrewrite.codegen.access import classify, is_row_contiguous
from bbrewrite.codegen.describe import describe
from bbrewrite.codegen.passes.conditions import with_conditions_in_place
from bbrewrite.codegen.passes.first_elements import with_first_elements
from bbrewrite.codegen.passes.first_iterations import without_fills
from bbrewrite.codegen.passes.local_memory import LocalMemory
from bbrewrite.codegen.passes.narrow import are_narrow, is_rounded, with_narrow_operands
from bbrewrite.codegen.passes.overlap import overlapping, read_by_the_row_before, streamable
from bbrewrite.codegen.passes.registers import cheap_rows, single_entries, without_rows
from bbrewrite.codegen.passes.rounded_once import with_operands_rounded_once
from bbrewrite.codegen.passes.rows import merge_rows, single_rows
from bbrewrite.codegen.passes.shared_subterms import shared_subterms
from bbrewrite.codegen.passes.spans import with_spans
from bbrewrite.codegen.passes.stored_sums import stored_sum
from bbrewrite.codegen.passes.views import without_views
from bbrewrite.codegen.passes.whole import without_single_iterations
from bbrewrite.codegen.scalars import entries, value_element, work_of
from bbrewrite.codegen.steps import (
    Assign,
    ByFirst,
    Combine,
    FlatKernel,
    Fold,
    Pack,
    PackedOperand,
    PreparedOperand,
    Product,
    Remark,
    Repeat,
    Step,
    Wait,
    kept_element,
    leaf_name,
    names_written,
)
from bbrewrite.codegen.targets import addends_of, list_indices
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.terms import (
    Apply,
    Cast,
    Local,
    Number,
    Read,
    Term,
    is_transpose,
    rewrite_bottom_up,
    untransposed,
    walk,
)
from bbrewrite.core.widening import is_widened, unwidened
from bbrewrite.plan.kernel import Barrier, Kernel, LocalBlock, Loop, Merge, Statement, Store, compute_element

# A subterm of at least this work (vector instructions) is worth a block of its own when it would be computed again.
_COSTLY = 4.0

# Products of at most so many rows do not repay packing their right operand.
_FEW_ROWS = 16


def flatten(kernel: Kernel, table: OperatorTable, prepared: frozenset[str] = frozenset()) -> FlatKernel:
    """The kernel's steps; weights named in `prepared` are packed ahead. Raises BlockTypeError for ill-typed kernels."""
    kernel = without_views(without_single_iterations(with_narrow_operands(kernel)))
    kernel = with_conditions_in_place(with_operands_rounded_once(kernel, table), table)
    memory = LocalMemory(kernel, table, prepared)
    steps = _statements(memory, kernel.body, kernel.whole.union(kernel.grid), kernel.is_split)
    steps = without_fills(steps)
    if stored := stored_sum(steps, kernel, memory.typing):
        return FlatKernel(stored.in_place(), (), (), stored_rows=(stored.rows,))
    steps = merge_rows(steps, kernel.indices, memory.typing, table)
    cheap = cheap_rows(steps, kernel.indices, memory.tensors, memory.typing, table)
    steps = without_rows(steps, cheap)
    rows, variables = single_rows(steps), single_entries(steps)
    finite = frozenset(tensor.name for tensor in kernel.reads if tensor.role in (Role.INPUT, Role.WEIGHT))
    steps = with_spans(steps, memory.typing, table, finite, memory.temporary)
    streamed = streamable(steps, kernel)
    steps = overlapping(steps, kernel.indices, memory.tensors, streamed, memory.typing, table)
    steps = with_first_elements(steps, kernel, table)
    pairs = rows & read_by_the_row_before(steps)
    blocks = tuple(block for block in memory.blocks.values() if block.name not in cheap)
    return FlatKernel(steps, blocks, tuple(memory.packed), rows - pairs, variables, pairs, streamed)


@dataclass
class _Scope:
    """A list of steps under construction, and what has been packed in it, by source, direction and type."""

    steps: list[Step] = field(default_factory=list[Step])
    packed: dict[tuple[Read | Local, bool, Element], PackedOperand] = field(
        default_factory=dict[tuple[Read | Local, bool, Element], PackedOperand]
    )
    borrowed: list[PackedOperand] = field(default_factory=list[PackedOperand])

    def wrote(self, names: frozenset[str]) -> None:
        """Forgets packed operands whose source has changed."""
        for key in list(self.packed):
            if leaf_name(key[0]) in names:
                del self.packed[key]


def _statements(
    memory: LocalMemory, body: tuple[Statement, ...], bound: frozenset[str], together: bool
) -> tuple[Step, ...]:
    """Steps of a list of statements inside loops over `bound`; `together` where all processors do the same."""
    scope = _Scope()
    for statement in body:
        if isinstance(statement, Loop):
            inner = _statements(memory, statement.body, bound | {statement.index}, together and not statement.shared)
            scope.steps.append(Repeat(statement.index, inner, statement.shared, statement.bounds))
            scope.wrote(frozenset[str]().union(*map(names_written, inner)))
            continue
        if isinstance(statement, Barrier):
            scope.steps.append(Wait())
            continue
        remark = Remark(describe(statement, memory.table))
        if isinstance(statement, Merge):
            scope.steps += [remark, Combine(statement.target, statement.source, statement.monoid)]
            scope.wrote(frozenset({statement.target.name}))
            continue
        target = statement.tensor if isinstance(statement, Store) else statement.target
        unbound = [index for index in list_indices(target) if index not in bound]
        outside = statement.expression.free - bound - set(unbound)
        assert not outside, f"{remark.text} stands outside the loops over {', '.join(sorted(outside))}"
        alone = together and isinstance(statement, Store)
        if unbound or alone:
            # A whole local list is initialised at once; what one processor packs is not there for others.
            inner_scope = _Scope()
            _StatementFlattener(memory, inner_scope, target).run(statement.expression)
            steps = (remark, *inner_scope.steps)
            memory.unused += inner_scope.borrowed
            for index in reversed(unbound):
                steps = (Repeat(index, steps),)
            scope.steps += (ByFirst(steps),) if alone else steps
        else:
            scope.steps.append(remark)
            _StatementFlattener(memory, scope, target).run(statement.expression)
        scope.wrote(frozenset({target.name}))
    memory.unused += scope.borrowed
    return tuple(scope.steps)


class _StatementFlattener:
    """Flattens one statement: appends to the scope's steps and remembers the temporaries made for its subterms."""

    def __init__(self, memory: LocalMemory, scope: _Scope, target: LocalBlock | Tensor) -> None:
        self._memory = memory
        self._scope = scope
        self._target = target
        self._table = memory.table
        self._typing = memory.typing
        self._element = target.element.compute_type if isinstance(target, Tensor) else _block_element(target)
        self._shared: frozenset[Term] = frozenset()
        self._replaced: dict[Term, Term] = {}
        self._blocks: dict[tuple[Term, Element], Local] = {}

    def run(self, expression: Term) -> None:
        expression = rewrite_bottom_up(expression, self._simplified)
        self._shared = shared_subterms(expression, self._typing, self._table, _COSTLY)
        addends = addends_of(expression, self._typing)
        products = [addend for addend in addends if self._adds_to_target(addend)]
        if products and isinstance(self._target, LocalBlock):
            self._accumulate(self._target, [a for a in addends if a not in products], products)
        else:
            self._assign_to_target(expression)

    def _simplified(self, term: Term) -> Term:
        match term:
            case Apply("power", (base, Number(2.0))):
                element = self._typing.block(term).element
                whole = base if element is self._typing.block(base).element or element is None else _cast(element, base)
                return Apply("multiply", (whole, whole))
            case Apply("transpose", (Apply("transpose", (inner,)),)):
                return inner
            case _:
                return term

    # Whole statements

    def _adds_to_target(self, term: Term) -> bool:
        return (
            isinstance(self._target, LocalBlock)
            and _is_product(term)
            and self._typing.block(term).axes == self._target.type.axes
            and self._product_element(term) is _block_element(self._target)
        )

    def _accumulate(self, target: LocalBlock, others: list[Term], products: list[Term]) -> None:
        operands = [self._product_operands(product) for product in products]
        own = Local(target.name, target.list_indices)
        if others and others != [own]:
            total = others[0]
            for other in others[1:]:
                total = Apply("add", (total, other))
            self._assign(target, self._entrywise(total))
        for position, (left, packed) in enumerate(operands):
            self._scope.steps.append(Product(target, left, packed, accumulate=bool(others) or position > 0))

    def _assign_to_target(self, expression: Term) -> None:
        target = self._target
        if isinstance(target, LocalBlock) and self._is_fold(expression) and _block_element(target) is not Element.BOOL:
            assert isinstance(expression, Apply)
            fold = expression.with_children(tuple(self._entrywise(operand) for operand in expression.operands))
            reads_target = any(isinstance(leaf, Local) and leaf.name == target.name for leaf in walk(fold))
            if not reads_target and isinstance(fold, Apply):
                self._scope.steps.append(Fold(target, fold))
                return
        self._assign(target, self._entrywise(expression))

    def _assign(self, target: LocalBlock | Tensor, expression: Term) -> None:
        if isinstance(target, LocalBlock) and self._reads_elsewhere(target, expression):
            aside = self._memory.temporary(target.name, target.type.axes, _block_element(target))
            self._scope.steps.append(Assign(aside, expression))
            expression = Local(aside.name)
        self._scope.steps.append(Assign(target, expression))

    def _reads_elsewhere(self, target: LocalBlock, expression: Term) -> bool:
        """Whether some entry of the expression reads the target at another entry than the one it is for."""
        here = tuple(range(len(self._typing.block(expression).axes)))
        return any(
            isinstance(leaf, Local) and leaf.name == target.name and places != here
            for leaf, places in entries(expression, here, self._typing, self._table)
        )

    # Expressions: what is left after folds, products and costly parts have become temporaries

    def _entrywise(self, term: Term) -> Term:
        if term not in self._replaced:
            self._replaced[term] = self._replacement(term)
        return self._replaced[term]

    def _replacement(self, term: Term) -> Term:
        if not isinstance(term, Apply):
            return term.with_children(tuple(self._entrywise(child) for child in term.children))
        if _is_product(term):
            left, packed = self._product_operands(term)
            target = self._memory.temporary("dot", self._typing.block(term).axes, self._product_element(term))
            self._scope.steps.append(Product(target, left, packed, accumulate=False))
            return Local(target.name)
        operands = tuple(self._entrywise(operand) for operand in term.operands)
        if self._is_fold(term):
            fold = Apply(term.operator, operands, term.indices)
            element = self._value_element(fold)
            # Truth values are counted, or compared as 0 and 1.
            kept = Element.INDEX if element is Element.BOOL else element
            target = self._memory.temporary(term.operator, self._typing.block(fold).axes, kept)
            self._scope.steps.append(Fold(target, fold))
            return Local(target.name) if kept is element else _cast(element, Local(target.name))
        axes = self._typing.block(term).axes
        operands = tuple(self._in_block(o) if self._is_costly_spread(o, axes) else o for o in operands)
        rebuilt = Apply(term.operator, operands, term.indices)
        return self._in_block(rebuilt) if term in self._shared else rebuilt

    def _is_costly_spread(self, operand: Term, axes: tuple[str, ...]) -> bool:
        """Whether what is used again in every row or column had better be computed once: for it is much, or comes from
        memory an entry here and an entry there.
        """
        own = self._typing.block(operand).axes
        if not 0 < len(own) < len(axes):
            return False
        return work_of(operand, self._table) >= _COSTLY or (own == axes[-1:] and self._is_scattered(operand))

    def _is_scattered(self, term: Term) -> bool:
        """Whether neighbouring entries of something that a row is computed from are no neighbours in memory."""
        indices, tensors = self._memory.kernel.indices, self._memory.tensors
        return any(
            not is_row_contiguous(leaf, tensors[leaf.tensor], indices)
            for leaf in walk(term)
            if isinstance(leaf, Read) and self._typing.block(leaf).axes
        )

    def _is_fold(self, term: Term) -> bool:
        return isinstance(term, Apply) and bool(self._table.operators[term.operator].fold) and not _is_product(term)

    def _in_block(self, term: Term, element: Element | None = None) -> Local:
        """The value of an entrywise expression as a local block, computed once for the statement."""
        element = element or self._value_element(term)
        if (term, element) not in self._blocks:
            stem = term.operator if isinstance(term, Apply) else _stem(term)
            target = self._memory.temporary(stem, self._typing.block(term).axes, element)
            self._scope.steps.append(Assign(target, term))
            self._blocks[term, element] = Local(target.name)
        return self._blocks[term, element]

    def _value_element(self, term: Term) -> Element:
        return value_element(term, self._element if self._element.is_float else Element.F32, self._typing)

    # Products

    def _product_element(self, term: Term) -> Element:
        element = compute_element(self._typing.block(term).element)
        return Element.INDEX if element is Element.BOOL else element

    def _product_operands(self, product: Term) -> tuple[Read | Local, PackedOperand | PreparedOperand | Read | Local]:
        is_kept = any(is_widened(operand) for operand in product.children)
        left, right = map(unwidened, product.children)
        element = self._product_element(product)
        transposed = not is_transpose(right)
        right = untransposed(right)
        if are_narrow(left, right, self._memory.tensors, self._memory.kernel.indices):
            assert isinstance(left, Read)
            assert isinstance(right, Read)
            return left, self._packed(right, transposed, Element.BF16)
        # The right operand first: it may be packed from the target, which the left one is copied from.
        source = self._right_source(right, element)
        if not is_kept and is_rounded(left, source, self._memory.tensors, self._memory.natural):
            ready = self._packed(source, transposed, Element.BF16)
            left = self._entrywise(left)
            if isinstance(left, Local) and kept_element(self._memory.blocks[left.name]) is Element.BF16:
                return left, ready
            return self._in_block(left, Element.BF16), ready
        rows = self._memory.kernel.indices[self._typing.block(left).axes[0]].block or 1
        in_place = rows <= _FEW_ROWS and not transposed and self._has_dense_rows(source, element)
        in_place = in_place and not (isinstance(source, Read) and source.tensor in self._memory.prepared)
        ready = source if in_place else self._packed(source, transposed, element)
        return self._left_operand(left, element), ready

    def _left_operand(self, term: Term, element: Element) -> Read | Local:
        term = self._entrywise(term)
        if isinstance(term, Read | Local) and self._has_dense_rows(term, element):
            return term
        return self._in_block(term, element)

    def _has_dense_rows(self, leaf: Read | Local, element: Element) -> bool:
        """Whether the block can be an operand where it lies: of the type, apart from the target, its rows dense."""
        if isinstance(leaf, Local):
            return leaf.name != self._target.name and _block_element(self._memory.blocks[leaf.name]) is element
        tensor = self._memory.tensors[leaf.tensor]
        return tensor.element is element and is_row_contiguous(leaf, tensor, self._memory.kernel.indices)

    def _right_source(self, term: Term, element: Element) -> Read | Local:
        term = self._entrywise(term)
        match term:
            case Local(name) if _block_element(self._memory.blocks[name]) is not Element.BOOL:
                return term
            case Read() if classify(term, self._memory.kernel.indices).placed:
                return term
            case _:
                return self._in_block(term, element)

    def _packed(self, source: Read | Local, transposed: bool, element: Element) -> PackedOperand | PreparedOperand:
        if isinstance(source, Read) and source.tensor in self._memory.prepared:
            return PreparedOperand(source, transposed, element)
        key = source, transposed, element
        if key not in self._scope.packed:
            rows, columns = self._typing.block(source).axes
            contracted, wide = (columns, rows) if transposed else (rows, columns)
            packed = self._memory.packed_operand(contracted, wide, element)
            self._scope.borrowed.append(packed)
            self._scope.packed[key] = packed
            self._scope.steps.append(Pack(packed, source, transposed))
        return self._scope.packed[key]


def _is_product(term: Term) -> bool:
    return isinstance(term, Apply) and term.operator == "dot"


def _cast(element: Element, term: Term) -> Term:
    return Cast(element.value, term)


def _block_element(block: LocalBlock) -> Element:
    return compute_element(block.type.element)


def _stem(term: Term) -> str:
    return f"{leaf_name(term)}_block" if isinstance(term, Read | Local) else "block"
