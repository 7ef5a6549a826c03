"""Random kernels on the emulated GPU, of one launch and split over two: the executor's numbers, not one false alarm."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

from bbrewrite.codegen.cuda.kernels import DoesNotFit
from bbrewrite.codegen.cuda.program import CudaSource, print_cuda
from bbrewrite.core.indices import Index
from bbrewrite.core.terms import Apply, Number, Read, walk
from bbrewrite.emulate.program import EmulatedProgram
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.plan.kernel import Kernel, KernelProgram, Let, Loop, Statement, Store, Update
from bbrewrite.plan.nests.nest import State
from bbrewrite.plan.scheduling.two_launches import split_in_two
from tests.codegen.cuda.programs import TARGET, nvcc
from tests.codegen.kernel_cases import F32, F64, arrays_for, block, indices, op, output, single, tensor, use
from tests.codegen.test_random_kernels import TABLE, RandomTerms, random_program, type_of

_ALWAYS, _ALWAYS_SPLIT = 8, 4
_COUNT, _COUNT_SPLIT = 200, 64
_AT_ONCE = 4  # kernels that nvcc compiles together
_SIZES = ((9, 20, 11), (1, 1, 1))


def _seeds(count: int, always: int) -> list[ParameterSet]:
    return [pytest.param(seed, marks=() if seed < always else pytest.mark.slow) for seed in range(count)]


@cache
def _split(seed: int) -> tuple[KernelProgram, KernelProgram]:
    """A program whose two accumulators are states of monoids, and the same with its loop shared out."""
    draw, terms = random.Random(seed), RandomTerms(seed)
    element, axes = draw.choice((F32, F64)), draw.choice(("m n", "m"))
    body: list[Statement] = []
    updates: list[Statement] = []
    states: dict[str, State] = {}
    for name in ("first", "second"):
        accumulator = block(name, axes, element=element)
        monoid = TABLE.monoids[draw.choice(("sum", "prod", "max", "min"))]
        (combine,), (identity,) = monoid.combine, monoid.identity
        assert isinstance(combine, Apply)
        states[name] = State(monoid.name, 0, {0: name})
        body.append(Let(accumulator, Number(identity)))
        added = op("tanh", terms.term(tuple(axes.split()), 3))
        updates.append(Update(accumulator, op(combine.operator, use(accumulator), added)))
    # A loop over blocks that are no cells of the grid stands inside.
    body.append(Loop("k", tuple(updates) if axes == "m n" else (Loop("n", tuple(updates)),)))
    outputs = output("Y", axes, element), output("Z", axes, element)
    body.append(Store(outputs[0], op("subtract", use(block("first", axes)), use(block("second", axes)))))
    body.append(Store(outputs[1], use(block("second", axes))))
    leaves = dict.fromkeys(leaf for update in updates for leaf in walk(update.expression) if isinstance(leaf, Read))
    tensors = [tensor(r.tensor, " ".join(map(str, r.addresses)), type_of(r.tensor, element)) for r in leaves]
    table = indices(**{axis: draw.choice((1, 3, 8, 17)) for axis in ("m", "n", "k")})
    whole = single(f"split_{seed}", table, axes, body, *tensors, *outputs)
    shared = table.with_index(Index("shares", draw.randint(2, 5), is_share=True))
    grid = tuple(axes.split())
    two = split_in_two(tuple(body), states, "k", "shares", grid, whole.name, shared, TABLE)
    assert two is not None
    kernels = (
        Kernel(f"{whole.name}_k", shared, (*grid, "shares"), two.first, tuple(tensors), two.states),
        Kernel(whole.name, shared, grid, two.second, two.states, outputs),
    )
    return whole, KernelProgram(whole.name, shared, whole.inputs, two.states, outputs, kernels)


def _program(seed: int, split: bool) -> KernelProgram:
    return _split(seed)[1] if split else random_program(seed)


@cache
def _source(seed: int, split: bool) -> CudaSource:
    assert TARGET.gpu is not None
    return print_cuda(_program(seed, split), TABLE, TARGET.gpu)


@cache
def _ptx(group: int, split: bool) -> str:
    """Several kernels in one file, each in a namespace of its own for the functions that it defines."""
    parts = ['#include "bb.cuh"\n']
    for seed in range(group * _AT_ONCE, (group + 1) * _AT_ONCE):
        text = _source(seed, split).text.replace('#include "bb.cuh"', "").replace("#include <stdint.h>", "")
        parts.append(f"namespace seed_{seed} {{\n{text}}}\n")
    return nvcc().ptx("\n".join(parts)).read_text(encoding="utf-8")


def _check(seed: int, split: bool, expected_of: KernelProgram) -> None:
    """The numbers of a program, and no faults, at three sizes under both schedules."""
    program = _program(seed, split)
    emulated = EmulatedProgram(program, _source(seed, split), _ptx(seed // _AT_ONCE, split))
    draw = random.Random(seed)
    # Two whole blocks and a rest at most: what more of them would do, they do.
    drawn = tuple(draw.randint(1, 2 * (program.indices[axis].block or 1) + 6) for axis in ("m", "n", "k"))
    for sizes in (*_SIZES, drawn):
        extents: dict[str, int] = dict(zip(("m", "n", "k"), sizes, strict=True))
        arrays = arrays_for(program, extents, seed)
        expected = run_kernels(expected_of, arrays, extents, TABLE)
        for schedule in ("greedy", "random"):
            run = emulated.run(arrays, extents, schedule, seed)
            assert run.faults == (), (schedule, extents)
            for target in program.outputs:
                tolerance = 2e-3 if target.element is F32 else 1e-9
                np.testing.assert_allclose(
                    run.outputs[target.name], expected[target.name], tolerance, tolerance, err_msg=str(extents)
                )


@pytest.mark.parametrize("seed", _seeds(_COUNT, _ALWAYS))
def test_random_kernel(seed: int) -> None:
    _check(seed, False, random_program(seed))


@pytest.mark.parametrize("seed", _seeds(_COUNT_SPLIT, _ALWAYS_SPLIT))
def test_random_kernel_split_over_two_launches(seed: int) -> None:
    _check(seed, True, _split(seed)[0])


def test_blocks_larger_than_shared_memory_are_refused() -> None:
    from tests.codegen.kernel_cases import matmul

    assert TARGET.gpu is not None
    with pytest.raises(DoesNotFit, match="bytes of shared memory"):
        print_cuda(matmul(b=512), TABLE, TARGET.gpu)
