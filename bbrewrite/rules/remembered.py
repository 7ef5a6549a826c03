"""Checked rule sets, kept from one process to the next: to parse and check rules takes longer than to plan with them.

One file in the user's cache directory for each set of rule files, overwritten when their text or this package changes.
What cannot be read or written is no fault: the rules are then parsed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace

from bbrewrite.core.spans import Source
from bbrewrite.core.terms import Term
from bbrewrite.pickling import pickled
from bbrewrite.resources import package_fingerprint
from bbrewrite.rules.rules import Condition, Rule, RuleSet, Siblings
from bbrewrite.runtime.cache import content_key, note, noted

_KIND = "rules"


def remembered_rules(sources: Sequence[Source], parse: Callable[[Sequence[Source]], RuleSet]) -> RuleSet:
    """What `parse` gives for these texts, from the cache where it was parsed before. Raises what `parse` raises."""
    name = content_key(*(source.name for source in sources))
    key = content_key(package_fingerprint(), *(text for source in sources for text in (source.name, source.text)))
    found = _read(name, key)
    if found is None:
        found = parse(sources)
        found = replace(found, rules=_SharedTerms().rules(found.rules))
        note(_KIND, name, pickled((key, found)))
    return found


def _read(name: str, key: str) -> RuleSet | None:
    data = noted(_KIND, name)
    if data is None:
        return None
    try:
        stored, found = pickle.loads(data)
    except Exception:  # a file of another version, or a damaged one, raises anything
        return None
    return found if stored == key else None


class _SharedTerms:
    """Makes equal terms of rules one object: there is much less to read. Digests tell them apart: -0.0 is not 0.0."""

    def __init__(self) -> None:
        self._known: dict[str, Term] = {}

    def rules(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """The same rules."""
        return tuple(
            replace(
                rule,
                matches=tuple((name, self._of(term)) for name, term in rule.matches),
                rewrites=tuple((name, self._of(term)) for name, term in rule.rewrites),
                conditions=tuple(map(self._condition, rule.conditions)),
                tests=tuple(
                    replace(test, left=self._of(test.left), right=None if test.right is None else self._of(test.right))
                    for test in rule.tests
                ),
            )
            for rule in rules
        )

    def _condition(self, condition: Condition) -> Condition:
        if isinstance(condition, Siblings):
            return Siblings(self._of(condition.first), self._of(condition.second))
        return replace(condition, term=self._of(condition.term))

    def _of(self, term: Term) -> Term:
        if term.digest not in self._known:
            self._known[term.digest] = term.with_children(tuple(map(self._of, term.children)))
        return self._known[term.digest]
