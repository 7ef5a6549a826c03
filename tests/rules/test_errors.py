"""Malformed rule files, and exactly what the user is told. Each `NAME.rules` has its `NAME.expected` beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.rules.load import load_rules, parse_rules

CASES = sorted((Path(__file__).parent / "errors").glob("*.rules"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules([Source(path.name, path.read_text(encoding="utf-8"))])
    expected = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert str(caught.value) + "\n" == expected


def test_no_message_speaks_of_the_engine() -> None:
    texts = [path.with_suffix(".expected").read_text(encoding="utf-8") for path in CASES]
    assert len(texts) > 30
    for word in ("egglog", "lark", "Token", "op-", "Traceback"):
        assert not any(word in text for text in texts)


def test_faults_of_all_files_are_reported_together() -> None:
    first = Source("a.rules", "rule a\n    exp(x) => y\n")
    second = Source("b.rules", "rule a\n    exp(x) => exp(x, x)\n")
    with pytest.raises(InputError) as caught:
        parse_rules([first, second])
    assert [str(d.span) for d in caught.value.diagnostics] == ["a.rules:2:15", "b.rules:1:6", "b.rules:2:15"]
    assert caught.value.diagnostics[1].related[0].span.source.name == "a.rules"


def test_missing_path() -> None:
    with pytest.raises(InputError, match="there is no file"):
        load_rules("no/such/rules")
