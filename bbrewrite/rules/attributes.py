"""Reads what stands before a rule: `@phase(NAME)` and `@fast_math("why")`."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token, Tree

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import Diagnostic, did_you_mean
from bbrewrite.rules.rules import PHASES
from bbrewrite.rules.syntax import Node, span_of

_ATTRIBUTES = ("@phase(NAME)", '@fast_math("why")')


@dataclass
class Attributes:
    """The settings of a rule."""

    phase: str = "fuse"
    fast_math: str | None = None


def read_attributes(source: Source, nodes: list[Tree[Token]], faults: list[Diagnostic]) -> Attributes:
    """The settings that a rule's attributes make; what is wrong with them is added to `faults`."""

    def fault(code: str, message: str, node: Node, hint: str = "") -> None:
        faults.append(Diagnostic(code, message, span_of(source, node), hint))

    found = Attributes()
    seen: set[str] = set()
    for node in nodes:
        name, value = node.children
        assert isinstance(name, Token)
        given = value.children[0] if isinstance(value, Tree) else None
        quoted = isinstance(given, Token) and given.type == "MEANING"
        if str(name) in seen:
            fault("attribute", f"`@{name}` is given twice", node)
        seen.add(str(name))
        match str(name):
            case "phase" if given is not None and str(given) in PHASES:
                found.phase = str(given)
            case "phase":
                hint = did_you_mean(str(given), PHASES) if given else ""
                place = value if isinstance(value, Tree) else node
                fault("unknown-phase", f"a phase is one of {', '.join(PHASES)}", place, hint)
            case "fast_math" if quoted:
                found.fast_math = str(given)[1:-1]
            case "fast_math":
                fault("attribute", '`@fast_math` says why, in quotes: @fast_math("loses …")', node)
            case word:
                allowed = f"there is no attribute `@{word}`; there are {' and '.join(_ATTRIBUTES)}"
                fault("unknown-attribute", allowed, name, did_you_mean(word, ("phase", "fast_math")))
    return found
