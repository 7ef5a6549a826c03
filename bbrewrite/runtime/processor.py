"""Which processor this is, as far as the system tells: what is built or measured for one need not suit another."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

_ONE_PROCESSOR = 1 << 14  # more bytes than the system tells of one
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


@functools.cache
def processor_name() -> str:
    """The processor's model and features, as far as the system tells them."""
    told = _told()
    return "\n".join([platform.machine(), *told]) if told else f"{platform.machine()} {platform.processor()}"


@functools.cache
def processor_features() -> frozenset[str]:
    """What the processor can do beyond the least, in the words of Linux, such as `avx2`; nothing on other systems."""
    lists = [line.partition(":")[2] for line in _told() if line.startswith(("flags", "Features"))]
    return frozenset(" ".join(lists).split())


@functools.cache
def cache_sizes(directory: Path = _CACHES) -> dict[str, int]:
    """The size of every level of data cache by name, such as L2, as Linux tells it; nothing where it does not."""
    found: dict[str, int] = {}
    for entry in sorted(directory.glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                found[f"L{int(level)}"] = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    return found


@functools.cache
def _told() -> tuple[str, ...]:
    try:
        # The system writes the file while it is read, for every processor; of the first one is enough.
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(_ONE_PROCESSOR).decode(errors="replace")
    except OSError:
        return ()
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    return tuple(line for line in text.split("\n\n", 1)[0].splitlines() if line.startswith(names))
