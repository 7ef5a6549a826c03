"""Values, instances and evaluations as text, for people who read a counterexample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_term
from bbrewrite.core.terms import At, Local, Number, Size, Term
from bbrewrite.fuzz import intervals
from bbrewrite.fuzz.evaluate import Evaluator, ExactDomain, Step, Value
from bbrewrite.fuzz.exact import Nothing, as_interval
from bbrewrite.fuzz.exponentials import Exponential, single_term
from bbrewrite.fuzz.instances import Instance
from bbrewrite.fuzz.shapes import Shapes
from bbrewrite.rules.rules import Comparison, Condition, Fact, IsConst, IsScalar, NotFree

_MOST_STEPS = 30
DIGITS = 10


def number_text(value: Any, digits: int = DIGITS) -> str:
    """A number: exact where that is short, else decimal."""
    if isinstance(value, Nothing):
        return value.value
    if isinstance(value, Fraction):
        text = str(value)
        return text if len(text) <= 14 else f"{float(value):.{digits}g}" if digits <= 15 else _decimal(value, digits)
    if isinstance(value, float):
        return f"{value:g}" if not math.isfinite(value) or digits <= 6 else f"{value:.{digits}g}"
    if isinstance(value, Exponential):
        term = single_term(value)
        if term is not None and digits == DIGITS:
            factor, exponent = term
            return f"e^{exponent}" if factor == 1 else f"{factor} e^{exponent}"
    return _decimal(value, digits)


def _decimal(value: Any, digits: int) -> str:
    try:
        return intervals.shown(as_interval(value), digits)
    except intervals.TooWide:
        return "a very large or small number"


def value_text(value: Value, digits: int = DIGITS) -> str:
    """A block, list or pair on one line."""
    if isinstance(value, tuple):
        return f"pair({value_text(value[0], digits)}, {value_text(value[1], digits)})"
    if isinstance(value, list):
        return "{" + "; ".join(value_text(item, digits) for item in value) + "}" if value else "{} (an empty list)"
    if value.ndim == 0:
        return number_text(value[()], digits)
    return "[" + ", ".join(value_text(np.asarray(row, dtype=object), digits) for row in value) + "]"


def digits_apart[T](text: Callable[[T, int], str], a: T, b: T) -> int:
    """As many digits as tell two unequal things apart, as `text` shows them."""
    return next((digits for digits in (DIGITS, 20, 40, 70) if text(a, digits) != text(b, digits)), DIGITS)


def instance_lines(instance: Instance, is_general: bool = False) -> list[str]:
    """The extents of loops, and every variable's values by position."""
    lines: list[str] = []
    for name, index in instance.indices.items():
        if name.startswith("$"):
            continue
        block = f", in blocks of {index.block}" if index.block is not None and index.block != 1 else ""
        trips = "no iteration" if not index.trips else f"{index.trips} iteration{'s' * (index.trips > 1)}"
        free = f"; elsewhere {name} = {instance.outer[name]}" if _is_read(instance, name) else ""
        lines.append(f"{name}: extent {index.extent}{block}, {trips}{free}")
    for name, variable in instance.variables.items():
        for key, value in variable.values.items():
            at = ", ".join(f"{index} = {k}" for index, k in zip(variable.depends, key, strict=True))
            lines.append(f"{name}{f' at {at}' if at else ''} = {value_text(value)}")
    return lines


def _is_read(instance: Instance, index: str) -> bool:
    return instance.indices[index].trips > 1 and any(index in v.depends for v in instance.variables.values())


def evaluation_lines(
    term: Term, instance: Instance, shapes: Shapes, table: OperatorTable, digits: int
) -> list[tuple[str, str]]:
    """Every step of evaluating a term: the sub-term and where, and its value."""
    steps: list[Step] = []
    Evaluator(table, ExactDomain(), instance, shapes, steps).value(term, instance.outer)
    found: dict[str, str] = {}
    for step in steps:
        if isinstance(step.term, Number | Local | Size) and step.term is not term:
            continue
        names = sorted(_dependence(step.term, instance))
        position = dict(step.position)
        at = ", ".join(f"{name} = {position[name]}" for name in names if instance.indices[name].trips > 1)
        text = print_term(step.term, table) + (f"  at {at}" if at else "")
        found.setdefault(text, value_text(step.value, digits))
    lines = list(found.items())
    return lines if len(lines) <= _MOST_STEPS else [*lines[: _MOST_STEPS - 1], ("…", "…"), lines[-1]]


def _dependence(term: Term, instance: Instance) -> frozenset[str]:
    """The indices that the value really depends on, by the variables in it."""
    if isinstance(term, Local):
        return frozenset(instance.variables[term.name].depends)
    found = frozenset[str]().union(*(_dependence(child, instance) for child in term.children))
    if isinstance(term, At):
        found |= term.address.index_names
    return found - {term.bound_index} if term.bound_index else found


def two_columns(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Two evaluations side by side, or one after the other where they do not fit the width."""
    ones = [f"{text} = {value}" for text, value in left]
    others = [f"{text} = {value}" for text, value in right]
    column = max((len(text) for text in (*ones, "left")), default=0)
    if column + 3 + max(map(len, (*others, "right"))) > width:
        return ["left", *(f"  {text}" for text in ones), "right", *(f"  {text}" for text in others)]
    rows = max(len(ones), len(others))
    # The last steps, the results, stand on one line.
    padded = [*[""] * (rows - len(ones)), *ones], [*[""] * (rows - len(others)), *others]
    lines = [f"{'left':{column}} | right"]
    return [*lines, *(f"{one:{column}} | {other}".rstrip() for one, other in zip(*padded, strict=True))]


def condition_text(condition: Condition, table: OperatorTable) -> str:
    """A condition as a rule file writes it."""
    match condition:
        case NotFree(index, term):
            return f"{index} not in free({print_term(term, table)})"
        case Fact(fact, term):
            return f"{fact}({print_term(term, table)})"
        case IsConst(term):
            return f"{print_term(term, table)} is const"
        case IsScalar(term):
            return f"{print_term(term, table)} is scalar"
        case Comparison(term):
            return print_term(term, table)
        case _:
            raise AssertionError(condition)


def floats_text(values: Mapping[str, float]) -> str:
    """`a = nan, b = 0`."""
    return ", ".join(f"{name} = {value:.7g}" for name, value in values.items())
