"""Finds the data that travels with the package (grammars, rules, targets), and the user's own files and products."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parent


def resource_directory(name: str) -> Path:
    """The directory `grammar`, `rules` or `targets`: inside an installed wheel, or beside the package in a checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def cache_directory() -> Path:
    """Where products are kept: BBREWRITE_CACHE_DIR, or the user's cache directory."""
    named = os.environ.get("BBREWRITE_CACHE_DIR")
    return Path(named) if named else _user_directory("XDG_CACHE_HOME", ".cache", "Library/Caches")


def configuration_directory() -> Path:
    """Where a user's own descriptions are: BBREWRITE_CONFIG_DIR, or the user's configuration directory."""
    named = os.environ.get("BBREWRITE_CONFIG_DIR")
    return Path(named) if named else _user_directory("XDG_CONFIG_HOME", ".config", "Library/Application Support")


def _user_directory(variable: str, usual: str, on_macos: str) -> Path:
    """Where the system keeps a user's files of one kind: as the variable says, or at the usual place."""
    named = os.environ.get(variable, "").strip()
    place = Path(named) if named else Path.home() / (on_macos if sys.platform == "darwin" else usual)
    return place / "bbrewrite"


def package_fingerprint() -> str:
    """Text that differs where a file of this package or of its data has changed."""
    return "\n".join(map(told_of_files, (_PACKAGE, resource_directory("grammar"), resource_directory("targets"))))


def configuration_fingerprint() -> str:
    """Text that differs where one of a user's own descriptions has changed."""
    return told_of_files(configuration_directory())


@functools.cache
def told_of_files(root: Path) -> str:
    """A line for each file in a directory and below, as `told_of_file` tells of one. Looked up once in a process."""
    left = [str(root)] if root.is_dir() else []
    told: list[str] = []
    while left:
        with os.scandir(left.pop()) as entries:  # os.walk takes half as long again
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left += [entry.path] if entry.name != "__pycache__" else []
                    continue
                told.append(told_of_file(entry.path, entry.stat()))
    return "\n".join(sorted(told))


def told_of_file(path: str, status: os.stat_result) -> str:
    """A file's path and size, when it was written, and when anything about it was changed: an edit can put back all of
    these but the last.
    """
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
