"""Random kernels, built in one library and compared with the kernel executor."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from bbrewrite.core.elements import Element
from bbrewrite.core.terms import IndexValue, Number, Read, Size, Term, walk
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import KernelProgram, Let, Loop, Statement, Store, Update
from bbrewrite.runtime.library import CompiledProgram
from tests.built import built
from tests.codegen.kernel_cases import (
    BOOL,
    F32,
    F64,
    I32,
    add_to,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    single,
    table_with_weight,
    tensor,
    use,
)

TABLE = table_with_weight()
COUNT = 48
_AXES = ("m", "n", "k")
_UNARY = ("negate", "abs", "tanh", "sigmoid", "relu", "silu", "sin", "erf", "sign", "softplus")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "weight")


class RandomTerms:
    """Draws terms. Values stay moderate, because what grows (products, sums) goes through tanh."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._kept: list[tuple[tuple[str, ...], Term]] = []

    def term(self, axes: tuple[str, ...], depth: int) -> Term:
        """A float block along `axes`."""
        same = [term for other, term in self._kept if other == axes]
        if same and self._draw.random() < 0.25:
            return self._draw.choice(same)
        made = self._leaf(axes) if depth == 0 else self._inner(axes, depth - 1)
        self._kept.append((axes, made))
        return made

    def _leaf(self, axes: tuple[str, ...]) -> Term:
        if not axes:
            return self._draw.choice([read("s"), Number(0.5), op("recip", op("add", Size("k"), 1)), Number(2.0)])
        return read(f"x_{'_'.join(axes)}", *axes)

    def _inner(self, axes: tuple[str, ...], depth: int) -> Term:
        choices = [self._unary, self._binary, self._select, self._square]
        choices += [(), (self._folded, self._scaled), (self._spread, self._product, self._scaled, self._transposed)][
            len(axes)
        ]
        if not axes:
            choices.append(self._total)
        return self._draw.choice(choices)(axes, depth)

    def _unary(self, axes: tuple[str, ...], depth: int) -> Term:
        return op(self._draw.choice(_UNARY), self.term(axes, depth))

    def _binary(self, axes: tuple[str, ...], depth: int) -> Term:
        right = axes if self._draw.random() < 0.7 else ()
        return op("tanh", op(self._draw.choice(_BINARY), self.term(axes, depth), self.term(right, depth)))

    def _square(self, axes: tuple[str, ...], depth: int) -> Term:
        return op("power", self.term(axes, depth), 2)

    def _select(self, axes: tuple[str, ...], depth: int) -> Term:
        return op("where", self._condition(axes), self.term(axes, depth), self.term(axes, depth))

    def _condition(self, axes: tuple[str, ...]) -> Term:
        if not axes:
            return op("less", Size("k"), 9)
        if len(axes) == 1:
            return op("greater", op("add", IndexValue(axes[0]), read(f"i_{axes[0]}", axes[0])), 4)
        row, column = axes
        below = op(
            "less_equal",
            op("row_spread", IndexValue(row), to=column),
            op("col_spread", IndexValue(column), to=row),
        )
        return op("or", below, read(f"b_{row}_{column}", row, column))

    def _folded(self, axes: tuple[str, ...], depth: int) -> Term:
        (axis,) = axes
        other = self._draw.choice([a for a in _AXES if a != axis])
        fold = self._draw.choice(("sum", "max", "min", "prod"))
        if self._draw.random() < 0.5:
            return op("tanh", op(f"row_{fold}", self.term((axis, other), depth)))
        return op("tanh", op(f"col_{fold}", self.term((other, axis), depth)))

    def _total(self, _: tuple[str, ...], depth: int) -> Term:
        fold = self._draw.choice(("sum_of", "max_of", "min_of", "prod_of"))
        return op("tanh", op(fold, self.term((self._draw.choice(_AXES),), depth)))

    def _scaled(self, axes: tuple[str, ...], depth: int) -> Term:
        by_column = len(axes) == 2 and self._draw.random() < 0.5
        name = ("col_" if by_column else "row_") + self._draw.choice(("scale", "shift"))
        return op("tanh", op(name, self.term(axes, depth), self.term((axes[-1 if by_column else 0],), depth)))

    def _spread(self, axes: tuple[str, ...], depth: int) -> Term:
        row, column = axes
        return self._draw.choice(
            [
                op("row_spread", self.term((row,), depth), to=column),
                op("col_spread", self.term((column,), depth), to=row),
                op("outer", self.term((row,), depth), self.term((column,), depth)),
            ]
        )

    def _product(self, axes: tuple[str, ...], depth: int) -> Term:
        row, column = axes
        inner = self._draw.choice(_AXES)
        left = self.term((row, inner), depth)
        if self._draw.random() < 0.5:
            return op("tanh", op("dot", left, op("transpose", self.term((inner, column), depth))))
        return op("tanh", op("dot", left, self.term((column, inner), depth)))

    def _transposed(self, axes: tuple[str, ...], depth: int) -> Term:
        return op("transpose", self.term(axes[::-1], depth))


def random_program(seed: int) -> KernelProgram:
    """Two accumulators over k, the second updated with the first, and two results."""
    draw, terms = random.Random(seed), RandomTerms(seed)
    element = draw.choice((F32, F64))
    acc, vector = block("acc", "m n", element=element), block("v", "m", element=element)
    first, second = terms.term(("m", "n"), 3), terms.term(("m",), 3)
    body: list[Statement] = [
        Let(acc, Number(0.0)),
        Let(vector, Number(1.0)),
        Loop(
            "k",
            (
                Update(acc, op("add", op("row_scale", use(acc), use(vector)), first)),
                Update(vector, op("tanh", op("add", op("row_sum", use(acc)), second))),
            ),
        ),
        Store(output("Y", "m n", element), use(acc)),
        Store(output("Z", "m n", element), op("row_shift", use(acc), use(vector))),
    ]
    if draw.random() < 0.5:
        body[2] = Loop("k", (add_to(acc, op("dot", read("x_m_k", "m", "k"), read("x_n_k", "n", "k"))), *body[2].body))  # type: ignore[union-attr]
    table = indices(**{axis: draw.choice((1, 3, 8, 17)) for axis in _AXES})
    reads = dict.fromkeys(
        node
        for statement in (first, second, read("x_m_k", "m", "k"), read("x_n_k", "n", "k"))
        for node in walk(statement)
        if isinstance(node, Read)
    )
    tensors = {
        node.tensor: tensor(node.tensor, " ".join(map(str, node.addresses)), type_of(node.tensor, element))
        for node in reads
    }
    return single(
        f"random_{seed}",
        table,
        "m n",
        body,
        *tensors.values(),
        output("Y", "m n", element),
        output("Z", "m n", element),
    )


def type_of(name: str, element: Element) -> Element:
    return {"i": I32, "b": BOOL}.get(name[0], element)


@functools.cache
def _compiled() -> list[CompiledProgram]:
    return built([random_program(seed) for seed in range(COUNT)], TABLE)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_kernel(seed: int) -> None:
    case, compiled = random_program(seed), _compiled()[seed]
    draw = random.Random(seed)
    for sizes in ((9, 20, 11), (1, 1, 1), (17, 3, 0), tuple(draw.randint(1, 40) for _ in _AXES)):
        extents = dict(zip(_AXES, sizes, strict=True))
        arrays = arrays_for(case, extents, seed)
        expected = run_kernels(case, arrays, extents, TABLE)
        found = compiled.run(arrays, extents, 2)
        for target in case.outputs:
            tolerance = 2e-3 if target.element is F32 else 1e-9
            np.testing.assert_allclose(
                found[target.name], expected[target.name], tolerance, tolerance, err_msg=str(sizes)
            )
