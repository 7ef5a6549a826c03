"""Rule files that are wrong, or strange, and exactly what the user is told.

Each `NAME.rules` has its `NAME.expected` beside it: in `errors/` what stops a file, in `warnings/` what is only said.
`UPDATE_GOLDEN=1 pytest tests/rules` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError, render
from bbrewrite.rules.load import load_rules, parse_rules

_HERE = Path(__file__).parent
ERRORS = sorted((_HERE / "errors").glob("*.rules"))
WARNINGS = sorted((_HERE / "warnings").glob("*.rules"))
# Of quite different kinds: each is told once, at the line that is at fault.
ONE_MESSAGE = {
    "missing_arrow": 2,
    "unclosed_bracket": 2,
    "open_text": 1,
    "misspelt_clause": 3,
    "thin_arrow": 2,
    "rule_without_a_name": 1,
    "rule_without_a_name_before_a_sum": 4,
    "unknown_operator": 2,
    "unbound_name": 2,
    "wrong_arity": 2,
    "duplicate_rule": 4,
    "monoid_without_identity": 1,
    "missing_right_side": 2,
    "program_for_rules": 1,
    "unknown_attribute": 1,
}


def _source(path: Path) -> Source:
    return Source(path.name, path.read_text(encoding="utf-8"))


def _check(path: Path, text: str) -> None:
    expected = path.with_suffix(".expected")
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: path.stem)
def test_message(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules([_source(path)])
    _check(path, str(caught.value) + "\n")


@pytest.mark.parametrize("path", WARNINGS, ids=lambda path: path.stem)
def test_warning(path: Path) -> None:
    warnings = parse_rules([_source(path)]).warnings
    assert warnings
    assert {warning.severity for warning in warnings} == {"warning"}
    _check(path, render(warnings) + "\n")


@pytest.mark.parametrize(("name", "line"), ONE_MESSAGE.items())
def test_one_message_at_the_right_line(name: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules([_source(_HERE / "errors" / f"{name}.rules")])
    assert [fault.span and fault.span.line for fault in caught.value.diagnostics] == [line]


def test_no_message_speaks_of_the_engine() -> None:
    texts = [path.with_suffix(".expected").read_text(encoding="utf-8") for path in (*ERRORS, *WARNINGS)]
    assert len(texts) > 60
    for word in ("egglog", "lark", "Token", "op-", "Traceback", "Span("):
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


def test_a_rule_that_is_in_order_has_no_warning() -> None:
    text = '# sum_i c x_i = c sum_i x_i\nrule hoist "out"\n    reduce(sum, i, x * c)  =>  reduce(sum, i, x) * c\n'
    assert parse_rules([Source("a.rules", text + "    where i not in free(c)\n")]).warnings == ()
    assert [w.code for w in parse_rules([Source("a.rules", text)]).warnings] == ["scope"]


@pytest.mark.parametrize(
    "conditions",
    [
        "nonnegative(x), nonnegative(-x)",
        "x <= 1, 1 <= x, x != 2",
        "positive(x), x < 0.5, nonzero(-x)",
        "x <= y, y <= x",
        "positive(x), positive(-y)",
        "finite(x), x < inf",
    ],
)
def test_conditions_that_may_hold_together(conditions: str) -> None:
    text = f'rule r "meaning"\n    log(x) * y  =>  y\n    where {conditions}\n'
    assert parse_rules([Source("a.rules", text)]).warnings == ()
