"""Blocks of weights that a kernel keeps, where they can be packed ahead: they are taken from there, not copied.

Keeping a copy saves loading a block again where a weight lies as the caller has it. Packed ahead (`prepared.py`), it is
multiplied faster where it lies, and the copy would be made and packed in every call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bbrewrite.codegen.cpp.prepared import prepared_weights
from bbrewrite.codegen.passes.views import with_reads
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Read
from bbrewrite.plan.kernel import Kernel, KernelProgram, Let, Merge, Update, walk_statements
from bbrewrite.plan.nests.views import is_held_as_stored


def without_copied_weights(program: KernelProgram, table: OperatorTable) -> KernelProgram:
    """The program with such copies left out. Raises BlockTypeError for an ill-typed kernel."""
    copied = {read.tensor for kernel in program.kernels for _, read in _copies(kernel)}
    if not copied:
        return program
    ready = {weight.tensor.name for weight in prepared_weights(_without(program, copied), table)}
    return _without(program, copied & ready)


def _without(program: KernelProgram, weights: set[str]) -> KernelProgram:
    def changed(kernel: Kernel) -> Kernel:
        found = {name: read for name, read in _copies(kernel) if read.tensor in weights}
        return replace(kernel, body=with_reads(kernel.body, found)) if found else kernel

    return replace(program, kernels=tuple(map(changed, program.kernels)))


def _copies(kernel: Kernel) -> Iterator[tuple[str, Read]]:
    """The local blocks that hold blocks of weights and nothing else, with what they hold."""
    weights = {tensor.name for tensor in kernel.reads if tensor.role is Role.WEIGHT and is_held_as_stored(tensor)}
    made = [item for item in walk_statements(kernel.body) if isinstance(item, Let | Update | Merge)]
    times = Counter(statement.target.name for statement in made)
    for statement in made:
        if isinstance(statement, Let) and isinstance(statement.expression, Read):
            name, read = statement.target.name, statement.expression
            if read.tensor in weights and times[name] == 1:
                yield name, read
