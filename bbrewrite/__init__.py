"""bbrewrite: block-level operator fusion as text rules over an e-graph.

From Python, `bbrewrite.compile` makes a function of a program. The stages live in the sub-packages, in the order in
which data flows: `lang` (text to array programs), `lower` (array to block programs), `rules` (rule text to egglog),
`egraph` (saturation), `plan` (extraction and scheduling), `codegen`, `runtime`, `verify`; `api` and `cli` are the two
ways in. `core` holds the forms that the stages exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bbrewrite.api.compile import compile
    from bbrewrite.api.program import Program

__version__ = "0.1.0"
__all__ = ["Program", "__version__", "compile"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    # The command line starts at once: NumPy is imported when the interface for Python is first used.
    if name == "compile":
        from bbrewrite.api.compile import compile

        return compile
    if name == "Program":
        from bbrewrite.api.program import Program

        return Program
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
