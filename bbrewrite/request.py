"""What the stages start from: a checked program with the user's choices made, its lowered form, and the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from bbrewrite.block_sizes import cut_to_extents
from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable, builtin_table
from bbrewrite.core.programs import BlockProgram
from bbrewrite.inputs import GivenArray, load_arrays, resolve_extents
from bbrewrite.lang.diagnostics import Diagnostic, InputError, counted, did_you_mean
from bbrewrite.lang.programs import parse_program
from bbrewrite.lang.sources import read_source
from bbrewrite.lower.block_bounds import check_block_bounds
from bbrewrite.lower.block_folds import block_size_warnings
from bbrewrite.lower.bounds import check_bounds, check_equal_extents
from bbrewrite.lower.lowering import lower
from bbrewrite.lower.repeats import expand_repeats
from bbrewrite.lower.unused import unused_warnings
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.library import default_threads

_WARNINGS_SHOWN = 3

type Program = ArrayProgram | BlockProgram


@dataclass(frozen=True)
class Request:
    """What the stages start from: a checked program with its choices made, the same lowered, and rules.

    `extents` are those of root indices; `given` the arrays that need not be drawn. `notes` are sentences on choices
    that were changed. With `tuned`, what tuning found is used. `of_candidate`: it is for a part of a larger program.
    """

    program: Program
    blocks: BlockProgram
    rules: RuleSet
    extents: Mapping[str, int]
    given: Mapping[str, GivenArray]
    threads: int
    fast_math: bool
    notes: tuple[str, ...] = ()
    tuned: bool = True
    of_candidate: bool = False


def read_program(path: Path, table: OperatorTable | None = None) -> Program:
    """Parses and checks a program file of either level. Raises InputError."""
    return parse_program(read_source(path), table or builtin_table())


def with_choices(program: Program, extents: Mapping[str, int], blocks: Mapping[str, int]) -> Program:
    """The program with extents of root indices and block sizes fixed.

    Raises InputError for an unknown index, and where reads need extents to be equal that are not.
    """
    indices = program.indices.with_extents(extents)
    check_equal_extents(program.equal_extents, indices)
    for name in blocks:
        if name not in indices:
            names = [index.name for index in indices]
            hint = did_you_mean(name, names) or f"its indices are {', '.join(names)}"
            raise InputError(
                [Diagnostic("unknown-index", f"--block {name}: the program has no index {name}", hint=hint)]
            )
    chosen = [
        replace(index, block=blocks[index.name], block_is_fixed=True) if index.name in blocks else index
        for index in indices
    ]
    return replace(program, indices=IndexTable.of(chosen))


def lowered(program: Program, table: OperatorTable) -> BlockProgram:
    """The block program of a program of either level. Raises InputError."""
    return lower(program, table) if isinstance(program, ArrayProgram) else program


def program_warnings(program: Program, table: OperatorTable) -> tuple[Diagnostic, ...]:
    """What is strange about a program that has a meaning, for the extents and blocks that it has."""
    return unused_warnings(program) if isinstance(program, ArrayProgram) else block_size_warnings(program, table)


def make_request(
    program: Program,
    rules: RuleSet,
    sizes: Mapping[str, int] = MappingProxyType({}),
    blocks: Mapping[str, int] = MappingProxyType({}),
    inputs: Mapping[str, Path] = MappingProxyType({}),
    threads: int | None = None,
    fast_math: bool = False,
    tuned: bool = True,
) -> Request:
    """Loads the given arrays, settles extents and block sizes, checks reads, and lowers. Raises InputError."""
    given = load_arrays(program, inputs)
    extents = resolve_extents(program, sizes, given)
    chosen = with_choices(program, extents, blocks)
    indices, notes = cut_to_extents(chosen.indices, extents)
    notes += _as_notes(program_warnings(replace(chosen, indices=indices), rules.table))
    notes += tuple(_rounding_notes(program, given))
    if isinstance(chosen, ArrayProgram):
        chosen = expand_repeats(chosen)
        check_bounds(chosen, extents, rules.table)
    else:
        check_block_bounds(chosen, extents, rules.table)
    chosen = replace(chosen, indices=indices)
    processors = threads or default_threads()
    program_of_blocks = lowered(chosen, rules.table)
    return Request(chosen, program_of_blocks, rules, extents, given, processors, fast_math, notes, tuned)


def _rounding_notes(program: Program, given: Mapping[str, GivenArray]) -> Iterator[str]:
    """What is told of given arrays of a wider type than the tensor's: the reference starts from the rounded ones."""
    for tensor in program.inputs:
        array = given.get(tensor.name)
        if array is not None and array.rounded_from:
            yield f"{array.origin}: rounded from {array.rounded_from} to {tensor.element}"


def _as_notes(warnings: Sequence[Diagnostic]) -> tuple[str, ...]:
    shown = tuple(f"{warning.span}: {warning.message}" for warning in warnings[:_WARNINGS_SHOWN])
    more = len(warnings) - len(shown)
    return (*shown, f"{counted(more, 'more warning')}; `bbrewrite check` shows all") if more else shown
