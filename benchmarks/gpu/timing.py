"""Times on a GPU by its own clock, ours beside the libraries', interleaved; medians and ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

from bbrewrite.codegen.cuda.program import print_cuda
from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import fuse
from bbrewrite.plan.target import gpu_target
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.gpu import Device, GpuProgram
from bbrewrite.runtime.lent import borrow
from bbrewrite.runtime.nvcc import find_nvcc
from benchmarks.gpu import programs

_ROUNDS = 15
_SECONDS_EACH = 6.0  # of a contender, compilation apart


@dataclass(frozen=True)
class Timed:
    """One program: the median milliseconds of each contender, ours under `bbrewrite`, and our largest difference."""

    label: str
    milliseconds: Mapping[str, float]
    difference: float
    flops: float

    @property
    def line(self) -> str:
        """A row of the table: times, and how many times as fast as ours each is."""
        ours = self.milliseconds["bbrewrite"]
        others = [
            f"{name} {ms:.3f} ms ({ours / ms:.2f})" for name, ms in self.milliseconds.items() if name != "bbrewrite"
        ]
        rate = self.flops / ours / 1e9
        return f"{self.label:28} {ours:9.3f} ms {rate:7.1f} Tflop/s  {self.difference:.1e}  {'  '.join(others)}"


def time_program(device: Device, program: programs.GpuProgram) -> Timed:
    """Runs ours and the others in turns on the same tensors of the device."""
    import torch

    rules = load_rules(resource_directory("rules"))
    request = make_request(parse_program(Source(program.label, program.text), rules.table), rules)
    target = gpu_target(device.target_name)
    assert target.gpu is not None
    planned = fuse(request, target).fused.kernels
    source = print_cuda(planned, rules.table, target.gpu)
    loaded = GpuProgram(device, source.launches, find_nvcc().ptx(source.text))
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}

    extents = {**request.extents, **planned.indices.shares}

    def made(tensor: Any, fill: bool) -> Any:
        shape = [extents[planned.indices.root(index)] for index in tensor.indices]
        empty = torch.empty(shape, dtype=kinds[str(tensor.element)], device="cuda")
        return empty.normal_(std=1.0 if len(shape) > 2 else shape[0] ** -0.5) if fill else empty

    given = {tensor.name: made(tensor, True) for tensor in planned.inputs}
    others = {tensor.name: made(tensor, False) for tensor in (*planned.buffers, *planned.outputs)}
    places = {name: borrow(tensor).pointer for name, tensor in (given | others).items()}
    stream = torch.cuda.current_stream().cuda_stream
    works: dict[str, Callable[[], Any]] = {"bbrewrite": lambda: loaded.launch(places, request.extents, stream)}
    works |= {name: (lambda run=run: run(given)) for name, run in program.contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    results = {name: work() for name, work in works.items()}
    torch.cuda.synchronize()
    until = perf_counter() + _SECONDS_EACH * len(works)
    while len(times["bbrewrite"]) < _ROUNDS and (perf_counter() < until or not times["bbrewrite"]):
        for name, work in works.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end))
    output = others[planned.outputs[0].name].float()
    reference = results[next(iter(program.contenders))].float().reshape(output.shape)
    difference = float((output - reference).abs().max() / reference.abs().max())
    return Timed(program.label, {name: median(own) for name, own in times.items()}, difference, program.flops)
