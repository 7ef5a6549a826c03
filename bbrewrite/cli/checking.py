"""`check` and `lower`: what can be said without planning anything."""

from __future__ import annotations

from pathlib import Path

import click

from bbrewrite.cli.exit_codes import WRONG_RESULT
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_block_program
from bbrewrite.egraph.compile import engine_text
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.egraph.masks import Masks
from bbrewrite.inputs import check_size_option
from bbrewrite.lang.diagnostics import counted
from bbrewrite.request import lowered, read_program, with_choices
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.signatures import signature


def check_command(rules: Path, program: Path | None, emit: str | None, types: bool) -> None:
    """Says what was found, or prints the rules' types or the rules as an egglog program.

    Warnings are printed and change nothing. An example that does not come out is a claim that is refuted, as a
    counterexample refutes a rule: exit code 1.
    """
    ruleset = load_rules(rules)
    checked = read_program(program, ruleset.table) if program is not None else None
    if checked is not None:
        lowered(checked, ruleset.table)
    failed = failed_examples(ruleset)
    for diagnostic in (*ruleset.warnings, *failed):
        click.echo(diagnostic.render(), err=True)
    if failed:
        raise SystemExit(WRONG_RESULT)
    if emit == "egglog":
        count = len(checked.indices.entries) if checked is not None else 0
        click.echo(engine_text(ruleset, Masks.for_count(count)), nl=False)
        return
    if types:
        for rule in ruleset.rules:
            click.echo(signature(rule, ruleset.table))
        return
    examples = sum(len(rule.tests) for rule in ruleset.rules)
    warnings = f", {counted(len(ruleset.warnings), 'warning')}" if ruleset.warnings else ""
    click.echo(f"{rules}: {counted(len(ruleset.rules), 'rule')}, {counted(examples, 'example')}{warnings}")
    if checked is not None:
        definitions = len(checked.definitions)
        click.echo(f"{program}: program {checked.name}, {len(checked.inputs)} inputs, {definitions} definitions")


def lower_command(paths: tuple[Path, ...], sizes: dict[str, int], blocks: dict[str, int]) -> None:
    """Prints the unfused block program. `paths` are the program, or rules whose operators it uses and the program."""
    program = paths[-1]
    if len(paths) > 2:
        raise click.UsageError("give one program, after rules whose operators it uses")
    table = load_rules(paths[0]).table if len(paths) > 1 else builtin_table()
    parsed = read_program(program, table)
    for name in sizes:
        check_size_option(parsed.indices, name)
    click.echo(print_block_program(lowered(with_choices(parsed, sizes, blocks), table), table).rstrip("\n"))
