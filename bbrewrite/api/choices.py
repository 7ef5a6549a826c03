"""The arguments of `bbrewrite.compile`, checked and brought to one form before any stage sees them.

Only their form is checked: whether a program has an index of that name is found where the program is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bbrewrite.core.spans import Source
from bbrewrite.lang.sources import read_rule_sources, read_source
from bbrewrite.limits import LARGEST_EXTENT, whole_number

type Rules = str | Path | Sequence[str | Path]


def numbers_by_index(argument: str, numbers: Any, least: int) -> dict[str, int]:
    """Extents or block sizes by index name. Raises TypeError, or ValueError for one out of the range."""
    if numbers is None:
        return {}
    if not isinstance(numbers, Mapping):
        raise TypeError(f'{argument} must be a mapping such as {{"m": 64}}, not {_kind(numbers)}')
    found: dict[str, int] = {}
    for name, number in cast(Mapping[Any, Any], numbers).items():
        if not isinstance(name, str):
            raise TypeError(f"{argument} must have names of indices as keys, not {name!r}")
        found[name] = whole_number(f"{argument}[{name!r}]", number, least, LARGEST_EXTENT)
    return found


def program_source(program: Any) -> Source:
    """The text of a program. Raises InputError for a file that cannot be read, else TypeError or ValueError."""
    path = _text_or_path("program", program)
    return path if isinstance(path, Source) else read_source(path)


def rule_sources(rules: Any) -> tuple[Source, ...]:
    """The texts of rules, in their order. Raises InputError for a file that cannot be read, else as for programs."""
    if isinstance(rules, str | os.PathLike):
        path = _text_or_path("rules", rules)
        return (path,) if isinstance(path, Source) else tuple(read_rule_sources(path))
    if isinstance(rules, Iterable) and not isinstance(rules, bytes | bytearray):
        return tuple(source for part in cast(Iterable[Any], rules) for source in rule_sources(part))
    raise TypeError(f"rules must be a path, a text, or a sequence of these, not {_kind(rules)}")


def _text_or_path(argument: str, given: Any) -> Source | str | Path:
    """A string of several lines is a text; one of a single line is a path, left as the user wrote it."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"{argument} must be a path or a text, not {_kind(given)}")
    if isinstance(given, str) and "\n" in given:
        return Source(f"<{argument}>", given)
    if given == "":
        raise ValueError(f"{argument} is empty: give the path of a file, or a text")
    return given if isinstance(given, str) else Path(cast(os.PathLike[str], given))


def _kind(value: object) -> str:
    return type(value).__name__
