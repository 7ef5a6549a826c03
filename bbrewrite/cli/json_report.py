"""The one JSON object of `--json`: the keys are a contract, so each stands here in full."""

from __future__ import annotations

import json
import math
from statistics import median
from typing import Any

from bbrewrite.cli.candidates import candidates_json
from bbrewrite.fusion import Fusion
from bbrewrite.pipeline import RunResult


def run_json(result: RunResult, import_ms: float, parse_ms: float) -> str:
    """The run as one line of JSON. An infinite error, which JSON cannot hold, is null; `remarks` is there where
    there are any.
    """
    fused = fusion_json(result.fusion, import_ms, parse_ms)
    error = result.comparison.max_rel_err
    remarks = [remark for output in result.comparison.outputs for remark in output.remarks]
    return json.dumps(
        {
            "program": fused["program"],
            "target": result.target,
            "sizes": fused["sizes"],
            **({"emulated_at": dict(result.emulated_at)} if result.emulated_at else {}),
            **({"tf32": True} if result.tf32 else {}),
            "ok": result.comparison.ok,
            "max_rel_err": error if math.isfinite(error) else None,
            **fused,
            "ms": {
                **fused["ms"],
                "codegen": result.prepared.codegen_ms,
                "compile": result.prepared.compile_ms,
                "run_unfused": median(result.unfused_ms),
                "run_fused": median(result.fused_ms),
            },
            **({} if result.skipped_blocks is None else {"skipped_blocks": result.skipped_blocks}),
            **({"remarks": remarks} if remarks else {}),
        },
        allow_nan=False,
    )


def fusion_json(fusion: Fusion, import_ms: float, parse_ms: float) -> dict[str, Any]:
    """What is known of a fusion before anything runs, under the keys that a run has too.

    `candidates` are there where the program was planned in parts.
    """
    before, after, saturation = fusion.before, fusion.after, fusion.saturation
    return {
        "program": fusion.request.program.name,
        "sizes": fusion.sizes,
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
            # Only where masks narrow loops: other programs keep the agreed keys.
            **({} if after.skipped_share is None else {"skipped_share": after.skipped_share}),
        },
        "rules_applied": dict(sorted(fusion.rules_applied.items())),
        "egraph": {
            "nodes": saturation.nodes,
            "classes": saturation.classes,
            "iterations": saturation.iterations,
            "stopped_by": saturation.stopped_by,
        },
        "ms": {
            "import": import_ms,
            "parse": parse_ms,
            "saturate": fusion.saturate_ms,
            "extract": fusion.extract_ms,
        },
        **({"candidates": candidates_json(fusion)} if fusion.cover else {}),
    }
