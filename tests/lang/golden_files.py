"""Compares text with a golden file; `UPDATE_GOLDEN=1 pytest tests/lang` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    path = _DIRECTORY / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"no golden file {path.name}; write it with UPDATE_GOLDEN=1"
    assert text == path.read_text(encoding="utf-8")
