"""`check` and `lower`: what can be said without planning anything."""

from __future__ import annotations

from pathlib import Path

import click

from bbrewrite.cli.exit_codes import WRONG_RESULT
from bbrewrite.core.arrays import ArrayProgram
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_block_program
from bbrewrite.egraph.compile import engine_text
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.egraph.masks import Masks
from bbrewrite.inputs import check_size_option
from bbrewrite.lang.diagnostics import counted
from bbrewrite.request import Program, lowered, make_request, program_warnings, read_program, with_choices
from bbrewrite.rules.load import load_rules
from bbrewrite.rules.rules import RuleSet
from bbrewrite.rules.signatures import signature


def check_command(
    rules: Path, program: Path | None, sizes: dict[str, int], blocks: dict[str, int], emit: str | None, types: bool
) -> None:
    """Says what was found, or prints the rules' types or the rules as an egglog program.

    A program is checked at its extents, where it or `sizes` has them all. Warnings are printed and change nothing. An
    example that does not come out is a claim that is refuted, as a counterexample refutes a rule: exit code 1.
    """
    ruleset = load_rules(rules)
    if program is None and (sizes or blocks):
        raise click.UsageError("--size and --block belong to a program; none is given")
    checked = _checked(program, ruleset, sizes, blocks) if program is not None else None
    strange = program_warnings(checked, ruleset.table) if checked is not None else ()
    failed = failed_examples(ruleset)
    for diagnostic in (*ruleset.warnings, *strange, *failed):
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
        if isinstance(checked, ArrayProgram):
            definitions += sum(len(repeat.body) + len(repeat.following) for repeat in checked.repeats)
        warnings = f", {counted(len(strange), 'warning')}" if strange else ""
        inputs = counted(len(checked.inputs), "input")
        click.echo(f"{program}: program {checked.name}, {inputs}, {counted(definitions, 'definition')}{warnings}")


def _checked(path: Path, rules: RuleSet, sizes: dict[str, int], blocks: dict[str, int]) -> Program:
    """The program with its choices made, after every check that its extents allow. Raises InputError."""
    parsed = read_program(path, rules.table)
    for name in sizes:
        check_size_option(parsed.indices, name)
    chosen = with_choices(parsed, sizes, blocks)
    if all(chosen.indices.extent(index.name) is not None for index in chosen.indices):
        make_request(parsed, rules, sizes, blocks)
    else:
        lowered(chosen, rules.table)
    return chosen


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
