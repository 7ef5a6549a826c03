"""Finds the data that travels with the package (grammars, rules, targets), and the user's own files and products."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).parent


def resource_directory(name: str) -> Path:
    """The directory `grammar`, `rules` or `targets`: inside an installed wheel, or beside the package in a checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def cache_directory() -> Path:
    """Where products are kept: BBREWRITE_CACHE_DIR, or the user's cache directory."""
    named = os.environ.get("BBREWRITE_CACHE_DIR")
    return Path(named) if named else Path(platformdirs.user_cache_dir("bbrewrite"))


def configuration_directory() -> Path:
    """Where a user's own descriptions are: BBREWRITE_CONFIG_DIR, or the user's configuration directory."""
    named = os.environ.get("BBREWRITE_CONFIG_DIR")
    return Path(named) if named else Path(platformdirs.user_config_dir("bbrewrite"))


@functools.cache
def package_fingerprint() -> str:
    """Text that differs where a file of this package, its data or the user's own does, by size and time of change."""
    digest = hashlib.sha256()
    data = [resource_directory(name) for name in ("grammar", "targets")]
    for root in (_PACKAGE, *data, configuration_directory()):
        for directory, names, files in os.walk(root):
            names[:] = sorted(name for name in names if name != "__pycache__")
            for file in sorted(files):
                path = os.path.join(directory, file)
                status = os.stat(path)
                digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
