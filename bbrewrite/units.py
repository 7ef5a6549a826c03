"""Amounts as people read them."""

from __future__ import annotations


def byte_count(count: float) -> str:
    """Bytes in binary units: "12.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def operation_count(count: float) -> str:
    """Arithmetic operations in decimal units: "4.4 Gflop"."""
    for unit in ("", " k", " M", " G"):
        if count < 1000:
            return f"{count:.0f} flop" if not unit else f"{count:.1f}{unit}flop"
        count /= 1000
    return f"{count:.1f} Tflop"
