"""Block sizes that a user fixes, cut to what the extents at hand can fill.

A local block is as large as its block sizes say, however few elements an extent has: sizes far beyond the extents
would reserve memory that no element ever uses. Where block sizes are left open, planning chooses them; not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bbrewrite.core.indices import Index, IndexTable

# Blocks up to this many elements stay as they are, so that a plan may serve larger extents too.
ALWAYS_ALLOWED = 64


def cut_to_extents(indices: IndexTable, extents: Mapping[str, int]) -> tuple[IndexTable, tuple[str, ...]]:
    """The table with no block much larger than its index's extent, and a sentence on each that was cut.

    `extents` are those of root indices.
    """
    cut: list[Index] = []
    notes: list[str] = []
    for index in indices:
        extent = extents[indices.root(index.name)]
        most = max(extent, ALWAYS_ALLOWED)
        if index.block is None or index.block <= most:
            cut.append(index)
            continue
        cut.append(replace(index, block=most))
        notes.append(f"{index.name} has blocks of {most}, not {index.block}: its extent is {extent}")
    return IndexTable.of(cut), tuple(notes)
