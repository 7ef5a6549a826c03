"""Runs a script in processes that order sets differently, for tests that nothing depends on that order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def printed_in_processes(script: str) -> set[str]:
    """What the script prints, under two seeds of hashing: one text where it does not depend on them."""
    root = Path(__file__).parents[2]
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
        ).stdout
        for seed in ("1", "2")
    }
