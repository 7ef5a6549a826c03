"""Our own contender: a workload's program, fused by the shipped rules, compiled, and called with prepared arrays."""

from __future__ import annotations

import numpy as np

from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from bbrewrite.runtime.module import compile_programs
from benchmarks.compare.contenders import Contender
from benchmarks.compare.results import OURS
from benchmarks.compare.workloads import Workload


def contender(workload: Workload, threads: int) -> Contender:
    """The fused program; its outputs go to memory that is used again, as those of the other contenders do."""
    rules = load_rules(resource_directory("rules"))
    program = parse_program(Source("workload.bb", workload.text), rules.table)
    request = make_request(program, rules, threads=threads)
    fusion = fuse(request)
    (compiled,) = compile_programs([fusion.fused.kernels], rules.table, prepare=True)
    arrays = {name: workload.stored(array) for name, array in (workload.inputs | workload.weights).items()}
    ready = compiled.prepare(arrays, threads)
    out = {"Y": np.empty_like(workload.stored(np.zeros(workload.reference.shape, np.float32)))}

    def call() -> None:
        compiled.run(ready, request.extents, threads, out)

    return Contender(OURS, call, lambda: out["Y"].astype(np.float32))
