"""Finds the data that travels with the package: grammars, shipped rules, target descriptions and headers."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def resource_directory(name: str) -> Path:
    """The directory `grammar`, `rules` or `targets`: inside an installed wheel, or beside the package in a checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
