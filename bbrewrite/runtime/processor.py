"""Which processor this is: what is built or measured for one need not run, or hold, on another."""

from __future__ import annotations

import functools
import platform

_ONE_PROCESSOR = 1 << 14  # more bytes than the system tells of one


@functools.cache
def processor_name() -> str:
    """The processor's model and features, as far as the system tells them."""
    try:
        # The system writes the file while it is read, for every processor; of the first one is enough.
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(_ONE_PROCESSOR).decode(errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    first = text.split("\n\n", 1)[0].splitlines()
    told = [
        line for line in first if line.startswith(("model name", "flags", "Features", "CPU implementer", "CPU part"))
    ]
    return "\n".join([platform.machine(), *told])
