"""No message is longer than a person reads, whatever stands in the input: names, lines and expressions are cut."""

from __future__ import annotations

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError, shortened
from bbrewrite.lang.programs import parse_program
from bbrewrite.rules.load import parse_rules
from tests.array_programs import TABLE

_NAME = "x" * 3000
_CHAIN = " + ".join(["a"] * 300)
_HEAD = f"program p\nindex m = 4\ninput {_NAME}[m], X[m] : f32\n"


@pytest.mark.parametrize(
    "statement",
    [
        f"output Y[m] = {_NAME}y[m]",
        f"output Y[m] = {_NAME}",
        f"output {_NAME}[m] = X[m]",
        f"output Y[m] = X[m] + {_CHAIN.replace('a', 'X[m]')} + {_NAME}(X[m])",
        f"output Y[m] = X[{_NAME}]",
    ],
)
def test_programs(statement: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_program(Source("p.bb", f"{_HEAD}{statement}\n"), TABLE)
    assert max(map(len, str(caught.value).splitlines())) < 700


@pytest.mark.parametrize(
    "rule",
    [
        f"rule {_NAME}\n    {_NAME}(a) => a\n",
        f"rule {_NAME}\n    a * 1 => a\nrule {_NAME}\n    a * 1 => a\n",
        f"rule r\n    a * 1 => {_NAME}\n",
        f"rule r\n    {_CHAIN} => {_CHAIN} + b\n",
        f"rule r\n    row_sum({_NAME}) => {_NAME}\n",
    ],
)
def test_rules(rule: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rules([Source("r.rules", rule)])
    assert max(map(len, str(caught.value).splitlines())) < 700


def test_texts_of_usual_length_stay() -> None:
    text = f"no file {'/directory' * 14}/file.bb: " + "a word " * 50
    assert shortened(text) == text
    assert shortened(_NAME) == "x" * 120 + "..."
    assert shortened("a b " * 500) == ("a b " * 500)[:600] + " ..."
