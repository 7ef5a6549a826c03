"""Mistakes on the command line, in the words of all other messages: what is wrong, what may be meant, the form.

Only what the option parser refuses comes here. What a command finds wrong with a file is a message of its own.
"""

from __future__ import annotations

import click

from bbrewrite.lang.diagnostics import Diagnostic, did_you_mean, listed


def usage_fault(error: click.UsageError) -> str:
    """The message for a mistake on the command line."""
    message, hint = _worded(error)
    text = Diagnostic("usage", message, hint=hint).render()
    if error.ctx is None:
        return text
    form = " ".join([error.ctx.command_path, *error.ctx.command.collect_usage_pieces(error.ctx)])
    return f"{text}\n  usage: {form}  (`{error.ctx.command_path} --help` explains it)"


class UnknownCommand(click.UsageError):
    """The first word names no command."""

    def __init__(self, name: str, ctx: click.Context) -> None:
        super().__init__(f"there is no command `{name}`", ctx)
        self.name = name


def _worded(error: click.UsageError) -> tuple[str, str]:
    """The message, and a hint or ""."""
    match error:
        case UnknownCommand(name=name, ctx=click.Context(command=click.Group(commands=commands))):
            return error.message, did_you_mean(name, commands) or listed("there are", commands)
        case click.NoSuchOption(option_name=name):
            hint = did_you_mean(name, _options(error.ctx)) or _elsewhere(name, error.ctx)
            return f"there is no option `{name}`", hint
        case click.MissingParameter(param=click.Argument() as argument):
            return f"{argument.human_readable_name} is missing", ""
        case click.MissingParameter(param=click.Option(opts=names)):
            return f"the option `{names[-1]}` is missing", ""
        case click.BadParameter(param=click.Parameter(opts=names, type=click.Choice(choices=choices))):
            value = _value(error)
            hint = did_you_mean(value, choices) or f"it takes {', '.join(choices)}"
            return f"`{names[-1]}`: there is no `{value}`", hint
        case click.BadParameter(
            param=click.Parameter(opts=names, type=(click.IntRange() | click.FloatRange()) as kind), message=message
        ) if " is not " in message:
            number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
            return f"`{names[-1]}`: {_value(error)} is not {number} from {kind.min} to {kind.max}", ""
        case click.BadParameter(param=click.Parameter(opts=names)):
            return f"`{names[-1]}`: {_plain(error.message)}", ""
        case _:
            return _plain(error.message), ""


def _value(error: click.BadParameter) -> str:
    """What was given, which the option parser says first and keeps nowhere else."""
    return error.message.split(" is not ")[0].strip("'")


def _elsewhere(name: str, ctx: click.Context | None) -> str:
    """A hint at commands that have an option, or ""."""
    group = ctx.parent.command if ctx is not None and ctx.parent is not None else None
    if not isinstance(group, click.Group):
        return ""
    found = [command for command, found in group.commands.items() if any(name in other.opts for other in found.params)]
    return listed("commands that have it", found)


def _options(ctx: click.Context | None) -> list[str]:
    parameters = ctx.command.get_params(ctx) if ctx is not None else []
    return [name for parameter in parameters if isinstance(parameter, click.Option) for name in parameter.opts]


def _plain(message: str) -> str:
    """The option parser's own words, as part of a sentence."""
    message = message.removesuffix(".").removeprefix("Got ")
    return message[:1].lower() + message[1:]
