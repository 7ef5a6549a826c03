"""Prints each kernel once: kernels that differ in names only become one function, called with other arguments.

A deep network is a few kernels run for every layer on other tensors; its source is as long as that of one layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bbrewrite.codegen.cpp.kernels import KernelFunction, print_kernel
from bbrewrite.codegen.cpp.prepared import PreparedWeight
from bbrewrite.codegen.expressions import UserFunctions
from bbrewrite.codegen.names import Names
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Role
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.scheduling.renaming import KernelRenaming


class KernelPrinter:
    """Prints the kernels of one translation unit. `functions` and `names` are the unit's."""

    def __init__(self, table: OperatorTable, functions: UserFunctions, names: Names) -> None:
        self._table = table
        self._functions = functions
        self._names = names
        self._known: dict[object, tuple[Kernel, KernelFunction]] = {}
        self.printed: list[KernelFunction] = []

    def function(self, kernel: Kernel, prepared: Sequence[PreparedWeight] = ()) -> KernelFunction:
        """The function of a kernel, with what a call for this kernel passes.

        `prepared` are the weights that are packed ahead. Raises BlockTypeError.
        """
        ahead = {weight.tensor.name: (weight.transposed, weight.element) for weight in prepared}
        form = (_canonical(kernel), tuple(ahead.get(name) for name in _tensor_names(kernel)))
        if form not in self._known:
            printed = print_kernel(kernel, self._table, self._functions, self._names, prepared)
            self.printed.append(printed)
            self._known[form] = (kernel, printed)
        first, printed = self._known[form]
        tensors = dict(zip(_tensor_names(first), _tensor_names(kernel), strict=True))
        indices = dict(zip((i.name for i in first.indices), (i.name for i in kernel.indices), strict=True))
        return replace(
            printed,
            tensors=tuple(tensors[name] for name in printed.tensors),
            extents=tuple(indices[name] for name in printed.extents),
        )


def _tensor_names(kernel: Kernel) -> list[str]:
    return list(dict.fromkeys(tensor.name for tensor in (*kernel.reads, *kernel.writes)))


def _canonical(kernel: Kernel) -> Kernel:
    """The kernel under names given by place. Extents are arguments, so they do not take part."""
    indices = {index.name: f"i{place}" for place, index in enumerate(kernel.indices)}
    locals_ = {block.name: f"b{place}" for place, block in enumerate(kernel.local_blocks)}
    places = {name: f"t{place}" for place, name in enumerate(_tensor_names(kernel))}
    written = {tensor.name for tensor in kernel.writes}
    tensors = {
        tensor.name: replace(
            tensor, name=places[tensor.name], role=tensor.role if tensor.name in written else Role.INPUT
        )
        for tensor in (*kernel.reads, *kernel.writes)
    }
    table = IndexTable.of(
        [
            Index(indices[index.name], None, indices[index.same_as] if index.same_as else None, index.block)
            for index in kernel.indices
        ]
    )
    return KernelRenaming(tensors, indices, lambda name: locals_.get(name, name)).kernel(kernel, "", table)
