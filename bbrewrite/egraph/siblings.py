"""Which definitions are worth making in one loop: what the condition `siblings(x, y)` of rule files says.

Two definitions are siblings where their outermost index is the same, they read a common tensor (through
other definitions too), and neither reads the other; of two outputs one may read the other, for both are stored
anyway. This is about worth, not truth, so it is asked of the program and not of the e-graph.
"""

from __future__ import annotations

from bbrewrite.core.programs import BlockProgram, Role
from bbrewrite.core.terms import Read, walk


def sibling_pairs(program: BlockProgram) -> tuple[tuple[str, str], ...]:
    """The pairs, each once, the earlier definition first."""
    reads: dict[str, frozenset[str]] = {}
    for definition in program.definitions:
        direct = {term.tensor for term in walk(definition.term) if isinstance(term, Read)}
        reads[definition.tensor.name] = frozenset(direct).union(*(reads.get(name, frozenset()) for name in direct))
    tensors = [definition.tensor for definition in program.definitions if definition.tensor.indices]
    return tuple(
        (x.name, y.name)
        for position, y in enumerate(tensors)
        for x in tensors[:position]
        if x.indices[0] == y.indices[0]
        and reads[x.name] & reads[y.name]
        and (x.name not in reads[y.name] or x.role is y.role is Role.OUTPUT)
    )
