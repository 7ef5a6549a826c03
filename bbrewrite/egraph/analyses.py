"""What saturation derives about every class besides its terms: free indices, constness, which are scalars.

`free` is a mask that merging intersects: two equal values depend on no index that either is proved not
to depend on. It only ever shrinks, so `i not in free(c)`, once true, stays true. `constant` and `scalar` are relations:
they only grow.
Facts about values (`positive` and its like) are in `facts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbrewrite.core.operators import OperatorTable
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.siblings import RANK
from bbrewrite.egraph.vocabulary import AT_ADDRESS, FIRST, INDEX, NUMBER, READ, SECOND, SIZE, Constructor

RULESET = "analyses"


def free_declarations(masks: Masks) -> list[str]:
    """The analysis function, and the masks of addresses, which come with the program."""
    return [
        f"(function free (Term) {masks.sort} :merge (& old new))",
        f"(function address-mask (String) {masks.sort} :no-merge)",
    ]


def free_rules(constructor: Constructor, masks: Masks) -> list[str]:
    """How the mask of a constructor follows from its operands' masks; the masks of reads are given."""
    if constructor == READ:
        return []
    if constructor in (NUMBER, SIZE):
        return [_rule(constructor, [], f"(set (free e) {masks.zero})")]
    found = [f"f{position}" for position in range(constructor.operands)]
    premises = [f"(= f{position} (free x{position}))" for position in range(constructor.operands)]
    if constructor == AT_ADDRESS:
        return [_rule(constructor, [*premises, "(= a (address-mask i0))"], "(set (free e) (| f0 a))")]
    bits = [masks.bit(f"i{position}") for position, sort in enumerate(constructor.attributes) if sort == INDEX]
    if not constructor.binds:
        return [_rule(constructor, premises, f"(set (free e) {masks.union(found + bits)})")]
    union = masks.union(found)
    return [_rule(constructor, [*premises, f"(= f {union})"], f"(set (free e) {masks.without('f', bits[0])})")]


def constant_rules(constructor: Constructor) -> list[str]:
    """A value is constant where its operands are; numbers, sizes and positions are; a read's constness is given."""
    if constructor == READ:
        return []
    return [_rule(constructor, [f"(constant x{position})" for position in range(constructor.operands)], "(constant e)")]


def scalar_rules(constructor: Constructor, table: OperatorTable) -> list[str]:
    """Which new terms are scalars; of a program's own terms it is given.

    Elementwise operators and reductions of scalars are, and what an operator's signature makes of a vector.
    """
    all_scalar = [f"(scalar x{position})" for position in range(constructor.operands)]
    if constructor == NUMBER or constructor.name.startswith("reduce-"):
        return [_rule(constructor, all_scalar, "(scalar e)")]
    if not constructor.name.startswith("op-"):
        return []
    operator = table.operators[constructor.name.removeprefix("op-")]
    if operator.is_elementwise:
        return [_rule(constructor, all_scalar, "(scalar e)")]
    return [_rule(constructor, [], "(scalar e)")] if all(not s.result for s in operator.signatures) else []


def sibling_rules() -> list[str]:
    """A list of pairs is a sibling of what both its sides are siblings of and come before, and stands where its second
    side stands: so any number come into one loop, each once.
    """
    pair = f"(= x ({FIRST.name} p)) (= y ({SECOND.name} p))"
    later = f"(= place ({RANK} y)) (> ({RANK} z) place)"
    return [
        f"(function {RANK} (Term) i64 :merge (min old new))",
        f"(rule ((siblings x z) (siblings y z) {pair} {later})"
        f" ((siblings p z) (set ({RANK} p) place)) :ruleset {RULESET})",
    ]


def pattern(constructor: Constructor, operands: Iterable[str] | None = None) -> str:
    """A constructor on variables: `i0 …` for attributes and `x0 …`, or the ones given, for operands."""
    attributes = [f"i{position}" for position in range(len(constructor.attributes))]
    operands = operands or [f"x{position}" for position in range(constructor.operands)]
    return f"({' '.join([constructor.name, *attributes, *operands])})"


def _rule(constructor: Constructor, premises: list[str], action: str) -> str:
    body = " ".join([f"(= e {pattern(constructor)})", *premises])
    return f"(rule ({body}) ({action}) :ruleset {RULESET})"
