"""Reads text files that users name. What cannot be read is an InputError, never a traceback."""

from __future__ import annotations

from pathlib import Path

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import Diagnostic, InputError


def read_source(path: Path | str) -> Source:
    """The text of a file, its line ends made "\\n". Raises InputError for a missing file or bytes that are no text."""
    name = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError([Diagnostic("no-file", f"there is no file {name}")]) from None
    except IsADirectoryError:
        raise InputError([Diagnostic("no-file", f"{name} is a directory; a file is needed")]) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError([Diagnostic("no-file", f"{name} cannot be read: {reason}")]) from None
    return decoded_source(name, data)


def read_rule_sources(path: Path | str) -> list[Source]:
    """The text of a rule file, or of every `*.rules` file in a directory and below, in order of name."""
    path = Path(path)
    files = sorted(path.rglob("*.rules")) if path.is_dir() else [path]
    return [read_source(file) for file in files]


def decoded_source(name: str, data: bytes) -> Source:
    """The text of some bytes, its line ends made "\\n". Raises InputError for bytes that are no text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError([_not_text(name, data, error)]) from None
    return Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def _not_text(name: str, data: bytes, error: UnicodeDecodeError) -> Diagnostic:
    before = data[: error.start].decode("utf-8", errors="replace")
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    source = Source(name, data.decode("utf-8", errors="replace"))
    message = f"the byte 0x{data[error.start]:02x} is not UTF-8 text"
    return Diagnostic("not-text", message, Span(source, line, column), "save the file as UTF-8")
