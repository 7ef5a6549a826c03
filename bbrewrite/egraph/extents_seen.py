"""What saturation sees of a program's extents: so much that programs which differ in the rest have one e-graph.

An extent is seen where a rule's condition compares it, and where two are equal, since lists may then be read along
either index. Most conditions ask whether an extent is above 0, so extents differ from call to call and the e-graph does
not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.terms import Apply, Number, Size, Term, walk
from bbrewrite.rules.rules import Comparison, RuleSet

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def comparisons_of_extents(ruleset: RuleSet, fast_math: bool) -> tuple[Term, ...]:
    """The comparisons in conditions of rules in which an extent occurs, each once whatever the index is called."""
    conditions = (condition for rule in ruleset.enabled(fast_math) for condition in rule.conditions)
    compared = [condition.term for condition in conditions if isinstance(condition, Comparison)]
    return tuple(dict.fromkeys(term for term in compared if any(isinstance(part, Size) for part in walk(term))))


def extents_seen(indices: IndexTable, comparisons: tuple[Term, ...]) -> object:
    """Equal for two programs of the same indices where saturation sees no difference in their extents."""
    extents = [indices.extent(index.name) for index in indices]
    told = tuple(None if extent is None else tuple(_told(extent, term) for term in comparisons) for extent in extents)
    return indices.shape, told


def _told(extent: int, comparison: Term) -> object:
    """What a comparison tells of an extent: where it is compared with a number the outcome, otherwise the extent."""
    match comparison:
        case Apply(name, (Size(), Number(value))):
            return _COMPARED[name](extent, value)
        case Apply(name, (Number(value), Size())):
            return _COMPARED[name](value, extent)
        case _:
            return extent
