"""Reads rule files: text in, a checked RuleSet out. All faults of all files are reported together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lark import Token, Tree

from bbrewrite.core.operators import OperatorTable, builtin_table
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lang.sources import read_rule_sources
from bbrewrite.rules.check import check_rules
from bbrewrite.rules.declarations import Declarations, names_used
from bbrewrite.rules.expressions import Vocabulary
from bbrewrite.rules.recovery import parse_items
from bbrewrite.rules.remembered import remembered_rules
from bbrewrite.rules.rules import RuleSet


def load_rules(path: Path | str, table: OperatorTable | None = None) -> RuleSet:
    """The rules of a file, or of every `*.rules` file in a directory and below, in order of name.

    An empty directory is an empty rule set. Raises InputError.
    """
    sources = read_rule_sources(path)
    return parse_rules(sources, table) if table else known_rules(sources)


def known_rules(sources: Sequence[Source]) -> RuleSet:
    """What `parse_rules` gives for these texts, from the cache where they were parsed before. Raises InputError."""
    return remembered_rules(sources, parse_rules)


def parse_rules(sources: Sequence[Source], table: OperatorTable | None = None) -> RuleSet:
    """The rules of several texts, and the operator table with what they add. Raises InputError."""
    faults: list[Diagnostic] = []
    items: list[tuple[Source, Tree[Token]]] = []
    faulty: set[str] = set()
    for source in sources:
        parsed = parse_items(source)
        faults += parsed.faults
        faulty |= parsed.faulty_names
        items += [(source, item) for item in parsed.items]
    # What would be declared by an item that cannot be read has no meaning, and neither has what it is used in.
    items = [(source, item) for source, item in items if not (faulty and names_used(item) & faulty)]
    declarations = Declarations(Vocabulary(table or builtin_table(), {}, {}), faults)
    declarations.declare_all([(source, item) for source, item in items if item.data != "rule"])
    found = [(source, item) for source, item in items if item.data == "rule"]
    readable = [(source, item) for source, item in found if not names_used(item) & declarations.broken]
    rules = check_rules(readable, declarations.vocabulary, faults)
    faults += declarations.unused(found)
    order = {id(source): position for position, source in enumerate(sources)}
    faults.sort(key=lambda fault: _position(fault, order))
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise InputError(errors)
    return RuleSet(rules, declarations.vocabulary.table, tuple(faults))


def _position(fault: Diagnostic, order: dict[int, int]) -> tuple[int, int, int]:
    span = fault.span
    return (order.get(id(span.source), 0), span.line, span.column) if span else (-1, 0, 0)
