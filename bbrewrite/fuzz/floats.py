"""What a sound rule does to floating point: where its sides differ at infinities, NaN or by overflow, and whether the
right side loses accuracy at moderate magnitudes. Nothing here refuses a rule.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.terms import Local
from bbrewrite.core.types import BlockType, ListType, PairType, StoredType, Type
from bbrewrite.fuzz.drawing import logical_variables
from bbrewrite.fuzz.evaluate import Evaluator, FloatDomain
from bbrewrite.fuzz.instances import IndexInstance, Instance, Value, Variable
from bbrewrite.fuzz.plans import Claim, Plan, compared_numbers, independent, plans
from bbrewrite.fuzz.shapes import axes_of
from bbrewrite.fuzz.soundness import aligned, zipped
from bbrewrite.rules.rules import Comparison, Fact

# Plain numbers first: a difference is shown with as few special values as it needs.
_PLAIN = (0.0, 1.0, -1.0, 2.0)
_NONFINITE = (math.nan, math.inf, -math.inf)
_EXTREME = (800.0, -800.0, 1e200, -1e200, 1e-200, 1e308)
_MOST_TRIES = 3000
_TRIES_OF_TWO = 500
_ACCURACY_TRIES = 48
_WORSE = 2.0**6  # how many times worse than the left side's error is a loss
_LARGE = 2.0**-15  # and how large, relative to the largest entry; a float32 rounds to 2^-24
_SIDE = 3  # rows, columns and iterations where accuracy is measured


@dataclass(frozen=True)
class FloatNote:
    """Float64 values on which the sides differ; `kind` is "infinities and NaN" or "overflow"."""

    kind: str
    values: Mapping[str, float]
    left: float
    right: float


@dataclass(frozen=True)
class AccuracyLoss:
    """Float32 values on which the right side's error is much larger than the left side's, both relative."""

    values: Mapping[str, Value]
    exact: float
    left: float
    right: float
    left_error: float
    right_error: float


def float_notes(claim: Claim, table: OperatorTable) -> list[FloatNote]:
    """At most one note of each kind, with the plainest values that show it."""
    found: dict[str, FloatNote] = {}
    for plan in [plan for plan in plans(claim, table) if not plan.is_forced][:3]:
        # One entry and one iteration show most; what only a sum of two does is looked for next.
        tries = itertools.chain(
            ((1, values) for values in _special_values(plan)),
            ((2, values) for values in itertools.islice(_special_values(plan), _TRIES_OF_TWO)),
        )
        for size, values in tries:
            kind = "overflow" if all(map(math.isfinite, values.values())) else "infinities and NaN"
            if kind in found:
                continue
            left, right = _evaluated(plan, _uniform(plan, values, size), table, np.float64)
            differing = next(((a, b) for a, b in zip(left, right, strict=True) if not _is_close(a, b)), None)
            if differing is not None:
                found[kind] = FloatNote(kind, values, *differing)
        if found:
            break
    return list(found.values())


def accuracy_loss(claim: Claim, table: OperatorTable, seed: int) -> AccuracyLoss | None:
    """The worst loss found at magnitudes of 2^-20 to 2^20, with means up to 1000 deviations."""
    generator = np.random.default_rng(seed)
    usable = [plan for plan in plans(claim, table) if not plan.is_forced]
    worst: AccuracyLoss | None = None
    for number in range(_ACCURACY_TRIES if usable else 0):
        plan = usable[number % len(usable)]
        instance = _moderate(plan, generator, number)
        found = _loss(plan, instance, table)
        if found is not None and (worst is None or found.right_error > worst.right_error):
            worst = found
    return worst


def _loss(plan: Plan, instance: Instance, table: OperatorTable) -> AccuracyLoss | None:
    if not _meets_conditions(plan, instance, table):
        return None
    exact, exact_right = (np.array(side) for side in _evaluated(plan, instance, table, np.float64))
    left, right = (np.array(side, np.float64) for side in _evaluated(plan, instance, table, np.float32))
    if not all(np.isfinite(side).all() for side in (exact, exact_right, left, right)):
        return None  # overflow has its own notes
    scale = np.abs(exact).max(initial=0.0)
    if scale == 0:
        return None
    left_errors, right_errors = np.abs(left - exact) / scale, np.abs(right - exact) / scale
    place = int(right_errors.argmax())
    left_error, right_error = float(left_errors.max()), float(right_errors[place])
    if right_error <= _LARGE or right_error <= _WORSE * max(left_error, 2.0**-24):
        return None
    values = {name: next(iter(variable.values.values())) for name, variable in instance.variables.items()}
    return AccuracyLoss(values, float(exact[place]), float(left[place]), float(right[place]), left_error, right_error)


def _evaluated(
    plan: Plan, instance: Instance, table: OperatorTable, dtype: type[np.floating[Any]]
) -> tuple[list[float], list[float]]:
    """The entries of both sides."""
    domain = FloatDomain(table, dtype)
    one: list[float] = []
    other: list[float] = []
    with np.errstate(all="ignore"):
        left_evaluator = Evaluator(table, domain, instance, plan.left)
        right_evaluator = Evaluator(table, domain, instance, plan.right)
        for left, right in plan.claim.sides:
            ones, others = aligned(
                zipped(left_evaluator.value(left, instance.outer)), zipped(right_evaluator.value(right, instance.outer))
            )
            one += map(float, ones)
            other += map(float, others)
    return one, other


def _is_close(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return (math.isnan(a) and math.isnan(b)) or a == b
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1e-300


def _special_values(plan: Plan) -> Iterator[dict[str, float]]:
    """Values for the variables, those with the fewest special ones first."""
    names = list(plan.types)
    logical = logical_variables(plan.claim)
    choices = [
        (0.0, 1.0)
        if name in logical
        else tuple(v for v in (*_PLAIN, *_NONFINITE, *_EXTREME) if _may_be(plan.claim, name, v))
        for name in names
    ]
    products = list(itertools.islice(itertools.product(*choices), 200_000))
    if len(products) > _MOST_TRIES:
        products = random.Random(0).sample(products, _MOST_TRIES)
    products.sort(key=lambda values: sum(value not in _PLAIN for value in values))
    for values in products:
        if any(value not in _PLAIN for value in values):
            yield dict(zip(names, values, strict=True))


def _may_be(claim: Claim, name: str, value: float) -> bool:
    if name in compared_numbers(claim) and not math.isfinite(value):
        return False
    for condition in claim.conditions:
        if isinstance(condition, Fact) and condition.term == Local(name):
            if condition.fact == "finite":
                if not math.isfinite(value):
                    return False
            elif (
                value < 0
                if condition.fact == "nonnegative"
                else value <= 0
                if condition.fact == "positive"
                else not value
            ):
                return False
    return True


def _uniform(plan: Plan, values: Mapping[str, float], size: int) -> Instance:
    """Every entry of a variable is one number; axes of `size` elements and loops of `size` iterations."""

    def value(found: Type, number: float) -> Value:
        match found:
            case BlockType(axes):
                return np.full((size,) * len(axes), number)
            case ListType(_, item):
                return [value(item, number)] * size
            case StoredType(item):
                return value(item, number)
            case PairType(first, second):
                return (value(first, number), value(second, number))

    variables = {name: Variable(plan.types[name], (), {(): value(plan.types[name], values[name])}) for name in values}
    return _instance(plan, size, variables)


def _instance(plan: Plan, size: int, variables: Mapping[str, Variable]) -> Instance:
    """Axes of `size` elements and loops of `size` iterations."""
    symbols = plan.symbols
    axes = [axis for found in plan.types.values() for axis in axes_of(found)]
    lengths: dict[str, int | str] = dict.fromkeys((*axes, *symbols.parents), size)
    fixed = {axis for axis in lengths if symbols.find(axis) in symbols.along} | symbols.along.keys()
    lengths |= {axis: symbols.along[symbols.find(axis)] for axis in fixed}
    block = size if symbols.along else None
    indices = {name: IndexInstance(size * (block or 1), block) for name in plan.claim.indices}
    return Instance(indices, dict.fromkeys(indices, 0), lengths, variables)


def _moderate(plan: Plan, generator: np.random.Generator, number: int) -> Instance:
    """Random normal values, in turn around 0 and around a mean far from it, of moderate and wide magnitudes."""
    offset = (0.0, 30.0, 1000.0)[number % 3]
    exponents = (0, 4, 20)[number // 3 % 3]
    logical, numbers, fixed = logical_variables(plan.claim), compared_numbers(plan.claim), independent(plan.claim)
    variables: dict[str, Variable] = {}
    common = int(generator.integers(-exponents, exponents + 1))
    for name, found in plan.types.items():
        depends = tuple(
            index
            for index in plan.claim.indices
            if (name, index) not in fixed and name not in numbers and generator.random() < 0.7
        )
        exponent = common if generator.random() < 0.5 else int(generator.integers(-exponents, exponents + 1))
        mean = offset * generator.choice((-1.0, 1.0, 0.0))

        def value(found: Type, exponent: int = exponent, mean: float = mean, name: str = name) -> Value:
            match found:
                case BlockType(axes):
                    drawn = (mean + generator.standard_normal((_SIDE,) * len(axes))) * 2.0**exponent
                    if name in logical:
                        drawn = (drawn > 0).astype(float)
                    return np.asarray(_constrained(plan.claim, name, drawn), np.float32).astype(np.float64)
                case ListType(_, item):
                    return [value(item) for _ in range(_SIDE)]
                case StoredType(item):
                    return value(item)
                case PairType(first, second):
                    return (value(first), value(second))

        keys = itertools.product(range(_SIDE), repeat=len(depends))
        variables[name] = Variable(found, depends, {key: value(found) for key in keys})
    return _instance(plan, _SIDE, variables)


def _constrained(claim: Claim, name: str, drawn: Any) -> Any:
    facts = {c.fact for c in claim.conditions if isinstance(c, Fact) and c.term == Local(name)}
    return np.abs(drawn) + 2.0**-20 if facts & {"positive", "nonnegative", "nonzero"} else drawn


def _meets_conditions(plan: Plan, instance: Instance, table: OperatorTable) -> bool:
    evaluator = Evaluator(table, FloatDomain(table, np.float64), instance, plan.left)
    tests = {"positive": np.greater, "nonnegative": np.greater_equal, "nonzero": np.not_equal}
    with np.errstate(all="ignore"):
        for condition in plan.claim.conditions:
            match condition:
                case Comparison(term):
                    if not evaluator.block(term, instance.outer).all():
                        return False
                case Fact(fact, term) if fact in tests and not isinstance(term, Local):
                    found = evaluator.value(term, instance.outer)
                    if isinstance(found, np.ndarray) and not tests[fact](found, 0).all():
                        return False
                case _:
                    pass
    return True
