"""The arrays that a program runs on: loaded from .npy files where given, drawn by seed where not.

A given array must have the tensor's rank and extents, and a type that holds nothing the declared type cannot:
any float type for a float tensor (rounded to it; a finite value that would become infinite is an error), integers
that the float type holds exactly, any integers within 32 bits for `i32`, and `bool` for `bool`. Extents that the
program leaves open come from the arrays. What is computed with the arrays is not here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from bbrewrite.assumed_facts import first_exception
from bbrewrite.core.arrays import ArrayExpression, ArrayProgram, Call, Fold, LibraryCall
from bbrewrite.core.arrays import Element as ElementOf
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Assumption, BlockProgram, Tensor
from bbrewrite.core.roles import Role
from bbrewrite.core.terms import Read, Reduce, Term
from bbrewrite.lang.diagnostics import Diagnostic, InputError, did_you_mean

type Array = npt.NDArray[Any]
type Program = ArrayProgram | BlockProgram


@dataclass(frozen=True)
class GivenArray:
    """An array that the user gave for a tensor, in the tensor's element type, and the place it came from.

    `rounded_from` names the type it was of, where the tensor's holds fewer values ("" elsewhere).
    """

    values: Array
    origin: str
    rounded_from: str = ""


def load_arrays(program: Program, paths: Mapping[str, Path]) -> dict[str, GivenArray]:
    """The given arrays by tensor name. Raises InputError, also for a name that is no input of the program."""
    tensors = {tensor.name: tensor for tensor in program.inputs}
    for name in paths:
        if name not in tensors:
            hint = did_you_mean(name, tensors) or f"its inputs are {', '.join(tensors)}"
            raise _fault("unknown-tensor", f"--input {name}: the program has no input {name}", hint)
    return {name: load_array(tensors[name], path) for name, path in paths.items()}


def load_array(tensor: Tensor, path: Path) -> GivenArray:
    """The .npy file's array as the tensor's element type. Raises InputError."""
    origin = f"--input {tensor.name}={path}"
    loaded = _read_npy(path, origin)
    if loaded.ndim != len(tensor.indices):
        declared = f"{tensor.name}[{', '.join(tensor.indices)}]" if tensor.indices else f"the scalar {tensor.name}"
        raise _fault(
            "array-shape",
            f"{origin}: {declared} needs {_axes(len(tensor.indices))}, the array has shape {loaded.shape}",
        )
    return _converted(loaded, tensor.element, origin)


def resolve_extents(program: Program, sizes: Mapping[str, int], given: Mapping[str, GivenArray]) -> dict[str, int]:
    """The extent of every root index, from `--size`, the program and the given arrays. Raises InputError.

    An array gives the extents that the program and `sizes` leave open; elsewhere it must agree with them.
    """
    indices = program.indices
    found: dict[str, tuple[int, str]] = {}
    for index in indices:
        if index.same_as is None and index.extent is not None:
            found[index.name] = (index.extent, f"the program declares {index.name} = {index.extent}")
    for name, extent in sizes.items():
        check_size_option(indices, name)
        found[name] = (extent, f"--size {name}={extent}")
    tensors = {tensor.name: tensor for tensor in program.inputs}
    for name, array in given.items():
        for axis, index in enumerate(tensors[name].indices):
            _agree(
                found,
                indices,
                index,
                array.values.shape[axis],
                f"{array.origin} (axis {axis}, shape {array.values.shape})",
            )
    missing = [index.name for index in indices if index.same_as is None and index.name not in found]
    if missing:
        options = " ".join(f"--size {name}=..." for name in missing)
        named = ", ".join(f"{name!r}: ..." for name in missing)
        of_inputs = {indices.root(index) for tensor in program.inputs for index in tensor.indices}
        arrays = ", or arrays by --input" if of_inputs.issuperset(missing) else ""
        hint = f"give {options}{arrays}; from Python, sizes={{{named}}}"
        raise _fault("open-extent", f"the extent of {', '.join(missing)} is open", hint)
    return {name: extent for name, (extent, _) in found.items()}


def check_size_option(indices: IndexTable, name: str) -> None:
    """Raises InputError where `--size` names no index, or one that has another's extent."""
    if name not in indices:
        names = [index.name for index in indices]
        hint = did_you_mean(name, names) or f"its indices are {', '.join(names)}"
        raise _fault("unknown-index", f"--size {name}: the program has no index {name}", hint)
    root = indices.root(name)
    if root != name:
        raise _fault("extent-of-another", f"--size {name}: {name} has the extent of {root}", f"give --size {root}=...")


def _agree(found: dict[str, tuple[int, str]], indices: IndexTable, index: str, extent: int, origin: str) -> None:
    """Notes that an array has this extent; raises where another place says otherwise."""
    root = indices.root(index)
    known, known_origin = found.setdefault(root, (extent, f"{origin} gives {root} = {extent}"))
    if known != extent:
        name = index if index == root else f"{index} (which has the extent of {root})"
        hint = f"to change it, add --size {root}={extent}" if known_origin.startswith("the program") else ""
        raise _fault("extent-conflict", f"{origin} gives {name} = {extent}, but {known_origin}", hint)


def draw_inputs(
    program: Program, extents: Mapping[str, int], seed: int, given: Mapping[str, GivenArray]
) -> dict[str, Array]:
    """Every input and weight by name, row-major: the given arrays, the others drawn by `seed`.

    Floats are normal, weights divided by the root of their contracted extent, `bool` is a coin, `i32` uniform in
    0..9, and what the program assumes of a tensor holds. Each tensor's draw depends on the seed and its place in
    the program only, so giving one array leaves the others as they were. Raises InputError where a given array
    contradicts an `assume`.
    """
    contracted = contracted_indices(program)
    arrays: dict[str, Array] = {}
    for position, tensor in enumerate(program.inputs):
        facts = [assumption for assumption in program.assumptions if assumption.tensor == tensor.name]
        if tensor.name in given:
            array = given[tensor.name]
            for assumption in facts:
                _check_fact(assumption, array)
            arrays[tensor.name] = array.values
            continue
        shape = tuple(extents[program.indices.root(index)] for index in tensor.indices)
        names = contracted.get(tensor.name, frozenset()) if tensor.role is Role.WEIGHT else frozenset[str]()
        count = math.prod(extents[program.indices.root(name)] for name in names)
        generator = np.random.default_rng([seed, position])
        values = _drawn(generator, tensor.element, shape, 1 / math.sqrt(max(count, 1)))
        arrays[tensor.name] = _with_facts(values, [assumption.fact for assumption in facts])
    return arrays


def _drawn(generator: np.random.Generator, element: Element, shape: tuple[int, ...], scale: float) -> Array:
    if element is Element.BOOL:
        return np.asarray(generator.integers(0, 2, shape), dtype=np.bool_)
    if element is Element.I32:
        return np.asarray(generator.integers(0, 10, shape), dtype=np.int32)
    if element is Element.F64:
        return np.asarray(generator.standard_normal(shape) * scale)
    normal = np.asarray(generator.standard_normal(shape, dtype=np.float32))
    return np.asarray(normal * np.float32(scale)).astype(element.numpy_type)


def _with_facts(values: Array, facts: list[str]) -> Array:
    if "positive" in facts or "nonnegative" in facts:
        values = np.abs(values)
    if "positive" in facts or "nonzero" in facts:
        values = np.where(values == 0, np.ones((), values.dtype), values)
    return values


def _check_fact(assumption: Assumption, array: GivenArray) -> None:
    position = first_exception(assumption.fact, array.values)
    if position is None:
        return
    value = array.values[position]
    place = f"[{', '.join(map(str, position))}]" if position else "the scalar"
    raise _fault(
        "assumption",
        f"{array.origin}: the program assumes {assumption.fact}({assumption.tensor}), but {place} is {value}",
    )


def contracted_indices(program: Program) -> dict[str, frozenset[str]]:
    """For every tensor that is summed over: the indices of one sum that address it (of the first such sum)."""
    found: dict[str, frozenset[str]] = {}
    if isinstance(program, ArrayProgram):
        for definition in program.definitions:
            _array_contractions(definition.expression, frozenset(), found)
    else:
        for definition in program.definitions:
            _block_contractions(definition.term, frozenset(), found)
    return found


def _array_contractions(node: ArrayExpression, summed: frozenset[str], found: dict[str, frozenset[str]]) -> None:
    match node:
        case ElementOf(tensor, addresses):
            _note(tensor, frozenset[str]().union(*(address.index_names for address in addresses)) & summed, found)
        case Call(_, operands):
            for operand in operands:
                _array_contractions(operand, summed, found)
        case Fold(reduction, indices, body):
            _array_contractions(body, (summed | set(indices)) if reduction == "sum" else summed - set(indices), found)
        case LibraryCall(_, indices, operand):
            _array_contractions(operand, summed - set(indices), found)
        case _:
            pass


def _block_contractions(term: Term, summed: frozenset[str], found: dict[str, frozenset[str]]) -> None:
    if isinstance(term, Read):
        _note(term.tensor, term.free & summed, found)
    if isinstance(term, Reduce):
        summed = (summed | {term.index}) if term.monoid == "sum" else summed - {term.index}
    for child in term.children:
        _block_contractions(child, summed, found)


def _note(tensor: str, indices: frozenset[str], found: dict[str, frozenset[str]]) -> None:
    if indices:
        found.setdefault(tensor, indices)


def _read_npy(path: Path, origin: str) -> Array:
    try:
        loaded: Any = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise _fault("no-file", f"{origin}: there is no such file") from None
    except OSError as error:
        raise _fault("no-file", f"{origin}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise _fault("array-size", f"{origin}: the array does not fit in memory") from None
    except Exception:
        # A header is parsed as Python text, so a damaged one raises anything; NumPy's own words are about pickles.
        hint = "write it with numpy.save from an array of numbers or bools"
        raise _fault("not-npy", f"{origin}: not a .npy file of numbers, or damaged", hint) from None
    if not isinstance(loaded, np.ndarray):
        raise _fault("not-npy", f"{origin}: an archive of several arrays", "give a .npy file with one array")
    return cast(Array, loaded)


def _converted(loaded: Array, element: Element, origin: str) -> GivenArray:
    """The array as the element type, row-major; see the module text for what is accepted."""
    if loaded.dtype == np.dtype("V2") and element is Element.BF16:
        loaded = loaded.view(ml_dtypes.bfloat16)  # numpy.save writes bfloat16 as unnamed two-byte values
    is_float = loaded.dtype.kind == "f" or loaded.dtype == np.dtype(ml_dtypes.bfloat16)
    is_integer = loaded.dtype.kind in "iu"
    suited = {Element.BOOL: loaded.dtype.kind == "b", Element.I32: is_integer}.get(element, is_float or is_integer)
    if not suited:
        needed = {Element.BOOL: "bool", Element.I32: "an integer type"}.get(element, "a float type")
        raise _fault(
            "array-type",
            f"{origin}: the array is of type {loaded.dtype}; the tensor, of type {element}, needs {needed}",
            "convert it with numpy's astype",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(loaded, dtype=element.numpy_type, order="C")
    if is_integer and not _round_trips(values, loaded):
        raise _fault("array-type", f"{origin}: an integer of the array is not a value of {element}")
    if is_float and bool((np.isfinite(loaded) & ~np.isfinite(values)).any()):
        raise _fault("array-type", f"{origin}: a finite number of the array is too large for {element}")
    wide = np.longdouble if loaded.dtype.itemsize > np.dtype(np.float64).itemsize else np.float64
    is_exact = not is_float or np.array_equal(values.astype(wide), loaded.astype(wide), equal_nan=True)
    return GivenArray(values, origin, "" if is_exact else loaded.dtype.name)


def _round_trips(values: Array, integers: Array) -> bool:
    with np.errstate(invalid="ignore"):
        back = values.astype(integers.dtype)
    # A wrapped-around number comes back as it was, but with another sign.
    return np.array_equal(back, integers) and np.array_equal(values < 0, integers < 0)


def _axes(count: int) -> str:
    return {0: "an array of shape ()", 1: "1 axis"}.get(count, f"{count} axes")


def _fault(code: str, message: str, hint: str = "") -> InputError:
    return InputError([Diagnostic(code, message, hint=hint)])
