"""Builds the machine once, and runs encoded kernels on NumPy arrays.

What a run found is a `Report`: faults with the place in the PTX and CUDA text, which instructions ran, and what moved.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bbrewrite.emulate.encode import SPECIALS, EncodedKernel
from bbrewrite.runtime.cache import cached_product, content_key
from bbrewrite.runtime.compiler import find_compiler

type Array = npt.NDArray[Any]
type Schedule = Literal["greedy", "random"]

_DIRECTORY = Path(__file__).parent / "cpp"
_FAULTS: tuple[str, ...] = (
    "race",
    "bounds",
    "uninitialised memory",
    "uninitialised register",
    "misaligned",
    "divergence",
    "deadlock",
    "asynchronous copy",
    "runaway",
)
_BUFFER_SPACING = 1 << 36
_MESSAGE_BYTES = 8192
_STEP_LIMIT = 50_000_000
_OPERANDS = 16
_MOST_KEPT = 8  # kernels whose code is kept in the machine's form


class _Instruction(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int32) for name in ("operation", "type", "source_type", "mode", "combine", "count")),
        *((name, ctypes.c_int32) for name in ("flags", "guard", "guard_negated", "line")),
        ("operands", ctypes.c_int32 * _OPERANDS),
        ("offset", ctypes.c_int64),
    )


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("initialised", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_void_p),
        ("code_count", ctypes.c_int64),
        ("slot_count", ctypes.c_int64),
        ("constant_slots", ctypes.c_void_p),
        ("constant_values", ctypes.c_void_p),
        ("constant_count", ctypes.c_int64),
        ("special_slots", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("buffer_count", ctypes.c_int64),
        ("shared_bytes", ctypes.c_int64),
        ("local_bytes", ctypes.c_int64),
        ("grid", ctypes.c_int64 * 3),
        ("block", ctypes.c_int64 * 3),
        ("is_random", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("step_limit", ctypes.c_int64),
        ("executed", ctypes.c_void_p),
        ("loaded", ctypes.c_void_p),
        ("stored", ctypes.c_void_p),
        ("faults", ctypes.c_void_p),
        ("shared_requests", ctypes.c_void_p),
        ("messages", ctypes.c_void_p),
        ("messages_size", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Output:
    """An array that the kernel writes; its contents before the launch count as no values."""

    array: Array


type Argument = Array | Output | int | float


@dataclass(frozen=True)
class Report:
    """What one launch did. Bytes are counted for each block, as its warps ask for them."""

    faults: tuple[str, ...]  # sentences, the first of each kind and place
    fault_counts: dict[str, int]
    executed: npt.NDArray[np.uint64]  # by instruction, in warps
    loaded_bytes: npt.NDArray[np.int64]
    stored_bytes: npt.NDArray[np.int64]
    shared_requests: int
    shared_passes: int

    @property
    def ok(self) -> bool:
        return not any(self.fault_counts.values())


def launch(
    kernel: EncodedKernel,
    grid: int,
    threads: int,
    shared_bytes: int,
    arguments: Sequence[Argument],
    schedule: Schedule = "greedy",
    seed: int = 0,
) -> Report:
    """Runs a kernel on a one-dimensional grid, writing `Output` arrays. Raises CompilerMissing for want of g++."""
    machine = _machine()
    code = machine.encoded(kernel)
    buffers: list[_Buffer] = []
    parameters = bytearray(sum(parameter.size for parameter in kernel.kernel.parameters) + 16)
    assert len(arguments) == len(kernel.kernel.parameters), "the kernel takes other arguments"
    for argument, parameter in zip(arguments, kernel.kernel.parameters, strict=True):
        parameters[parameter.offset : parameter.offset + parameter.size] = _passed(argument, parameter.size, buffers)
    blocks = max(grid, 1)
    loaded, stored = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    executed = np.zeros(len(kernel.code), np.uint64)
    faults, requests = np.zeros(len(_FAULTS), np.int64), np.zeros(2, np.int64)
    messages = ctypes.create_string_buffer(_MESSAGE_BYTES)
    constants = sorted(kernel.constants.items())
    slots = np.array([slot for slot, _ in constants], np.int32)
    values = np.array([value for _, value in constants], np.uint64)
    specials = np.array([kernel.specials.get(name, -1) for name in SPECIALS], np.int32)
    buffer_array = (_Buffer * max(1, len(buffers)))(*buffers)
    raw = (ctypes.c_char * len(parameters)).from_buffer(parameters)
    request = _Launch(
        ctypes.addressof(code), len(kernel.code), kernel.slot_count,
        slots.ctypes.data, values.ctypes.data, len(constants), specials.ctypes.data,
        ctypes.addressof(raw), ctypes.addressof(buffer_array), len(buffers),
        kernel.kernel.static_shared_bytes + shared_bytes, kernel.kernel.local_bytes,
        (ctypes.c_int64 * 3)(grid, 1, 1), (ctypes.c_int64 * 3)(threads, 1, 1),
        int(schedule == "random"), seed, _STEP_LIMIT,
        executed.ctypes.data, loaded.ctypes.data, stored.ctypes.data, faults.ctypes.data, requests.ctypes.data,
        ctypes.addressof(messages), _MESSAGE_BYTES,
    )  # fmt: skip
    machine.library.emulate_launch(ctypes.byref(request))
    sources = {instruction.line: instruction.source for instruction in kernel.kernel.instructions}
    texts = [_described(line, sources) for line in messages.value.decode().splitlines()]
    counts: dict[str, int] = dict(zip(_FAULTS, (int(count) for count in faults), strict=True))
    return Report(tuple(texts), counts, executed, loaded, stored, int(requests[0]), int(requests[1]))


def _passed(argument: Argument, size: int, buffers: list[_Buffer]) -> bytes:
    """The bytes of a parameter; an array becomes a buffer and its address."""
    if isinstance(argument, float):
        return np.array(argument, np.float32 if size == 4 else np.float64).tobytes()
    if isinstance(argument, int):
        return argument.to_bytes(size, "little", signed=True)
    array, initialised = (argument.array, 0) if isinstance(argument, Output) else (argument, 1)
    assert array.flags.c_contiguous
    buffers.append(_Buffer(array.ctypes.data, array.nbytes, initialised, 0))
    return (len(buffers) * _BUFFER_SPACING).to_bytes(size, "little")


def _described(message: str, sources: dict[int, str]) -> str:
    line, text = message.split("\t", 1)
    source = sources.get(int(line), "")
    return f"{source} (line {line} of the PTX) {text}" if source else f"line {line} of the PTX {text}"


class _Machine:
    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.emulate_launch.restype = None
        library.emulate_names.restype = ctypes.c_char_p
        operations, types, modes = library.emulate_names().decode().split("\n")
        self._operations, self._types, self._modes = (
            {name: number for number, name in enumerate(text.split())} for text in (operations, types, modes)
        )
        self._kept: dict[int, tuple[EncodedKernel, ctypes.Array[_Instruction]]] = {}  # by identity, the latest last

    def encoded(self, kernel: EncodedKernel) -> ctypes.Array[_Instruction]:
        """The machine's own form of a kernel's code, which takes as long to make as many a launch."""
        known = self._kept.pop(id(kernel), None) or (kernel, self._encoded(kernel))
        self._kept[id(kernel)] = known
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return known[1]

    def _encoded(self, kernel: EncodedKernel) -> ctypes.Array[_Instruction]:
        made = (_Instruction * len(kernel.code))()
        for place, item in zip(made, kernel.code, strict=True):
            place.operation = self._operations[item.operation]
            place.type, place.source_type = self._types[item.type], self._types[item.source_type]
            place.mode, place.combine, place.count = self._modes[item.mode], item.combine, item.count
            place.flags, place.guard, place.guard_negated = item.flags, item.guard, int(item.guard_negated)
            place.line, place.offset = item.line, item.offset
            place.operands = (ctypes.c_int32 * _OPERANDS)(*item.operands, *[-1] * (_OPERANDS - len(item.operands)))
        return made


@functools.cache
def _machine() -> _Machine:
    compiler = find_compiler()
    sources = sorted(_DIRECTORY.iterdir())
    texts = [path.read_text(encoding="utf-8") for path in sources]
    key = content_key(compiler.fingerprint, *texts)

    def make(directory: Path) -> None:
        compiler.build_library(_DIRECTORY / "machine.cpp", directory / "machine.so", _DIRECTORY)

    return _Machine(ctypes.CDLL(str(cached_product(key, "machine.so", make))))
