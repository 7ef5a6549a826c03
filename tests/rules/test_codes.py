"""The codes in docs/diagnostics.md are those that the code gives, and each has a message held by a golden file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NAMES = ("Diagnostic", "fault", "_fault")


def _codes() -> dict[str, str]:
    """The severity of every code that reading rules can give."""
    found: dict[str, str] = {}
    for path in (_ROOT / "bbrewrite/rules").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _NAMES and re.fullmatch(r"[a-z-]+", str(node.args[0].value)):
                # A warning is said to be one by the last argument.
                values = [*node.args, *(keyword.value for keyword in node.keywords)]
                is_warning = any(isinstance(value, ast.Constant) and value.value == "warning" for value in values)
                found[str(node.args[0].value)] = "Warnings" if is_warning else "Errors"
    return found


def test_the_page_lists_every_code_once() -> None:
    page = (_ROOT / "docs/diagnostics.md").read_text(encoding="utf-8")
    listed: dict[str, str] = {}
    for section in page.split("\n## ")[1:]:
        codes = re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)
        assert codes == sorted(set(codes))
        listed |= dict.fromkeys(codes, section.split("\n")[0])
    assert listed == _codes()


def test_every_code_has_a_message_that_is_held() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (_ROOT / "tests/rules").glob("*/*.expected"))
    shown = set(re.findall(r"(?:error|warning)\[([a-z-]+)\]", texts))
    assert shown == set(_codes())
