"""The table of facts holds, line by line."""

from __future__ import annotations

import pytest

from tests.egraph.fact_checks import check_monoid_facts, counterexample, derivations


@pytest.mark.parametrize(
    ("function", "premises", "conclusion"), derivations(), ids=[f"{f} {' '.join(p)} {c}" for f, p, c in derivations()]
)
def test_function_facts(function: str, premises: tuple[str, ...], conclusion: str) -> None:
    assert counterexample(function, premises, conclusion) is None


def test_monoid_facts() -> None:
    check_monoid_facts()
