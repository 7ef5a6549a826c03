"""Says, as a fault of its user's, that the cache of compiled kernels cannot be written, and what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.resources import cache_directory


@contextlib.contextmanager
def writable_cache() -> Generator[None]:
    """Raises InputError where building fails for want of a directory, of space, or of leave to write."""
    try:
        yield
    except OSError as error:
        message = f"the cache of compiled kernels, {cache_directory()}, cannot be written: {error.strerror or error}"
        hint = "name another directory in the environment variable BBREWRITE_CACHE_DIR"
        raise InputError([Diagnostic("cache", message, hint=hint)]) from None
