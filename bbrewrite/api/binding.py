"""How the arguments of a call become a program's arrays by name, and how these give the extents, on every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bbrewrite.core.roles import Role
from bbrewrite.runtime.signature import Argument


def bind(inputs: Sequence[Argument], arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """What was given for each of the inputs. Raises TypeError for other names, and for too few or too many."""
    names = [argument.name for argument in inputs]
    given: dict[str, Any] = {**dict(zip(names, arrays, strict=False)), **named}
    if len(given) == len(names) == len(arrays) + len(named) and given.keys() == set(names):
        return given
    told = ", ".join(names)
    for name in named:
        if name not in names:
            raise TypeError(f"there is no array {name}; the arrays are {told}")
    if len(arrays) + len(named) != len(names):
        raise TypeError(f"{len(names)} arrays are needed ({told}), {len(arrays) + len(named)} were given")
    # So many that one that is given twice is another that is missing.
    twice = next(name for name in names[: len(arrays)] if name in named)
    raise TypeError(f"{twice} is given twice")


def memory_given(out: Any, outputs: Sequence[str]) -> Sequence[Any]:
    """What `out` gives for each output: itself for a single one. Raises TypeError where it is no tuple of so many."""
    given = (out,) if len(outputs) == 1 else cast(Sequence[Any], out) if isinstance(out, tuple | list) else ()
    if len(given) != len(outputs):
        raise TypeError(f"`out` needs one array for each of {', '.join(outputs)}")
    return given


def named_weights(inputs: Sequence[Argument], weights: Mapping[str, Any]) -> dict[str, Argument]:
    """The arguments that are weights, by name. Raises TypeError unless exactly these are given."""
    declared = {argument.name: argument for argument in inputs if argument.role is Role.WEIGHT}
    if set(weights) != set(declared):
        raise TypeError(f"the weights {', '.join(declared) or '(none)'} are needed, not {', '.join(weights)}")
    return declared


def extents_of(
    arguments: Sequence[Argument], shapes: Mapping[str, tuple[int, ...]], planned: Mapping[str, int]
) -> dict[str, int]:
    """The extents of root indices: those of the arrays, and the planned ones where no array has the index."""
    found: dict[str, int] = {}
    for argument in arguments:
        shape = shapes[argument.name]
        if len(shape) != len(argument.axes):
            raise ValueError(f"{argument.name}[{', '.join(argument.axes)}] was given an array of shape {shape}")
        for axis, extent in zip(argument.axes, shape, strict=True):
            if found.setdefault(axis, extent) != extent:
                raise ValueError(f"{argument.name} has {axis} = {extent}, another array {axis} = {found[axis]}")
    return {**planned, **found}
