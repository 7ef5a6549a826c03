"""`fmt`: lays out rule files and programs in one way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from bbrewrite.cli.exit_codes import WRONG_RESULT
from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.lang.format_program import format_program
from bbrewrite.lang.sources import decoded_source, read_source
from bbrewrite.rules.format import format_rules
from bbrewrite.writing import told_of_faults

_STANDARD_INPUT = "-"
_RULES_BEGIN = re.compile(r"(\s|#[^\n]*\n)*(@|(rule|op|monoid)\b)")


def fmt_command(files: tuple[str, ...], only_check: bool) -> None:
    """Writes each file anew where its layout changes; with `only_check` names those, and exits with 1 if there are any.

    A directory stands for the rule files and programs in it. A file that does not parse is left as it is, and told.
    """
    faults: list[Diagnostic] = []
    changed: list[str] = []
    for name in _named_files(files):
        try:
            source = _read(name)
            text = format_text(source)
            if text != source.text or name == _STANDARD_INPUT:
                _finish(name, source, text, only_check, changed)
        except InputError as error:
            faults += error.diagnostics
    if only_check:
        for name in changed:
            click.echo(f"{name} would change")
    if faults:
        raise InputError(faults)
    if only_check and changed:
        raise SystemExit(WRONG_RESULT)


def format_text(source: Source) -> str:
    """The text laid out anew, in the language that the ending of its name or its first word tells.

    Raises InputError.
    """
    ending = Path(source.name).suffix
    is_rules = ending == ".rules" or (ending != ".bb" and _RULES_BEGIN.match(source.text) is not None)
    return format_rules(source) if is_rules else format_program(source)


def _named_files(files: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for name in files:
        path = Path(name)
        if name != _STANDARD_INPUT and path.is_dir():
            found += sorted(str(inner) for ending in ("rules", "bb") for inner in path.rglob(f"*.{ending}"))
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _read(name: str) -> Source:
    if name == _STANDARD_INPUT:
        return decoded_source("<stdin>", sys.stdin.buffer.read())
    return read_source(name)


def _finish(name: str, source: Source, text: str, only_check: bool, changed: list[str]) -> None:
    if only_check:
        changed += [source.name] if text != source.text else []
    elif name == _STANDARD_INPUT:
        click.echo(text, nl=False)
    else:
        with told_of_faults(Path(name), "fmt"):
            Path(name).write_text(text, encoding="utf-8")
