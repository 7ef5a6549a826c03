"""Checked rule sets, kept from one process to the next: to parse and check rules takes longer than to plan with them.

One file in the user's cache directory for each set of rule files, overwritten when their text or this package changes.
What cannot be read or written is no fault: the rules are then parsed.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.spans import Source
from bbrewrite.resources import cache_directory, package_fingerprint
from bbrewrite.rules.rules import RuleSet
from bbrewrite.runtime.cache import content_key


def remembered_rules(sources: Sequence[Source], parse: Callable[[Sequence[Source]], RuleSet]) -> RuleSet:
    """What `parse` gives for these texts, from the cache where it was parsed before. Raises what `parse` raises."""
    file = cache_directory() / "rules" / content_key(*(source.name for source in sources))
    key = content_key(package_fingerprint(), *(text for source in sources for text in (source.name, source.text)))
    found = _read(file, key)
    if found is None:
        found = parse(sources)
        _write(file, key, found)
    return found


def _read(file: Path, key: str) -> RuleSet | None:
    try:
        stored, rules, functions, operators, monoids, warnings = pickle.loads(file.read_bytes())
    except Exception:  # a file of another version, or a damaged one, raises anything
        return None
    if stored != key:
        return None
    table = OperatorTable(*map(MappingProxyType[str, Any], (functions, operators, monoids)))
    return RuleSet(rules, table, warnings)


def _write(file: Path, key: str, found: RuleSet) -> None:
    table = found.table
    parts = (dict(table.functions), dict(table.operators), dict(table.monoids))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as unfinished:
            pickle.dump((key, found.rules, *parts, found.warnings), unfinished, pickle.HIGHEST_PROTOCOL)
        os.replace(unfinished.name, file)
    except OSError:
        return
