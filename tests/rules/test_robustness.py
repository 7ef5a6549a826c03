"""Whatever the text, reading rules gives rules or messages: never a traceback, never words of the parser or engine."""

from __future__ import annotations

import random
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.spans import Source
from bbrewrite.egraph.compile import engine_text
from bbrewrite.egraph.engine import Engine, Limits
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.egraph.masks import Masks
from bbrewrite.lang.diagnostics import Diagnostic, InputError
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import parse_rules
from bbrewrite.rules.rules import RuleSet
from bbrewrite.rules.signatures import signature

_ITEMS = [
    item
    for path in sorted(resource_directory("rules").glob("*.rules"))
    for item in path.read_text(encoding="utf-8").split("\n\n")
    if re.search(r"^(rule|monoid|op|@)", item, re.MULTILINE)
]
_PIECES = [
    *'()[],:=+-*/^<>#\n .0"@$',
    *("=>", "<=>", "->", "where ", "rule r\n", "op f(x) = x\n", " test x stays", "let y = x", "match x = exp(y) "),
    *("i", "x", "c", "inf", "1e9", "row_scale", "exp", "max", "is scalar", "is const", "not in free(x)", "1 < 2"),
    *("at(x, i)", "map(i, x)", "reduce(sum, i, x)", "first(x)", "pair(x, y)", "size(i)", "cast(x)", "stored(x)"),
]
_MASKS = Masks.for_count(4)


def _changed(draw: random.Random) -> str:
    text = "\n\n".join(draw.sample(_ITEMS, draw.randrange(1, 3)))
    for _ in range(draw.randrange(1, 4)):
        words = list(re.finditer(r"\w+|\S", text))
        start, end = (
            draw.choice(words).span() if words and draw.random() < 0.6 else (draw.randrange(len(text) + 1),) * 2
        )
        text = text[:start] + draw.choice([*_PIECES, *(word.group() for word in words[:30])]) + text[end:]
    return text


def _read(text: str) -> RuleSet | tuple[Diagnostic, ...]:
    try:
        return parse_rules([Source("a.rules", text)])
    except InputError as error:
        return error.diagnostics


def test_an_unfinished_item_before_one_that_is_taken_out() -> None:
    text = "\n\n".join(_ITEMS[:2])
    lines = text.split("\n")
    for number in range(1, len(lines)):
        cut = "\n".join(lines[:number])
        for behind in ("\n          rule r\ny)", "\nrule r\n  y =>", "\nmonoid", "\n@", "\n\n\n"):
            for beside in ("", " (", " =>"):
                found = _read(cut + beside + behind)
                assert isinstance(found, RuleSet) or all(message.span for message in found)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_changed_rules(seed: int) -> None:
    text = _changed(random.Random(seed))
    found = _read(text)
    messages = found.warnings if isinstance(found, RuleSet) else found
    for message in messages:
        assert message.span is not None
        assert message.render().startswith(f"a.rules:{message.span.line}:{message.span.column}: {message.severity}[")
        assert not re.search(r"\b(egglog|lark|Token|Traceback|None)\b|__", message.message + message.hint)
    if isinstance(found, RuleSet):
        # What the checker lets through, the engine takes.
        for rule in found.rules:
            assert signature(rule, found.table).startswith(rule.name)
        engine = Engine(
            engine_text(found, _MASKS, fast_math=True), found.rules, _MASKS, Limits(nodes=100, iterations=2)
        )
        engine.saturate()
        failed_examples(found)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_any_text(text: str) -> None:
    found = _read(text.replace("\r", "\n"))
    assert isinstance(found, RuleSet) or all(message.span is not None for message in found)
