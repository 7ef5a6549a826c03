"""Formatting rule files: one layout, comments kept, tokens and meaning unchanged, nothing left to do a second time."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.spans import Source, Span
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.resources import resource_directory
from bbrewrite.rules.format import format_rules
from bbrewrite.rules.load import parse_rules
from bbrewrite.rules.rules import RuleSet
from bbrewrite.rules.syntax import rule_tokens

SHIPPED = {path.name: path.read_text(encoding="utf-8") for path in sorted(resource_directory("rules").glob("*.rules"))}
UNTIDY = """# head


# doc
@phase( lower )   @fast_math("a # b")
rule  r1 "m # x"   # c1
  dot(row_scale(a,c),b)=>row_scale(dot(a,b),c)  # c2
  where c is const,positive(c) ,2>=-3
     # inner
  test a=>b  test c stays
rule r2 exp(x)   # why
   =>    # becomes
   - x ^ 2 + where(not(x<0),-3,x-1)
  * one(
     x, x
  )

rule m
  match x = map(i,a),
     y=map(i,b)
  then x=>first(p),  y=>second(p)
  let p=map(i,pair(a,b)) where siblings(x,y)
op weight(a,b)=where(a==b,1,exp(a-b))
op one(a,b)=a
monoid lse state m,s identity -inf,0
    element x=>x,1
    combine (m1,s1),(m2,s2)=>m,s1*weight(m1,m)+
     s2*weight(m2,m) let m=maximum(m1,m2)
    finish m+log(s)
    # tail"""
TIDY = """# head

# doc
@phase(lower)
@fast_math("a # b")
rule r1 "m # x"    # c1
    dot(row_scale(a, c), b)  =>  row_scale(dot(a, b), c)  # c2
    where c is const, positive(c), 2 >= -3
    # inner
    test  a => b
    test  c stays
rule r2
    exp(x)       # why
    =>   # becomes
        -x^2 + where(not (x < 0), -3, x - 1)
        * one(
              x, x
    )

rule m
    match x = map(i, a),
          y = map(i, b)
    then  x => first(p), y => second(p)
    let   p = map(i, pair(a, b))
    where siblings(x, y)
op weight(a, b) = where(a == b, 1, exp(a - b))
op one(a, b) = a
monoid lse
    state    m, s
    identity -inf, 0
    element  x => x, 1
    combine  (m1, s1), (m2, s2) => m, s1 * weight(m1, m) +
             s2 * weight(m2, m)  let m = maximum(m1, m2)
    finish   m + log(s)
# tail
"""


def formatted(text: str) -> str:
    return format_rules(Source("a.rules", text))


def tokens(text: str) -> list[tuple[str, str]]:
    return [(token.type, str(token)) for token in rule_tokens(Source("a.rules", text))]


def meaning(text: str) -> RuleSet:
    """What a file says, without places."""
    nowhere = Span(Source("", ""), 1, 1)
    found = parse_rules([Source("a.rules", text)])
    rules = tuple(
        replace(rule, span=nowhere, tests=tuple(replace(test, span=nowhere) for test in rule.tests))
        for rule in found.rules
    )
    return RuleSet(rules, replace(found.table, functions={}, operators={}, monoids=dict(found.table.monoids)))


def test_layout() -> None:
    assert formatted(UNTIDY) == TIDY


@pytest.mark.parametrize("text", [*SHIPPED.values(), UNTIDY], ids=[*SHIPPED, "untidy"])
def test_meaning_and_comments_stay(text: str) -> None:
    assert tokens(formatted(text)) == tokens(text)
    assert formatted(formatted(text)) == formatted(text)
    assert formatted(text).count("#") == text.count("#")


def test_parsing_gives_the_same_rules() -> None:
    text = SHIPPED["softmax.rules"] + UNTIDY.replace("weight", "weight2").replace("one(", "one2(")
    assert meaning(formatted(text)) == meaning(text)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_files_are_formatted(name: str) -> None:
    assert formatted(SHIPPED[name]) == SHIPPED[name]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([*SHIPPED.values(), UNTIDY, TIDY]))
def test_whatever_the_white_space(seed: int, text: str) -> None:
    """White space and comments are strewn between tokens; the layout keeps tokens, comments and documentation."""
    draw = random.Random(seed)
    spaced: list[str] = []
    start = draw.randrange(len(text) // 2)
    for line in text.splitlines()[text[:start].count("\n") :][:40]:
        words = line.split(" ") if not line.lstrip().startswith("#") and '"' not in line and "#" not in line else [line]
        for word in words:
            spaced.append(word + draw.choice([" ", " ", "  ", "\t"] + (["\n", " # note\n"] if word != line else [])))
        spaced.append(draw.choice(["\n", "\n", "\n\n\n"]))
    changed = "".join(spaced)
    try:
        once = formatted(changed)
    except InputError:
        return
    assert tokens(once) == tokens(changed)
    assert formatted(once) == once
    assert once.count("#") == changed.count("#")
    try:
        before = meaning(changed)
    except InputError:
        return
    assert meaning(once) == before


def test_a_file_with_a_fault_is_refused() -> None:
    with pytest.raises(InputError, match="there is no arrow"):
        formatted("rule r\n    exp(x) -> x\n")
