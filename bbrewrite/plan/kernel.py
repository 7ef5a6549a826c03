"""The kernel form: small loop nests over blocks, from which every generator prints.

A kernel is one parallel launch. Its statements name blocks in local memory, load and store blocks of
tensors in global memory, and loop. Expressions are block terms whose leaves are numbers, sizes, index
values, `Read` (a load from global memory) and `Local` (a named block in local memory); they contain no
`Map`, `At`, `Reduce`, `Pair` or `Component`. Block sizes are compile-time, extents run-time; the last
block of an index may be partial, and block operators work on what is there.

What is not here: how a statement becomes machine code (codegen), and why this nest was chosen (schedule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Tensor
from bbrewrite.core.terms import IndexValue, Term, rewrite_bottom_up
from bbrewrite.core.types import BlockType
from bbrewrite.plan.masks.visible import LoopBounds, slope


@dataclass(frozen=True)
class LocalBlock:
    """A named block in local memory.

    `list_indices` make it a local list of blocks (a row of accumulators, a row of blocks kept local):
    one block for every position of those indices. `type.element` is a compute type, or NUMBER.
    """

    name: str
    type: BlockType
    list_indices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Let:
    """`target = expression`: computes a block and keeps it. Also initialises accumulators."""

    target: LocalBlock
    expression: Term


@dataclass(frozen=True)
class Update:
    """`target := expression`, where the expression may read the target's old value.

    `acc := acc + dot(a, b)` is how a sum of products accumulates. Where `combines` names a monoid and one of its
    components, the expression combines the target's old value, as this component of a state, with one more element.
    """

    target: LocalBlock
    expression: Term
    combines: tuple[str, int] | None = None


@dataclass(frozen=True)
class Store:
    """Writes a block to a tensor in global memory at the loop indices that are its indices."""

    tensor: Tensor
    expression: Term


@dataclass(frozen=True)
class Loop:
    """A serial loop over the blocks of an index, or over its positions where it is a point index.

    The iterations of a `shared` loop are shared out among the processors, in contiguous runs. With `bounds` only some
    of the blocks are visited: the iterations of the others would change nothing. Where `share` names an index of the
    grid, those that are visited are shared out among its positions in runs of equal length.
    """

    index: str
    body: tuple[Statement, ...]
    shared: bool = False
    bounds: LoopBounds | None = None
    share: str = ""


@dataclass(frozen=True)
class Merge:
    """`target` = every processor's `source`, combined by a monoid of one component, in the processors' order."""

    target: LocalBlock
    source: LocalBlock
    monoid: str


@dataclass(frozen=True)
class Barrier:
    """Every processor waits for all others."""


type Statement = Let | Update | Store | Loop | Merge | Barrier


@dataclass(frozen=True)
class Kernel:
    """One parallel launch: `body` runs for every combination of blocks of the `grid` indices.

    A split kernel has no grid: all processors run the body together, each with its own local blocks. They share out
    the iterations of its `shared` loops, and a `Store` outside those is done by the first processor alone.

    `indices` holds the chosen block sizes. `reads` and `writes` are the tensors touched, in order of
    first use: together with the root extents they are the kernel's arguments. Along the indices in `whole` a block
    was chosen to span the whole extent: a generator may take blocks as long as the extent at hand for them, whatever it
    is, so that their loops have one iteration.
    """

    name: str
    indices: IndexTable
    grid: tuple[str, ...]
    body: tuple[Statement, ...]
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    whole: frozenset[str] = frozenset()

    @property
    def is_split(self) -> bool:
        """Whether processors run the body together."""
        return any(
            isinstance(statement, Merge) or (isinstance(statement, Loop) and statement.shared)
            for statement in walk_statements(self.body)
        )

    @property
    def is_uneven(self) -> bool:
        """Whether masks make some cells of the grid do less than others."""
        loops = [statement for statement in walk_statements(self.body) if isinstance(statement, Loop)]
        leaves = [leaf for loop in loops if loop.bounds for leaf in loop.bounds.leaves]
        return any(not leaf.free.isdisjoint(self.grid) for leaf in leaves)

    def grows_along(self, index: str) -> bool:
        """Whether masks make later cells along an index of the grid do more than earlier ones."""
        bounds = [s.bounds for s in walk_statements(self.body) if isinstance(s, Loop) and s.bounds]
        leaf = IndexValue(index)
        return sum(slope(b.end, leaf) - slope(b.begin, leaf) for b in bounds) > 0

    @property
    def loops(self) -> frozenset[str]:
        """The indices that the kernel runs over, by its grid or by a loop."""
        return frozenset(self.grid) | {s.index for s in walk_statements(self.body) if isinstance(s, Loop)}

    @property
    def local_blocks(self) -> tuple[LocalBlock, ...]:
        """Every named block, in order of first appearance."""
        found: dict[str, LocalBlock] = {}
        for statement in walk_statements(self.body):
            if isinstance(statement, Let | Update | Merge):
                found.setdefault(statement.target.name, statement.target)
        return tuple(found.values())


@dataclass(frozen=True)
class Slice:
    """A part of an input that kernels read as a tensor of its own: `whole` at fixed positions of its first axes.

    `tensor` has the remaining axes; it is memory of `whole`.
    """

    tensor: Tensor
    whole: Tensor
    positions: tuple[int, ...]


@dataclass(frozen=True)
class KernelProgram:
    """Kernels in the order in which they run, the buffers between them, and the parts of tensors that they name.

    `unrolled` asks the C++ compiler to unroll loops by more than vectors need: tuning finds out whether it pays.
    """

    name: str
    indices: IndexTable
    inputs: tuple[Tensor, ...]
    buffers: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    kernels: tuple[Kernel, ...]
    slices: tuple[Slice, ...] = ()
    unrolled: bool = False


def walk_statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, loops before their bodies."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk_statements(statement.body)


def with_expressions(body: tuple[Statement, ...], change: Callable[[Term], Term]) -> tuple[Statement, ...]:
    """The statements with `change` applied to every node of their expressions, after its children."""

    def changed(statement: Statement) -> Statement:
        if isinstance(statement, Loop):
            return replace(statement, body=with_expressions(statement.body, change))
        if isinstance(statement, Let | Update | Store):
            return replace(statement, expression=rewrite_bottom_up(statement.expression, change))
        return statement

    return tuple(map(changed, body))


def compute_element(element: Element | None) -> Element:
    """The type in which a block is held locally; numbers are held as f64."""
    return (element or Element.NUMBER).compute_type


def local_element(element: Element | None) -> Element:
    """The element of a local block's type: a compute type, or NUMBER, which still takes the type of what it meets."""
    return Element.NUMBER if element in (None, Element.NUMBER) else element.compute_type
