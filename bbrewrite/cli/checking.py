"""`check` and `lower`: what can be said without planning anything."""

from __future__ import annotations

from pathlib import Path

import click

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_block_program
from bbrewrite.egraph.compile import engine_text
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.egraph.masks import Masks
from bbrewrite.inputs import check_size_option
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.pipeline import lowered, read_program, with_choices
from bbrewrite.rules.load import load_rules


def check_command(rules: Path, program: Path | None, emit: str | None) -> None:
    """Says what was found, or prints the rules as an egglog program. Rules' own examples must come out."""
    ruleset = load_rules(rules)
    failed = failed_examples(ruleset)
    if failed:
        raise InputError(failed)
    checked = read_program(program, ruleset.table) if program is not None else None
    if checked is not None:
        lowered(checked, ruleset.table)
    if emit == "egglog":
        count = len(checked.indices.entries) if checked is not None else 0
        click.echo(engine_text(ruleset, Masks.for_count(count)), nl=False)
        return
    examples = sum(len(rule.tests) for rule in ruleset.rules)
    click.echo(f"{rules}: {len(ruleset.rules)} rules, {examples} examples")
    if checked is not None:
        definitions = len(checked.definitions)
        click.echo(f"{program}: program {checked.name}, {len(checked.inputs)} inputs, {definitions} definitions")


def lower_command(program: Path, sizes: dict[str, int], blocks: dict[str, int]) -> None:
    """Prints the unfused block program."""
    table = builtin_table()
    parsed = read_program(program, table)
    for name in sizes:
        check_size_option(parsed.indices, name)
    click.echo(print_block_program(lowered(with_choices(parsed, sizes, blocks), table), table).rstrip("\n"))
