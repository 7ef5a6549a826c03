"""The code blocks of docs/rules.md: good ones are in order and their examples come out, bad ones say what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.egraph.examples import failed_examples
from bbrewrite.lang.diagnostics import InputError, render
from bbrewrite.rules.format import format_rules
from bbrewrite.rules.load import parse_rules

_PAGE = (Path(__file__).parents[2] / "docs/rules.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"^```([a-z ]*)\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_GOOD = [text for kind, text in _BLOCKS if kind == "rules good"]
_BAD = [(text, *_BLOCKS[number + 1]) for number, (kind, text) in enumerate(_BLOCKS) if kind == "rules bad"]


def _source(text: str) -> Source:
    return Source("mine.rules", text)


def test_the_page_has_good_and_bad_blocks_alone() -> None:
    assert len(_GOOD) >= 5
    assert len(_BAD) >= 5
    assert {kind for kind, _ in _BLOCKS} == {"rules good", "rules bad", "message"}


@pytest.mark.parametrize("text", _GOOD)
def test_good_block(text: str) -> None:
    ruleset = parse_rules([_source(text)])
    assert not ruleset.warnings, render(ruleset.warnings)
    assert any(rule.tests for rule in ruleset.rules)
    failed = failed_examples(ruleset)
    assert not failed, render(failed)
    assert format_rules(_source(text)) == text


@pytest.mark.parametrize(("text", "kind", "message"), _BAD)
def test_bad_block(text: str, kind: str, message: str) -> None:
    assert kind == "message"
    try:
        found = parse_rules([_source(text)]).warnings
    except InputError as error:
        found = error.diagnostics
    assert render(found) + "\n" == message
