"""What a request was compiled to for a GPU: remembered on disk, as libraries for processors are, or made now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.codegen.cuda.launches import Launches
from bbrewrite.runtime.cache import cached_product, content_key

_PTX, _RECORD, _LAUNCHES = "kernels.ptx", "record.json", "launches.json"


@dataclass(frozen=True)
class CudaForm:
    """How a program is called, how it is launched, and what nvcc made of it."""

    record: Record
    launches: Launches
    ptx: Path


def cuda_form(request: CompileRequest, target_name: str, tf32: bool) -> CudaForm:
    """The program for a target. Raises InputError, and CompilerMissing where it has to be compiled without nvcc."""

    def make(directory: Path) -> None:
        from bbrewrite.api.cuda_stages import compile_for_cuda

        record, launches = compile_for_cuda(request, target_name, tf32, directory / _PTX)
        (directory / _RECORD).write_text(json.dumps(record.plain), encoding="utf-8")
        (directory / _LAUNCHES).write_text(launches.to_json(), encoding="utf-8")

    ptx = cached_product(content_key(request.told, target_name, str(tf32)), _PTX, make)
    record = Record.from_plain(json.loads(ptx.with_name(_RECORD).read_text(encoding="utf-8")))
    return CudaForm(record, Launches.from_json(ptx.with_name(_LAUNCHES).read_text(encoding="utf-8")), ptx)
