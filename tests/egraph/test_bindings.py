"""The engine is loaded without the Python package around it, and leaves that usable."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS = "from bbrewrite.egraph.engine import new_graph; new_graph('(sort Term)')"
THEIRS = "import egglog; from egglog import bindings; bindings.EGraph(); egglog.EGraph()"


@pytest.mark.parametrize(
    "program",
    [
        f"{OURS}; import sys; assert 'egglog' not in sys.modules; {THEIRS}; {OURS}",
        f"{THEIRS}; {OURS}; from bbrewrite.egraph.bindings import bindings as own; assert own is bindings",
    ],
)
def test_there_is_one_engine_in_a_process(program: str) -> None:
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
