"""Build products by the hash of everything that went into them, shared by all processes of a user.

An entry is a directory that appears whole, by a rename, or not at all: an interrupted build leaves nothing that is
taken for a product. A file lock makes concurrent processes build an entry once. What writing needs is imported when
something is written: programs that are there already should start at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from importlib.util import source_hash
from pathlib import Path

from bbrewrite.resources import cache_directory

_CHECKSUM = "checksum"
TUNED = "tuned"  # notes of what tuning found


def content_key(*parts: str) -> str:
    """A name for what is made from these texts alone, whoever wrote them."""
    import hashlib

    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def checksum(data: bytes) -> str:
    """A short text that tells damaged data from whole, and most data from other, much sooner than `content_key`."""
    return source_hash(data).hex()


def cached_product(key: str, product: str, build: Callable[[Path], None]) -> Path:
    """The path of the file `product` under `key`; where it is missing or damaged, `build` makes it in a directory."""
    root = cache_directory()
    entry = root / key
    if not _is_whole(entry, product):
        from filelock import FileLock

        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{key}.lock"):
            # Another process may have built it while this one waited.
            if not _is_whole(entry, product):
                _build(root, entry, product, build)
    return entry / product


def kept_product(key: str, product: str) -> Path | None:
    """The path of the file `product` under `key`, where it is there and whole."""
    entry = cache_directory() / key
    return entry / product if _is_whole(entry, product) else None


def note(kind: str, key: str, data: bytes) -> None:
    """Keeps a few bytes under a key, in place of what was there. What cannot be written is not kept.

    Readers see the old bytes or the new ones, whatever other processes write.
    """
    import tempfile

    directory = cache_directory() / kind
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as unfinished:
            unfinished.write(data)
        os.replace(unfinished.name, directory / key)
    except OSError:
        return


def noted(kind: str, key: str) -> bytes | None:
    """The bytes that were kept under a key; None where there are none."""
    try:
        return (cache_directory() / kind / key).read_bytes()
    except (OSError, ValueError):  # what was to be a key need not be a file's name
        return None


def forget(kind: str, key: str) -> None:
    """Keeps nothing under a key any more."""
    with suppress(OSError):
        (cache_directory() / kind / key).unlink()


def _build(root: Path, entry: Path, product: str, build: Callable[[Path], None]) -> None:
    import shutil
    import tempfile

    shutil.rmtree(entry, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=root))
    try:
        build(unfinished)
        (unfinished / _CHECKSUM).write_bytes(_file_checksum(unfinished / product))
        unfinished.rename(entry)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_whole(entry: Path, product: str) -> bool:
    try:
        return (entry / _CHECKSUM).read_bytes() == _file_checksum(entry / product)
    except OSError:
        return False


def _file_checksum(path: Path) -> bytes:
    return checksum(path.read_bytes()).encode()
