"""Times on a GPU by its own clock, ours beside the libraries', interleaved; medians and ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter
from typing import Any

from bbrewrite.codegen.cuda.launches import Memory
from bbrewrite.runtime.gpu import Device, GpuProgram
from bbrewrite.runtime.lent import borrow
from benchmarks.gpu.checking import compiled
from benchmarks.gpu.programs import TimedProgram

_ROUNDS = 15
_SECONDS_EACH = 2.0  # of a contender, compilation apart
# A measurement takes at least so long: the work of a few rows is over before the next launch is made.
_LEAST_MILLISECONDS = 2.0
# The root mean square of the difference from another library's result, relative to that: two roundings of bf16.
_MOST_DIFFERENCE = 2**-6


@dataclass(frozen=True)
class Timed:
    """One program: the median milliseconds of each contender, ours under `bbrewrite`, and our difference from the first
    that gave a result; those that failed have what they said under `failed`.
    """

    milliseconds: Mapping[str, float]
    failed: Mapping[str, str]
    difference: float | None
    flops: float

    @property
    def ok(self) -> bool:
        return self.difference is None or self.difference <= _MOST_DIFFERENCE

    @property
    def line(self) -> str:
        """A row of the table: times, and how many times as fast as ours each is."""
        ours = self.milliseconds["bbrewrite"]
        others = [
            f"{name} {ms:.3f} ms ({ours / ms:.2f})" for name, ms in self.milliseconds.items() if name != "bbrewrite"
        ]
        others += [f"{name} failed: {said}" for name, said in self.failed.items()]
        rate = self.flops / ours / 1e9
        difference = "none" if self.difference is None else f"{self.difference:.1e}"
        return f"{ours:9.3f} ms {rate:7.1f} Tflop/s  {difference}  {'  '.join(others)}"


def time_program(device: Device, program: TimedProgram) -> Timed:
    """Runs ours and the others in turns on the same tensors of the device."""
    import torch

    fusion, source, ptx = compiled(device.target_name, program.text)
    planned, declared = fusion.fused.kernels, fusion.request.extents
    loaded = GpuProgram(device, source.launches, ptx)
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    extents = {**declared, **planned.indices.shares}

    def made(memory: Memory, fill: bool) -> Any:
        shape = memory.shape(extents)
        empty = torch.empty(shape, dtype=kinds[memory.element.value], device="cuda")
        return empty.normal_(std=1.0 if len(shape) > 2 else shape[0] ** -0.5) if fill else empty

    given = {memory.name: made(memory, True) for memory in source.launches.inputs}
    others = {memory.name: made(memory, False) for memory in (*source.launches.buffers, *source.launches.outputs)}
    places = {name: borrow(tensor).pointer for name, tensor in (given | others).items()}
    stream = torch.cuda.current_stream().cuda_stream
    works: dict[str, Callable[[], Any]] = {"bbrewrite": lambda: loaded.launch(places, declared, stream)}
    works |= {name: (lambda run=run: run(given)) for name, run in program.contenders.items()}
    results: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, work in works.items():
        try:
            results[name] = work()
            torch.cuda.synchronize()
        except Exception as fault:
            if name == "bbrewrite":
                raise
            failed[name] = str(fault).partition("\n")[0]
    working = {name: work for name, work in works.items() if name in results}
    output = others[source.launches.outputs[0].name].float()
    del results["bbrewrite"]
    difference = None
    if results:
        reference = next(iter(results.values())).float().reshape(output.shape)
        difference = float((output - reference).square().mean().sqrt() / reference.square().mean().sqrt())
    return Timed(_medians(working), failed, difference, program.flops)


def _medians(works: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Milliseconds of each, by measurements in turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    repeats = {name: ceil(_LEAST_MILLISECONDS / max(_measured(work, 1), 1e-3)) for name, work in works.items()}
    until = perf_counter() + _SECONDS_EACH * len(works)
    for number in range(_ROUNDS):
        if number and perf_counter() > until:
            break
        for name, work in works.items():
            times[name].append(_measured(work, repeats[name]))
    return {name: median(own) for name, own in times.items()}


def _measured(work: Callable[[], Any], repeats: int) -> float:
    """The milliseconds of one of several launches, by the device's clock."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / repeats
