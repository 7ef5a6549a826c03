"""Terms under other names of tensors and indices.

Names are replaced everywhere, those of binders included, so a renaming of indices must not map two names of one term
to one. What names mean, and which may stand for which, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bbrewrite.core.terms import (
    Apply,
    At,
    IndexValue,
    Local,
    Map,
    Read,
    Reduce,
    Size,
    Term,
    rewrite_bottom_up,
)


def rename_term(term: Term, indices: Mapping[str, str], read: Callable[[Read], Read]) -> Term:
    """The term with index names replaced everywhere, and every read by what `read` makes of it before that."""
    rename = _index_renaming(indices)
    return rewrite_bottom_up(term, lambda node: rename(read(node) if isinstance(node, Read) else node))


def renamed_parts(parts: Iterable[Term], indices: Mapping[str, str], tensors: Mapping[str, str]) -> Mapping[Term, Term]:
    """Terms, operands before their users, with what each is under other names of indices and tensors."""
    rename = _index_renaming(indices)
    found: dict[Term, Term] = {}
    for part in parts:
        new = part.with_children(tuple(found[child] for child in part.children))
        found[part] = rename(Read(tensors[new.tensor], new.addresses) if isinstance(new, Read) else new)
    return found


def _index_renaming(names: Mapping[str, str]) -> Callable[[Term], Term]:
    def name(index: str) -> str:
        return names.get(index, index)

    def change(node: Term) -> Term:
        match node:
            case Read(tensor, addresses):
                return Read(tensor, tuple(address.renamed(names) for address in addresses))
            case Local(local, indices) if indices:
                return Local(local, tuple(map(name, indices)))
            case At(items, address):
                return At(items, address.renamed(names))
            case IndexValue(index):
                return IndexValue(name(index))
            case Size(index):
                return Size(name(index))
            case Map(index, inner):
                return Map(name(index), inner)
            case Reduce(monoid, index, operands):
                return Reduce(monoid, name(index), operands)
            case Apply(operator, operands, indices) if indices:
                return Apply(operator, operands, tuple(map(name, indices)))
            case _:
                return node

    return change
