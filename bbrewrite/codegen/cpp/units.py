"""Divides printed source among several translation units, on which compilers work side by side.

Each kernel goes to one of them, the entry points to the first. Linked to one library they compute what the source does;
what is read and taken away is the source as one. Running compilers is not here.
"""

from __future__ import annotations

from bbrewrite.codegen.cpp.kernels import KernelFunction
from bbrewrite.codegen.cpp.program import END_OF_KERNELS, Source

# Characters of kernels that take longer to compile than the headers, which every unit includes.
_WORTH_A_UNIT = 4000
# Between units functions have names that linkers see; those of two libraries in one process stay apart.
_HIDDEN = '[[gnu::visibility("hidden")]] '


def units(source: Source, most: int) -> list[str]:
    """The texts of up to `most` units of about the same length; the source itself where dividing it saves no time."""
    length = sum(len(kernel.text) for kernel in source.kernels)
    count = min(most, len(source.kernels), length // _WORTH_A_UNIT)
    if count < 2:
        return [source.text]
    shares: list[list[KernelFunction]] = [[] for _ in range(count)]
    loads = [0] * count
    for kernel in sorted(source.kernels, key=lambda kernel: len(kernel.text), reverse=True):
        lightest = loads.index(min(loads))
        shares[lightest].append(kernel)
        loads[lightest] += len(kernel.text)
    first, *others = shares
    elsewhere = [f"{_HIDDEN}{kernel.declaration};\n" for own in others for kernel in own]
    return [
        source.around([*elsewhere, *map(_shared, first)], source.after),
        *(source.around([_shared(kernel) for kernel in own], END_OF_KERNELS) for own in others),
    ]


def _shared(kernel: KernelFunction) -> str:
    """The definition of a kernel that other units call."""
    return kernel.text.replace(f"static {kernel.declaration}", f"{_HIDDEN}{kernel.declaration}")
