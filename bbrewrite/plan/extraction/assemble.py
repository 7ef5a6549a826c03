"""From the kernels that were chosen for lists back to terms: of one kernel, and of a whole plan.

A kernel's term reads other lists by name. In a plan's closed terms, which derivations and the partition into
kernels start from, every such read is `At` of the list's own closed term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bbrewrite.core.terms import At, Component, Loaded, Map, Pair, Read, Term, rewrite_bottom_up
from bbrewrite.plan.extraction.extract import KernelForm, stored_blocks
from bbrewrite.plan.extraction.lists import Lists
from bbrewrite.plan.partition import KernelOutput, KernelTerm


def kernel_term(form: KernelForm, lists: Lists) -> KernelTerm:
    """What a kernel computes."""
    blocks = zip(form.stores, stored_blocks(form.term), strict=True)
    outputs = tuple(KernelOutput(lists.as_stored(name, indices), body) for name, (indices, body) in blocks)
    return KernelTerm("_".join(form.stores), outputs)


def closed_terms(kernels: Iterable[KernelForm], lists: Lists) -> dict[str, Term]:
    """The closed term of every list of a plan."""
    makers = {name: kernel for kernel in kernels for name in kernel.stores}
    done: dict[str, Term] = {}

    def change(node: Term) -> Term:
        if not isinstance(node, Read) or node.tensor not in lists.by_name:
            return node
        term = closed(node.tensor)
        for address in node.addresses:
            term = At(term, address)
        tensor = lists.by_name[node.tensor].tensor
        return Loaded(term) if tensor is not None and not tensor.indices else term

    def closed(name: str) -> Term:
        if name not in done:
            whole = rewrite_bottom_up(makers[name].term, change)
            done.update(zip(makers[name].stores, _sides(whole, whole), strict=True))
        return done[name]

    return {name: closed(name) for name in makers}


def _sides(term: Term, whole: Term) -> Iterator[Term]:
    """The lists that a term stores, as the sides of the whole of which it is the value."""
    match term:
        case Map(_, body):
            yield from _sides(body, whole)
        case Pair(first, second):
            yield from _sides(first, Component(0, whole))
            yield from _sides(second, Component(1, whole))
        case _:
            yield whole
