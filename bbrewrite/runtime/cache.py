"""Build products by the hash of everything that went into them, shared by all processes of a user.

An entry is a directory that appears whole, by a rename, or not at all: an interrupted build leaves nothing that is
taken for a product. A file lock makes concurrent processes build an entry once. What writing needs is imported when
something is written: programs that are there already should start at once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from bbrewrite.resources import cache_directory

_DIGEST = "digest"
# Kinds of notes: what tuning found, and for which of it a compiled program asked.
TUNED = "tuned"
ASKED = "asked"


def content_key(*parts: str) -> str:
    """A name for what is made from these texts alone."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


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


def note(kind: str, key: str, text: str) -> None:
    """Keeps a short text under a key, in place of what was there. What cannot be written is not kept.

    Readers see the old text or the new one, whatever other processes write.
    """
    import tempfile

    directory = cache_directory() / kind
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as unfinished:
            unfinished.write(text)
        os.replace(unfinished.name, directory / key)
    except OSError:
        return


def noted(kind: str, key: str) -> str | None:
    """The text that was kept under a key; None where there is none."""
    try:
        return (cache_directory() / kind / key).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _build(root: Path, entry: Path, product: str, build: Callable[[Path], None]) -> None:
    import shutil
    import tempfile

    shutil.rmtree(entry, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=root))
    try:
        build(unfinished)
        (unfinished / _DIGEST).write_text(_file_digest(unfinished / product), encoding="utf-8")
        unfinished.rename(entry)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_whole(entry: Path, product: str) -> bool:
    try:
        return (entry / _DIGEST).read_text(encoding="utf-8") == _file_digest(entry / product)
    except (OSError, UnicodeDecodeError):
        return False


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
