"""Directories and files that the user asks for: made before work begins where they can be, and messages where not."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bbrewrite.lang.diagnostics import Diagnostic, InputError


def make_directory(path: Path, option: str) -> None:
    """Makes a directory that an option names, with those around it. Raises InputError."""
    with told_of_faults(path, option):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def told_of_faults(path: Path, option: str, hint: str = "") -> Generator[None]:
    """Turns what goes wrong in writing what an option or a command asks for into an InputError.

    `path` is what cannot be written, `hint` what to do about it.
    """
    try:
        yield
    except OSError as error:
        # Where a file stands in a directory's place the system says that it exists, as if that were wanted.
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "it is a file, and a directory is needed" if is_file and path.is_file() else error.strerror or error
        message = f"{option}: cannot write {error.filename or path}: {reason}"
        raise InputError([Diagnostic("unwritable", message, hint=hint)]) from None
