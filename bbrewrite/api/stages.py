"""Compiles a request: the way through the stages that `Program` takes where nothing is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.api.remembered import Compiled
from bbrewrite.codegen.cpp.program import EntryPoint, entry_point, print_programs
from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.terms import Read, walk
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.garbage import rare_collections
from bbrewrite.interpret.kernels import run_kernels
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.limits import checked_threads
from bbrewrite.plan.kernel import KernelProgram
from bbrewrite.plan.target import Target
from bbrewrite.request import Program, make_request
from bbrewrite.rules.load import known_rules
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.cache import TUNED, noted
from bbrewrite.runtime.compiler import find_compiler
from bbrewrite.runtime.library import output_memory
from bbrewrite.runtime.module import build, signature_of
from bbrewrite.runtime.signature import Signature
from bbrewrite.tuning.store import tuning_key
from bbrewrite.writing import writable_cache

type Array = npt.NDArray[Any]


class NumpyRunner:
    """Calls a planned program by the NumPy executor of kernels."""

    def __init__(self, kernels: KernelProgram, table: OperatorTable, signature: Signature) -> None:
        self._kernels = kernels
        self._table = table
        self._signature = signature

    def prepare(self, arrays: Mapping[str, Array], threads: int) -> Mapping[str, Array]:
        """The arrays as they are: nothing is packed for this executor."""
        return arrays

    def run(
        self, arrays: Mapping[str, Any], extents: Mapping[str, int], threads: int, out: Mapping[str, Array] | None
    ) -> dict[str, Array]:
        """The outputs by name, written to `out` where it is given. The number of threads is checked, and unused.

        Raises ValueError where memory in `out` does not fit.
        """
        checked_threads(threads)
        memory: dict[str, Array] = {}
        for argument in self._signature.outputs if out else ():
            shape = tuple(extents[axis] for axis in argument.axes)
            memory[argument.name] = output_memory(argument, shape, out, arrays.values())
        found = run_kernels(self._kernels, arrays, extents, self._table)
        for name, array in memory.items():
            array[...] = found[name]
        return {**found, **memory}


@dataclass(frozen=True)
class Planned:
    """The program of a request, its fusion, and the kernels that are asked for."""

    program: Program
    fusion: Fusion
    kernels: KernelProgram

    @property
    def tuning_keys(self) -> list[str]:
        """The entries of what tuning found that have a say in the plan."""
        return [tuning_key(part.request) for part in self.fusion.classes if part.request.tuned]


def compile_for_cpp(request: CompileRequest) -> Compiled:
    """Plans, generates and builds. Raises InputError and CompilerMissing."""
    planned = planned_program(request)
    source = print_programs([planned.kernels], planned.fusion.request.rules.table, prepare=request.packed)
    record = record_of(planned, source.entry_points[0])
    tuning = {key: noted(TUNED, key) for key in planned.tuning_keys}
    with writable_cache():
        library = build(source, find_compiler())
    return Compiled(record, library, tuning)


def plan_for_numpy(request: CompileRequest) -> tuple[Record, NumpyRunner]:
    """Plans, and gives what executes the plan. Raises InputError."""
    planned = planned_program(request)
    record = record_of(planned, entry_point(planned.kernels, planned.kernels.name))
    return record, NumpyRunner(planned.kernels, planned.fusion.request.rules.table, record.signature)


def check_extents(request: CompileRequest, extents: Mapping[str, int], planned: Mapping[str, int]) -> None:
    """Raises InputError where what was compiled for the planned extents does not compute the program at these.

    A read may leave its tensor, or need other extents to be equal; and repeats were written out.
    """
    program, rules = _parsed(request)
    if isinstance(program, ArrayProgram):
        for root in (program.indices.root(repeat.index) for repeat in program.repeats):
            if extents[root] != planned[root]:
                message = f"the repeat over {root} was compiled for {planned[root]} iterations, not {extents[root]}"
                hint = f"compile the program with sizes={{{root!r}: {extents[root]}}}"
                raise InputError([Diagnostic("repeat", message, hint=hint)])
    make_request(program, rules, extents)


def _parsed(request: CompileRequest) -> tuple[Program, RuleSet]:
    rules = known_rules(request.rules)
    return parse_program(request.program, rules.table), rules


@rare_collections()
def planned_program(request: CompileRequest, target: Target | None = None) -> Planned:
    """Plans for the host or another target. Raises InputError."""
    program, rules = _parsed(request)
    fusion = fuse(
        make_request(
            program,
            rules,
            request.sizes,
            request.blocks,
            threads=request.threads,
            fast_math=request.fast_math,
            tuned=request.tuned,
        ),
        target,
    )
    return Planned(program, fusion, (fusion.fused if request.fused else fusion.unfused).kernels)


def record_of(planned: Planned, entry: EntryPoint) -> Record:
    """What is remembered of kernels."""
    program, request = planned.program, planned.fusion.request
    signature = signature_of(planned.kernels, entry, request.blocks.assumptions)
    has_repeats = isinstance(program, ArrayProgram) and bool(program.repeats)
    matter = has_repeats or bool(program.equal_extents) or _reads_move(request.blocks)
    return Record(signature, request.extents, matter)


def _reads_move(program: BlockProgram) -> bool:
    """Whether the program reads at anything but plain indices."""
    addresses = [
        address
        for definition in program.definitions
        for term in walk(definition.term)
        if isinstance(term, Read)
        for address in term.addresses
    ]
    return any(address.plain_index is None for address in addresses)
