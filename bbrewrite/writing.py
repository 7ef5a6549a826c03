"""What is written for a user: directories made before work begins where they can be, and messages where they cannot."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.resources import cache_directory


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
        message = f"{option}: cannot write {error.filename or path}: {_reason(error, path)}"
        raise InputError([Diagnostic("unwritable", message, hint=hint)]) from None


@contextmanager
def writable_cache() -> Generator[None]:
    """Raises InputError where building fails for want of a directory, of space, or of leave to write."""
    try:
        yield
    except OSError as error:
        path = cache_directory()
        message = f"the cache of compiled kernels, {path}, cannot be written: {_reason(error, path)}"
        hint = "name another directory in the environment variable BBREWRITE_CACHE_DIR"
        raise InputError([Diagnostic("cache", message, hint=hint)]) from None


def _reason(error: OSError, path: Path) -> str:
    # Where a file stands in a directory's place the system says that it exists, as if that were wanted.
    if isinstance(error, FileExistsError | NotADirectoryError) and path.is_file():
        return "it is a file, and a directory is needed"
    return error.strerror or str(error)
