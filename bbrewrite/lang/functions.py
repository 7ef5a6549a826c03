"""Which function of the operator table a symbol of the syntax stands for."""

from __future__ import annotations

from bbrewrite.core.operators import builtin_table
from bbrewrite.lang.syntax import Operation

_FUNCTIONS = {(f.symbol, f.arity): f.name for f in builtin_table().functions.values() if f.symbol}


def function_of(operation: Operation) -> str:
    """The function's name."""
    return _FUNCTIONS[operation.symbol, len(operation.operands)]
