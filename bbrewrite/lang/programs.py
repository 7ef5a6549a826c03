"""The way in: text of a program, of either level, to a checked program."""

from __future__ import annotations

import re

from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import BlockProgram
from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.check_array import check_array_program
from bbrewrite.lang.check_block import check_block_program
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lang.parser import parse_statements

_BLOCK_HEADER = re.compile(r"(\s|#[^\n]*\n)*block\s+program\b")


def parse_program(source: Source, table: OperatorTable) -> ArrayProgram | BlockProgram:
    """Parses and checks a program; one that begins with `block program` is of the block level.

    `table` holds the operators, those of the user's rule files included. Raises InputError with every fault.
    """
    parsed = parse_statements(source)
    if not parsed.statements and not parsed.faults:
        raise InputError([Diagnostic("empty", "the program is empty", Span(source, 1, 1), "begin with `program name`")])
    if _BLOCK_HEADER.match(source.text):
        return check_block_program(parsed, table)
    return check_array_program(parsed, table)
