"""The steps of a kernel: what remains of its statements when block operators are taken apart.

Every step is a simple loop nest: entry by entry, a fold over one axis, a packing, or a block product. A generator for
any target prints steps; `flatten.py` makes them from a kernel's statements. Nothing here is specific to C++.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bbrewrite.core.addresses import index_address
from bbrewrite.core.elements import Element
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import Apply, Local, Read, Term, walk
from bbrewrite.plan.kernel import LocalBlock, compute_element
from bbrewrite.plan.masks.visible import Condition, LoopBounds, condition_reads


def kept_element(block: LocalBlock) -> Element:
    """The type in which a block lies in local memory: bf16 if it was rounded for a product, else a compute type."""
    return Element.BF16 if block.type.element is Element.BF16 else compute_element(block.type.element)


@dataclass(frozen=True)
class PackedOperand:
    """A buffer for a packed right operand of block products, of at most `contracted` by `columns` elements.

    With `kept` there is a buffer for every position of these indices, and what has been packed there is used again for
    as long as those in `per` stay where they are.
    """

    name: str
    contracted: int
    columns: int
    element: Element  # a compute type, or BF16
    kept: tuple[str, ...] = ()
    per: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedOperand:
    """A block of a weight that was packed whole, ahead of calls; `transposed` as for `Pack`."""

    source: Read
    transposed: bool
    element: Element  # a compute type, or BF16


@dataclass(frozen=True)
class PackedInPassing:
    """A block of a right operand that its product packs while it multiplies the first rows, panel by panel.

    The next product takes the next block along the first index of `moved`; after the last one the first one again, and
    the next along the second, and so on.
    """

    panel: PackedOperand
    source: Read | Local
    moved: tuple[str, ...]


@dataclass(frozen=True)
class Assign:
    """Computes every entry of a local block, or of the block of a tensor in global memory, by itself.

    The expression has no folds and no products, and reads the target at the entry that is written or not at all.
    """

    target: LocalBlock | Tensor
    expression: Term


@dataclass(frozen=True)
class Fold:
    """`target = fold`, where `fold` applies an operator that combines along one axis; its operands have no folds."""

    target: LocalBlock
    fold: Apply


@dataclass(frozen=True)
class Pack:
    """Packs a block of a tensor or a local block; `transposed` where its rows are the product's columns."""

    packed: PackedOperand
    source: Read | Local
    transposed: bool


@dataclass(frozen=True)
class Spans:
    """For each row of blocks over two axes, a run of columns outside which a mask hides every entry.

    Row r has columns `begin[r]` to before `past[r]`, counted from the block's first one, and is whole where nothing of
    it is hidden. Columns that `bounds` leave out are hidden; a row may be hidden in part where `hides` is possible.
    """

    axes: tuple[str, str]
    begin: LocalBlock
    past: LocalBlock
    whole: LocalBlock
    bounds: LoopBounds
    hides: Condition


@dataclass(frozen=True)
class FindSpans:
    """Computes the spans of the current blocks."""

    spans: Spans


@dataclass(frozen=True)
class Product:
    """`target = left times right`, or added to the target where `accumulate`. The left operand has dense rows.

    The right one is packed, now, ahead or in passing, or is used where it lies; its rows are dense then, with columns
    that are the target's.

    In the first iteration of a loop over the index `sets_first`, if any, the product is not added: the target has no
    value yet.

    With `wanted`, entries of the target outside these spans may have any value. With `terms`, the left operand is zero
    outside these spans, and what it meets there does not count.
    """

    target: LocalBlock | Tensor
    left: Read | Local
    right: PackedOperand | PreparedOperand | PackedInPassing | Read | Local
    accumulate: bool
    sets_first: str = ""
    wanted: Spans | None = None
    terms: Spans | None = None


@dataclass(frozen=True)
class RowPass:
    """Steps for one row, entry by entry in this order; only the last one may be a fold of the row.

    Beside such a fold `quarters` of what its loop does for other rows are done.
    """

    steps: tuple[Assign | Fold, ...]
    quarters: int = 0


@dataclass(frozen=True)
class Rows:
    """A loop over the rows of the blocks along `axis`: all passes for a row, then the next row.

    Beside its passes the next row of the blocks that `ahead` reads is fetched from memory, and where results go past
    the caches, `behind`, the last of the steps, is done for the row before.
    """

    axis: str
    passes: tuple[RowPass, ...]
    ahead: tuple[Read, ...] = ()
    behind: Assign | None = None

    @property
    def steps(self) -> tuple[Assign | Fold, ...]:
        """The steps of all passes."""
        return tuple(step for one in self.passes for step in one.steps)


@dataclass(frozen=True)
class SpannedRows:
    """A loop over rows whose entries outside `spans` need no work; `whole` is what is done for rows that are whole.

    The blocks named in `filled` get a number for their entries outside the spans.
    """

    rows: Rows
    whole: Rows
    spans: Spans
    filled: tuple[tuple[LocalBlock, float], ...]


@dataclass(frozen=True)
class Repeat:
    """A serial loop over the blocks or positions of an index; processors share out the iterations of a `shared` one.

    With `bounds` it visits only some of the blocks.
    """

    index: str
    body: tuple[Step, ...]
    shared: bool = False
    bounds: LoopBounds | None = None


@dataclass(frozen=True)
class WhereEmpty:
    """Steps that are done only where an index has no position at all."""

    index: str
    body: tuple[Step, ...]


@dataclass(frozen=True)
class FirstOrLater:
    """In a loop over an index, steps for the first iteration, and steps for all others."""

    index: str
    first: tuple[Step, ...]
    later: tuple[Step, ...]


@dataclass(frozen=True)
class Combine:
    """`target` = every processor's `source`, entry by entry, in the processors' order."""

    target: LocalBlock
    source: LocalBlock
    monoid: str


@dataclass(frozen=True)
class Wait:
    """Every processor waits for all others."""


@dataclass(frozen=True)
class ByFirst:
    """Steps that the first of several processors does alone."""

    body: tuple[Step, ...]


@dataclass(frozen=True)
class Remark:
    """The block statement that the following steps carry out, for the reader of the generated source."""

    text: str


type Step = (
    Assign
    | Fold
    | Pack
    | Product
    | Rows
    | Repeat
    | WhereEmpty
    | FirstOrLater
    | Combine
    | Wait
    | ByFirst
    | Remark
    | FindSpans
    | SpannedRows
)


@dataclass(frozen=True)
class FlatKernel:
    """A kernel's steps, and the local memory that they use: the kernel's own blocks, temporaries, packed operands.

    Of the blocks named in `single_rows` only one row exists at a time, of those of them in `single_entries` one entry,
    of those in `row_pairs` two rows. The tensors in `streamed` may be stored past the caches. Blocks of the rows in
    `stored_rows` may be smaller than planned: of what is contracted with each, and of which type it is.
    """

    steps: tuple[Step, ...]
    blocks: tuple[LocalBlock, ...]
    packed: tuple[PackedOperand, ...]
    single_rows: frozenset[str] = frozenset()
    single_entries: frozenset[str] = frozenset()
    row_pairs: frozenset[str] = frozenset()
    streamed: frozenset[Tensor] = frozenset()
    stored_rows: tuple[tuple[str, str, Element], ...] = ()


def with_body(
    step: Step, loops: tuple[str, ...], visit: Callable[[tuple[Step, ...], tuple[str, ...]], tuple[Step, ...]]
) -> Step:
    """A step inside loops over these indices, with its body as `visit` makes it of the body and the loops around it."""
    match step:
        case Repeat(index, body):
            return replace(step, body=visit(body, (*loops, index)))
        case WhereEmpty(_, body):
            return replace(step, body=visit(body, loops))
        case _:
            return step


def inner_steps(step: Step) -> tuple[Step, ...]:
    """The steps inside a step."""
    match step:
        case Repeat(_, body) | WhereEmpty(_, body) | ByFirst(body):
            return body
        case FirstOrLater(_, first, later):
            return (*first, *later)
        case Rows():
            return step.steps
        case SpannedRows(rows):
            return (rows,)
        case _:
            return ()


def walk_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step, outer ones before those inside."""
    for step in steps:
        yield step
        yield from walk_steps(inner_steps(step))


def written_place(target: LocalBlock | Tensor) -> Read | Local:
    """The leaf that stands for the place where a step writes."""
    if isinstance(target, LocalBlock):
        return Local(target.name, target.list_indices)
    return Read(target.name, tuple(map(index_address, target.indices)))


def leaves_read(step: Step) -> Iterator[Read | Local]:
    """Every place that a step by itself reads; a product's target counts where it is added to."""
    match step:
        case Assign(_, term) | Fold(_, term) | Pack(_, term):
            yield from (leaf for leaf in walk(term) if isinstance(leaf, Read | Local))
        case Product(target, left, right):
            yield left
            if isinstance(right, PackedInPassing):
                yield right.source
            elif isinstance(right, Read | Local):
                yield right
            if step.accumulate:
                yield written_place(target)
        case Combine(_, source):
            yield Local(source.name, source.list_indices)
        case Repeat(_, _, _, LoopBounds() as bounds):
            yield from bounds.reads
        case FindSpans(spans):
            yield from spans.bounds.reads
            yield from condition_reads(spans.hides)
        case _:
            pass


def names_read(step: Step) -> frozenset[str]:
    """The blocks, packed operands and tensors that a step reads, with the steps inside."""
    names = {leaf_name(leaf) for one in walk_steps((step,)) for leaf in leaves_read(one)}
    products = [one for one in walk_steps((step,)) if isinstance(one, Product)]
    return frozenset(names | {one.right.name for one in products if isinstance(one.right, PackedOperand)})


def names_written(step: Step) -> frozenset[str]:
    """The blocks, packed operands and tensors that a step writes, with the steps inside."""
    names: set[str] = set()
    for one in walk_steps((step,)):
        match one:
            case Assign(target) | Fold(target) | Product(target) | Combine(target):
                names.add(target.name)
            case Pack(packed):
                names.add(packed.name)
            case _:
                pass
    return frozenset(names)


def packed_operands(steps: tuple[Step, ...]) -> tuple[PackedOperand, ...]:
    """The buffers of packed operands that steps use, in order of first use."""
    found: dict[PackedOperand, None] = {}
    for step in walk_steps(steps):
        match step:
            case Pack(packed) | Product(right=PackedInPassing(packed)):
                found[packed] = None
            case _:
                pass
    return tuple(found)


def leaf_name(leaf: Read | Local) -> str:
    """The name of what is read."""
    return leaf.tensor if isinstance(leaf, Read) else leaf.name
