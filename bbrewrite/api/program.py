"""A compiled program as a function of arrays: binds them, finds extents, and calls what was compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from bbrewrite.api.binding import bind, extents_of, memory_given, named_weights
from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.assumed_facts import first_exception
from bbrewrite.runtime.signature import Argument

if TYPE_CHECKING:
    import numpy.typing as npt

type Array = npt.NDArray[Any]
type Load = Callable[[CompileRequest], tuple[Record, Runner]]

_NUMBERS: tuple[type[Any], ...] = (bool, int, float, np.bool, np.integer, np.floating)


class Runner(Protocol):
    """What calls a program: machine code, or the NumPy executor of kernels.

    `run` takes arrays, and of weights what `prepare` made of them.
    """

    def prepare(self, arrays: Mapping[str, Array], threads: int) -> Mapping[str, Any]: ...

    def run(
        self, arrays: Mapping[str, Any], extents: Mapping[str, int], threads: int, out: Mapping[str, Array] | None
    ) -> dict[str, Array]: ...


class Program:
    """A compiled program: call it with its inputs and weights, in the order of their declaration or by name.

    An array may be a NumPy array or anything on the CPU that speaks DLPack; dense arrays of the declared type are used
    where they are. Extents come from the arrays and need not be those that were planned for. The result is an array, or
    a tuple of arrays where the program has several outputs; `out` gives the memory to write to. Calls from several
    threads may run at once, and do not hold Python's global lock.

    Raises TypeError for a wrong number of arrays, ValueError where an array does not fit or contradicts an `assume` and
    for `threads` that are not 1 to 1024, and InputError where extents make a read leave its tensor, differ where a read
    needs them equal, or are other numbers of iterations than were planned for.
    """

    def __init__(self, request: CompileRequest, load: Load, weights: Mapping[str, Array] | None = None) -> None:
        """`load` compiles a request, or finds it compiled. `weights` are the arrays that every call uses."""
        self._request = request
        self._load = load
        self._weights: Mapping[str, Array] = weights or {}
        self._record, self._runner = load(request)
        self._prepared = dict(self._runner.prepare(self._weights, request.threads))
        signature = self._record.signature
        self._inputs = tuple(argument for argument in signature.inputs if argument.name not in self._weights)
        self._outputs = signature.outputs
        self._accepted = {tuple(self._record.extents[name] for name in signature.extents)}
        # The shapes of the latest call's arrays, and the extents that they gave.
        self._latest: tuple[Mapping[str, tuple[int, ...]] | None, Mapping[str, int]] = (None, {})
        self._over_nothing: Runner | None = None
        self._turn = threading.Lock()

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of inputs and weights, in the order in which they are passed."""
        return tuple(argument.name for argument in self._inputs)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in the order in which they are returned."""
        return tuple(argument.name for argument in self._outputs)

    def with_weights(self, **weights: Any) -> Program:
        """The program for these weights, which further calls leave out.

        What a program wants packed is packed here, once. All weights are needed; they must not change afterwards.
        Raises TypeError for other names, and ValueError where an array does not fit.
        """
        arrays: dict[str, Array] = {}
        for name, argument in named_weights(self._record.signature.inputs, weights).items():
            arrays[name] = _as_array(argument, weights[name])
            _check_facts(argument, arrays[name])
        return Program(self._request._replace(packed=True), self._load, arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes compile again, which finds what was compiled before."""
        return (Program, (self._request, self._load, dict(self._weights)))

    def __repr__(self) -> str:
        return f"<bbrewrite program ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})>"

    def __call__(
        self,
        *arrays: Any,
        out: Any = None,
        threads: int | None = None,
        **named: Any,
    ) -> Any:
        threads = self._request.threads if threads is None else threads
        passed = self._bind(arrays, named)
        extents = self._extents(passed)
        memory = self._memory(out)
        if self._fits(extents):
            found = self._runner.run(passed | self._prepared, extents, threads, memory)
        else:
            found = self._unfused().run({**passed, **self._weights}, extents, threads, memory)
        results = [found[argument.name] for argument in self._outputs]
        return tuple(results) if len(results) > 1 else results[0]

    def _bind(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Array]:
        given = bind(self._inputs, arrays, named)
        for argument in self._inputs:
            given[argument.name] = array = _as_array(argument, given[argument.name])
            if argument.facts:
                _check_facts(argument, array)
        return given

    def _extents(self, arrays: Mapping[str, Array]) -> Mapping[str, int]:
        """Found once for the same shapes in a row, since a small program takes no longer than that."""
        shapes = {name: array.shape for name, array in arrays.items()}
        known, extents = self._latest
        if shapes != known:
            weights = {name: array.shape for name, array in self._weights.items()}
            extents = extents_of(self._record.signature.inputs, shapes | weights, self._record.extents)
            self._latest = shapes, extents
        return extents

    def _memory(self, out: Any) -> dict[str, Array] | None:
        if out is None:
            return None
        memory: dict[str, Array] = {}
        for name, value in zip(self.outputs, memory_given(out, self.outputs), strict=True):
            array = _as_memory(name, value)
            for other, taken in memory.items():
                if np.may_share_memory(array, taken):
                    raise ValueError(f"the array for {name} overlaps that of {other}")
            memory[name] = array
        return memory

    def _fits(self, extents: Mapping[str, int]) -> bool:
        """Whether the fused program has the meaning for these extents; looks at each combination once."""
        sizes = tuple(extents[name] for name in self._record.signature.extents)
        if sizes in self._accepted:
            return True
        if self._record.extents_matter:
            from bbrewrite.api.stages import check_extents

            check_extents(self._request, extents, self._record.extents)
        if 0 in sizes and self._request.fused:
            return False
        self._accepted.add(sizes)
        return True

    def _unfused(self) -> Runner:
        """Over nothing, a program means what it meant before fusion."""
        with self._turn:
            if self._over_nothing is None:
                _, self._over_nothing = self._load(self._request._replace(fused=False, packed=False))
            return self._over_nothing


def _as_array(argument: Argument, value: Any) -> Array:
    if type(value) is np.ndarray:
        return value
    if hasattr(value, "__dlpack__"):  # a subclass of NumPy's array is taken as one
        return _lent(value)
    if isinstance(value, (*_NUMBERS, argument.numpy_type.type)):
        return np.asarray(value, argument.numpy_type)
    raise ValueError(f"{argument.name} must be an array, not {type(value).__name__}")


def _as_memory(name: str, value: Any) -> Array:
    if isinstance(value, np.ndarray):
        return cast(Array, value)
    if hasattr(value, "__dlpack__"):
        return _lent(value, for_writing=True)
    raise TypeError(f"the array for {name} must be an array, not {type(value).__name__}")


def _lent(value: Any, for_writing: bool = False) -> Array:
    from bbrewrite.runtime.dlpack import from_dlpack

    return from_dlpack(value, for_writing)


def _check_facts(argument: Argument, array: Array) -> None:
    for fact in argument.facts:
        position = first_exception(fact, array)
        if position is not None:
            raise ValueError(
                f"the program assumes {fact}({argument.name}), but at {list(position)} it is {array[position]}"
            )
