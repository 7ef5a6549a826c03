"""The egglog text of rules, as `check --emit egglog` prints it."""

from __future__ import annotations

from bbrewrite.core.spans import Source
from bbrewrite.egraph.compile import compile_rule, engine_text
from bbrewrite.egraph.masks import Masks
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules, parse_rules

MACHINE, WIDE = Masks.for_count(4), Masks.for_count(63)


def emitted(text: str, masks: Masks = MACHINE) -> str:
    (rule,) = parse_rules([Source("test.rules", text)]).rules
    return "\n".join(compiled.text for compiled in compile_rule(rule, masks))


def test_condition_on_free_indices() -> None:
    text = """rule hoist
    reduce(sum, i, row_scale(x, c))  =>  row_scale(reduce(sum, i, x), c)
    where i not in free(c)
"""
    assert (
        emitted(text)
        == """(rule ((= ?it (reduce-sum ?i (op-row_scale ?x ?c)))
       (= 0 (& (free ?c) (<< 1 ?i))))
      ((union ?it (op-row_scale (reduce-sum ?i ?x) ?c)))
      :ruleset fuse :name "hoist")"""
    )
    assert "(= (bigint 0) (& (free ?c) (<< (bigint 1) ?i)))" in emitted(text, WIDE)


def test_several_patterns_and_a_phase() -> None:
    text = """@phase(extend)
rule pairs
    match x = map(i, a), y = map(i, b)
    then  x => first(p), y => second(p)
    let   p = map(i, pair(a, b))
    where siblings(x, y)
"""
    assert (
        emitted(text)
        == """(rule ((= ?x (Map ?i ?a))
       (= ?y (Map ?i ?b))
       (siblings ?x ?y))
      ((union ?x (First (Map ?i (Pair ?a ?b))))
       (union ?y (Second (Map ?i (Pair ?a ?b)))))
      :ruleset extend :name "pairs")"""
    )


def test_both_ways_and_numbers() -> None:
    text = "rule both\n    x / size(i) + reduce(sum, i, c)  <=>  reduce(sum, i, c) + x * -inf\n    where c >= -0.5\n"
    forth, back = emitted(text.replace("/ size(i)", "* 2")).split("\n(rule")
    assert "(op-multiply ?x (Number 2.0))" in forth
    assert "(= ?c (Number ?value-c))\n       (>= ?value-c -0.5)" in forth
    assert "(Number -inf)" in back.split("((union")[0]
    assert back.endswith(':name "both <=")')


def test_the_engine_accepts_the_shipped_rules_by_themselves() -> None:
    from egglog.bindings import EGraph

    shipped = load_rules(resource_directory("rules"))
    for masks in (MACHINE, WIDE):
        engine = EGraph(no_decomp=True)
        engine.run_program(*engine.parse_program(engine_text(shipped, masks, fast_math=True)))
        engine.run_program(*engine.parse_program("(run-schedule (saturate (run fuse)))"))
