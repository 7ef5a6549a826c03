"""What requests for a processor were compiled to, kept from one process to the next: a small file for each request.

A file tells all that went into what it remembers, so that nothing else is taken for it, and which library of the cache
came out. It is read in one go and in the form of Python's own bytecode: programs that are there should start at once.
A compiler that has changed since would make another library; where there is none any more, the last one's will do.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.runtime.cache import TUNED, checksum, kept_product, note, noted
from bbrewrite.runtime.compiler_file import compiler_file

_KIND = "compiled"
_FORM = 4  # of marshal: newer Pythons have others, which older ones cannot read
_CHECKSUM_BYTES = len(checksum(b""))


class Compiled(NamedTuple):
    """A library and how it is called. `tuning` has, for entries of what tuning found that had a say, what they held."""

    record: Record
    library: Path
    tuning: Mapping[str, bytes | None]


def remembered(request: CompileRequest) -> Compiled | None:
    """What the request was compiled to before; None where nothing is there, or where tuning has found something or the
    compiler has changed since.
    """
    told = request.told
    data = noted(_KIND, checksum(told.encode()))
    # A file may be damaged, and marshal reads only what it wrote.
    if data is None or checksum(data[_CHECKSUM_BYTES:]).encode() != data[:_CHECKSUM_BYTES]:
        return None
    asked, compiler, entry, product, record, tuning = marshal.loads(memoryview(data)[_CHECKSUM_BYTES:])
    library = kept_product(entry, product)
    if asked != told or library is None or any(noted(TUNED, key) != held for key, held in tuning):
        return None
    if compiler_file() not in (compiler, ""):
        return None
    return Compiled(Record.from_plain(record), library, dict(tuning))


def remember(request: CompileRequest, compiled: Compiled) -> None:
    """Keeps what a request was compiled to. What cannot be written is not kept."""
    told, library = request.told, compiled.library
    tuning = tuple(compiled.tuning.items())
    made = (told, compiler_file(), library.parent.name, library.name, compiled.record.plain, tuning)
    data = marshal.dumps(made, _FORM)
    note(_KIND, checksum(told.encode()), checksum(data).encode() + data)
