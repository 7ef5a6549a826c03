"""The one JSON object of `--json`: the keys are a contract, so each stands here in full."""

from __future__ import annotations

import json
import math

from bbrewrite.pipeline import RunResult


def json_report(result: RunResult) -> str:
    """The run as one line of JSON. An infinite error, which JSON cannot hold, is null."""
    fusion, ms = result.fusion, result.ms
    before, after, saturation = fusion.before, fusion.after, fusion.saturation
    error = result.comparison.max_rel_err
    return json.dumps(
        {
            "program": fusion.program,
            "target": result.target,
            "sizes": dict(fusion.sizes),
            "ok": result.comparison.ok,
            "max_rel_err": error if math.isfinite(error) else None,
            "before": {
                "kernels": before.kernels,
                "buffers": before.buffers,
                "global_bytes": before.global_bytes,
                "flops": before.flops,
            },
            "after": {
                "kernels": after.kernels,
                "buffers": after.buffers,
                "global_bytes": after.global_bytes,
                "flops": after.flops,
                "local_bytes": after.local_bytes,
            },
            "rules_applied": {name: count for name, count in sorted(saturation.rules_applied.items()) if count},
            "egraph": {
                "nodes": saturation.nodes,
                "classes": saturation.classes,
                "iterations": saturation.iterations,
                "stopped_by": saturation.stopped_by,
            },
            "ms": {
                "import": ms.imports,
                "parse": ms.parse,
                "saturate": ms.saturate,
                "extract": ms.extract,
                "codegen": ms.codegen,
                "compile": ms.compile,
                "run_unfused": ms.run_unfused,
                "run_fused": ms.run_fused,
            },
        },
        allow_nan=False,
    )
