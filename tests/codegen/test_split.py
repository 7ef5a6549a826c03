"""Loops that processors share out: every number of threads computes what the kernel executor does."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from bbrewrite.codegen.cpp.program import print_programs
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.terms import Number
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Barrier, KernelProgram, Let, Loop, Merge, Store, Update
from bbrewrite.runtime.library import CompiledProgram
from bbrewrite.runtime.module import compile_programs
from tests.codegen.kernel_cases import (
    F64,
    add_to,
    arrays_for,
    block,
    indices,
    op,
    output,
    read,
    single,
    tensor,
    use,
)

TABLE = builtin_table()


def _feed_forward() -> KernelProgram:
    """A list of accumulators, filled before a shared loop; merged and stored in another shared loop."""
    up, acc = block("up", "m f"), block("acc", "m e", of="e")
    whole, scale = block("whole", "m e"), block("scale", "m")
    body = (
        Let(scale, op("rsqrt", op("add", op("power", read("r", "m"), 2), 1))),
        Loop("e", (Let(acc, Number(0.0)),)),
        Loop(
            "f",
            (
                Let(up, Number(0.0)),
                Loop("d", (add_to(up, op("dot", read("X", "m", "d"), op("transpose", read("W1", "d", "f")))),)),
                Loop("e", (add_to(acc, op("dot", op("silu", use(up)), op("transpose", read("W2", "f", "e")))),)),
            ),
            shared=True,
        ),
        Barrier(),
        Loop(
            "e",
            (Merge(whole, acc, "sum"), Store(output("Y", "m e"), op("row_scale", use(whole), use(scale)))),
            shared=True,
        ),
        Barrier(),
    )
    return single(
        "split_feed_forward", indices(m=8, d=8, f=11, e="d:8"), "", (Loop("m", body),),
        tensor("r", "m"), tensor("X", "m d"), tensor("W1", "d f"), tensor("W2", "f e"), output("Y", "m e"),
    )  # fmt: skip


def _extremes() -> KernelProgram:
    """Plain states of a maximum, a sum and a product, each stored by one processor; a packed operand is used twice.

    Stores in a later position of a loop win, as in the executor.
    """
    top, total, product = block("top", "m", element=F64), block("total"), block("product", "m k")
    top_all, total_all, product_all = (
        block("top_all", "m", element=F64),
        block("total_all"),
        block("product_all", "m k"),
    )
    x, weight = read("X", "m", "n"), op("transpose", read("C", "k", "l"))
    body = (
        Let(top, Number(-np.inf)),
        Let(product, Number(0.0)),
        Loop(
            "n",
            (
                Update(top, op("maximum", use(top), op("row_max", x))),
                add_to(product, op("dot", x, op("transpose", read("B", "n", "k")))),
            ),
            shared=True,
        ),
        Barrier(),
        Merge(top_all, top, "max"),
        Merge(product_all, product, "sum"),
        Store(output("T", "m", F64), op("multiply", use(top_all), 2)),
        Store(output("P", "m l"), op("dot", use(product_all), weight)),
        Store(output("R", "m l"), op("dot", op("abs", use(product_all)), weight)),
        Barrier(),
        Let(total, Number(0.0)),
        Loop("n", (add_to(total, op("sum_of", op("row_sum", x))),), shared=True),
        Barrier(),
        Merge(total_all, total, "sum"),
        Store(output("s", "m"), op("row_spread", use(total_all), to="m")),
        Barrier(),
    )
    return single(
        "split_extremes", indices(m=8, n=5, k=6, l=6), "", (Loop("m", (Loop("k", (Loop("l", body),)),)),),
        tensor("X", "m n"), tensor("B", "n k"), tensor("C", "k l"),
        output("T", "m", F64), output("P", "m l"), output("R", "m l"), output("s", "m"),
    )  # fmt: skip


def _number() -> KernelProgram:
    """A single number, of which every processor has a part."""
    total, whole = block("total"), block("whole")
    body = (
        Let(total, Number(0.0)),
        Loop("n", (add_to(total, op("sum_of", read("x", "n"))),), shared=True),
        Barrier(),
        Merge(whole, total, "sum"),
        Store(output("s", ""), op("sqrt", op("abs", use(whole)))),
        Barrier(),
    )
    return single("split_number", indices(n=5), "", body, tensor("x", "n"), output("s", ""))


def _outputs() -> KernelProgram:
    """Lists that every processor makes for itself, and a loop over outputs: each keeps what it needs for its blocks."""
    scaled, total, product = block("scaled", "m d", of="d"), block("total", "m"), block("product", "m f", of="f")
    normalised = op("row_scale", use(scaled), use(total))
    body = (
        Let(total, Number(0.0)),
        Loop("d", (Let(scaled, op("exp", read("X", "m", "d"))), add_to(total, op("row_sum", use(scaled))))),
        Loop(
            "f",
            (
                Let(product, Number(0.0)),
                Loop("d", (add_to(product, op("dot", normalised, op("transpose", read("W", "d", "f")))),)),
            ),
            shared=True,
        ),
        Loop("f", (Store(output("Y", "m f"), op("silu", use(product))),), shared=True),
    )
    return single(
        "shared_outputs", indices(m=8, d=8, f=11), "", (Loop("m", body),),
        tensor("X", "m d"), tensor("W", "d f"), output("Y", "m f"),
    )  # fmt: skip


PROGRAMS = {case.name: case for case in (_feed_forward(), _extremes(), _number(), _outputs())}


@functools.cache
def _compiled() -> dict[str, CompiledProgram]:
    return dict(zip(PROGRAMS, compile_programs(list(PROGRAMS.values()), TABLE), strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "sizes", [(9, 11, 41, 13), (8, 16, 44, 8), (1, 40, 100, 3), (1, 1, 1, 1), (3, 0, 7, 2), (0, 3, 5, 2)]
)
def test_every_number_of_threads_computes_what_the_executor_does(name: str, sizes: tuple[int, ...]) -> None:
    case = PROGRAMS[name]
    roots = [index.name for index in case.indices if not index.same_as]
    extents = dict(zip(roots, sizes, strict=False))
    arrays = arrays_for(case, extents, 3)
    expected = run_kernels(case, arrays, extents, TABLE)
    for threads in (1, 2, 3, 7):
        found = _compiled()[name].run(arrays, extents, threads)
        for target in case.outputs:
            np.testing.assert_allclose(
                found[target.name], expected[target.name], 2e-5, 2e-5 * sum(sizes), err_msg=f"{target.name} {threads}"
            )


def test_shares_of_nothing_are_identities() -> None:
    extents = {"m": 3, "d": 7, "f": 0}
    arrays = arrays_for(PROGRAMS["split_feed_forward"], extents, 5)
    np.testing.assert_array_equal(_compiled()["split_feed_forward"].run(arrays, extents, 3)["Y"], np.zeros((3, 7)))


def test_the_same_bits_for_the_same_threads() -> None:
    extents = {"m": 13, "d": 19, "f": 130}
    arrays = arrays_for(PROGRAMS["split_feed_forward"], extents, 4)
    compiled = _compiled()["split_feed_forward"]
    for threads in (2, 3):
        assert len({compiled.run(arrays, extents, threads)["Y"].tobytes() for _ in range(5)}) == 1


def test_work_is_shared_out() -> None:
    text = print_programs([PROGRAMS["split_feed_forward"]], TABLE).text
    assert text.count("* part / parts") == 2
    assert text.count("#pragma omp barrier") == 2
