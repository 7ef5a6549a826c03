"""Small helpers that tests of several stages share: programs from text, and inputs for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.elements import Element
from bbrewrite.core.operators import OperatorTable, builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.interpret.block_programs import run_block_program
from bbrewrite.lang.programs import parse_program
from bbrewrite.lower.lowering import lower
from bbrewrite.verify.reference import evaluate

TABLE: OperatorTable = builtin_table()

type Arrays = dict[str, np.ndarray[Any, Any]]


def program(text: str) -> ArrayProgram:
    """The array program of a text; its first line may be left out."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if not lines[0].startswith("program"):
        lines.insert(0, "program test")
    parsed = parse_program(Source("test", "\n".join(lines) + "\n"), TABLE)
    assert isinstance(parsed, ArrayProgram)
    return parsed


def extents_of(array_program: ArrayProgram, **changed: int) -> dict[str, int]:
    """The extents of root indices: the defaults, or those given."""
    roots = [index for index in array_program.indices if index.same_as is None]
    return {index.name: changed.get(index.name, 1 if index.extent is None else index.extent) for index in roots}


def draw_inputs(array_program: ArrayProgram, extents: Mapping[str, int], seed: int = 0) -> Arrays:
    """Normal floats, coins, and integers from 0 to 9."""
    generator = np.random.default_rng(seed)
    drawn: Arrays = {}
    for tensor in array_program.inputs:
        shape = [extents[array_program.indices.root(index)] for index in tensor.indices]
        if tensor.element is Element.BOOL:
            values = generator.integers(0, 2, shape)
        elif tensor.element is Element.I32:
            values = generator.integers(0, 10, shape)
        else:
            values = generator.standard_normal(shape)
        drawn[tensor.name] = np.asarray(values).astype(tensor.element.numpy_type)
    return drawn


def reference(text: str, inputs: Mapping[str, Any] | None = None, **extents: int) -> Arrays:
    """The reference values of a program; inputs not given are drawn."""
    parsed, sizes, arrays = _prepared(text, inputs or {}, extents)
    return evaluate(parsed, arrays, sizes, TABLE)


def unfused(text: str, inputs: Mapping[str, Any] | None = None, **extents: int) -> Arrays:
    """The values of the lowered, unfused block program."""
    parsed, sizes, arrays = _prepared(text, inputs or {}, extents)
    return run_block_program(lower(parsed, TABLE), arrays, sizes, TABLE)


def _prepared(
    text: str, inputs: Mapping[str, Any], changed: Mapping[str, int]
) -> tuple[ArrayProgram, dict[str, int], Arrays]:
    parsed = program(text)
    sizes = extents_of(parsed, **changed)
    arrays = draw_inputs(parsed, sizes)
    for tensor in parsed.inputs:
        if tensor.name in inputs:
            arrays[tensor.name] = np.asarray(inputs[tensor.name], tensor.element.numpy_type)
    return parsed, sizes, arrays
