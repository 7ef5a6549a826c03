"""What has nothing to do with each other in a program is planned as if each stood alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.plan.printing import print_kernel_program
from bbrewrite.request import make_request
from tests.plan.pipelines import shipped_rules

_EXAMPLES = Path(__file__).parents[2] / "examples"
# Together small enough to stay near: of larger ones more would have to come from far memory. The last pair is too large
# to be one candidate.
_PAIRS = [
    ("batch_norm_relu", "row_moments"),
    ("batch_norm_relu", "batch_norm_relu"),
    ("softmin", "layernorm_matmul"),
    ("self_attention", "batch_norm_relu"),
    ("differential_attention", "grouped_query_attention"),
]


def _fusion(text: str) -> Fusion:
    rules = shipped_rules()
    return fuse(make_request(parse_program(Source("test", text), rules.table), rules, threads=2))


def _with_names(text: str, suffix: str) -> str:
    """A program's lines after the first, every name in it with a suffix."""
    program = parse_program(Source("test", text), shipped_rules().table)
    declared = {*program.tensors, *(index.name for index in program.indices)}
    lines = re.sub(r"#.*|^program .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\b[A-Za-z_]\w*", lambda m: m.group() + (suffix if m.group() in declared else ""), lines)


def _kernels(fusion: Fusion, suffix: str) -> list[str]:
    """The headings and loops of one part of a program: what kernels store, over which grid, in which blocks."""
    printed = print_kernel_program(fusion.fused.kernels, fusion.request.rules.table)
    kernels = [text for text in printed.split("\nkernel ")[1:] if suffix in text]
    # In which of equal forms a value is computed may depend on how many of them there are to compare in all.
    lines = r"^.*(?:parallel|together|blocks|for) .*$|^ *store [^=]*"
    return ["\n".join(re.findall(lines, text, flags=re.MULTILINE)).replace(suffix, "") for text in kernels]


@pytest.mark.parametrize(("one", "other"), _PAIRS)
def test_a_part_is_planned_as_if_it_were_alone(one: str, other: str) -> None:
    texts = [(_EXAMPLES / f"{name}.bb").read_text(encoding="utf-8") for name in (one, other)]
    both = _fusion("program both\n" + _with_names(texts[0], "_first") + _with_names(texts[1], "_second"))
    for text, suffix in zip(texts, ("_first", "_second"), strict=True):
        assert _kernels(both, suffix) == _kernels(_fusion(text), "")
