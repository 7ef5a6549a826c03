"""Lets these tests use the hand-written kernels of the code generation tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "codegen"))
