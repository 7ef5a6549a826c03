"""Reads text files that users name. What cannot be read is an InputError, never a traceback.

Light to import: a program that was compiled before is read, and nothing else is done with its text.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bbrewrite.core.spans import Source, Span

if TYPE_CHECKING:
    from pathlib import Path

    from bbrewrite.lang.diagnostics import InputError

_BYTE_ORDER_MARK = "\ufeff"


def read_source(path: Path | str) -> Source:
    """The text of a file, its line ends made "\\n". Raises InputError for a missing file or bytes that are no text."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise _fault("no-file", f"there is no file {name}") from None
    except IsADirectoryError:
        raise _fault("no-file", f"{name} is a directory; a file is needed") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _fault("no-file", f"{name} cannot be read: {reason}") from None
    return decoded_source(name, data)


def read_rule_sources(path: Path | str) -> list[Source]:
    """The text of a rule file, or of every `*.rules` file in a directory and below, in order of name."""
    if not os.path.isdir(path):
        return [read_source(path)]
    files = [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]
    return [read_source(file) for file in sorted(files, key=_parts) if file.endswith(".rules")]


def decoded_source(name: str, data: bytes) -> Source:
    """The text of some bytes, its line ends made "\\n". Raises InputError for bytes that are no text."""
    try:
        text = data.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8 text"
        raise _fault("not-text", message, _place(name, data, error), "save the file as UTF-8") from None
    return Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def _parts(path: str) -> list[str]:
    return path.split(os.sep)


def _place(name: str, data: bytes, error: UnicodeDecodeError) -> Span:
    before = data[: error.start].decode("utf-8", errors="replace")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Span(Source(name, data.decode("utf-8", errors="replace")), line, column)


def _fault(code: str, message: str, span: Span | None = None, hint: str = "") -> InputError:
    from bbrewrite.lang.diagnostics import Diagnostic, InputError

    return InputError([Diagnostic(code, message, span, hint)])
