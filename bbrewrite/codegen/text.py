"""Indented source text, and how element types and numbers are spelled in C++."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from bbrewrite.core.elements import Element

_STORAGE = {
    Element.BOOL: "uint8_t",
    Element.INDEX: "int64_t",
    Element.I32: "int32_t",
    Element.F16: "bb::f16",
    Element.BF16: "bb::bf16",
    Element.F32: "float",
    Element.F64: "double",
}


LONGEST_LINE = 110


class Writer:
    """Collects lines at the current indentation."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """Adds a line; directives of the preprocessor are indented like statements."""
        self._lines.append("  " * self._depth + text if text else "")

    @contextmanager
    def block(self, opening: str, closing: str = "}") -> Generator[None]:
        """Adds `opening {`, what is written inside, and the closing brace."""
        self.line(f"{opening} {{" if opening else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line(closing)

    def paste(self, other: Writer) -> None:
        """Adds the lines of another text, at the current indentation."""
        for text in other._lines:
            self.line(text)

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def storage_type(element: Element) -> str:
    """The C++ type of an element in global memory."""
    return _STORAGE[element]


def value_type(element: Element) -> str:
    """The C++ type in which a value of this element type is computed and kept in local memory."""
    compute = element.compute_type
    return "bool" if compute is Element.BOOL else _STORAGE[compute]


_LARGEST_F32 = float(np.finfo(np.float32).max)


def number(value: float, element: Element) -> str:
    """A number as a literal of a compute type; a number that an integer type cannot hold saturates or is truncated."""
    if element is Element.BOOL:
        return "true" if (value > 0 if math.isinf(value) else value != 0) else "false"
    if element is Element.INDEX:
        if math.isinf(value) or math.isnan(value):
            return "INT64_MAX" if value > 0 else "INT64_MIN"
        return f"INT64_C({int(value)})"
    if math.isnan(value) or math.isinf(value) or (element is Element.F32 and abs(value) > _LARGEST_F32):
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return text if element is Element.F32 else f"double({text})"  # the macros are floats
    text = str(np.float32(value)) if element is Element.F32 else repr(float(value))
    if not any(mark in text for mark in ".e"):
        text += ".0"
    return _signed(text + "f" if element is Element.F32 else text)


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def signature(head: str, parameters: Sequence[str]) -> str:
    """`head(parameters)`, over several lines where it is long."""
    line = f"{head}({', '.join(parameters)})"
    return line if len(line) <= LONGEST_LINE else f"{head}(\n    " + ",\n    ".join(parameters) + ")"


def bare(text: str) -> str:
    """The expression without parentheses around the whole."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text
