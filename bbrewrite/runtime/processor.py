"""Which processor this is: what is built or measured for one need not run, or hold, on another."""

from __future__ import annotations

import functools
import platform
from pathlib import Path


@functools.cache
def processor_name() -> str:
    """The processor's model and features, as far as the system tells them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    first = text.split("\n\n", 1)[0].splitlines()
    told = [
        line for line in first if line.startswith(("model name", "flags", "Features", "CPU implementer", "CPU part"))
    ]
    return "\n".join([platform.machine(), *told])
