"""The canonical form of a kernel: what it has in common with every kernel that is scheduled alike.

Tensors and indices are named by the places where they are met first. A form has besides all that scheduling reads of
them: extents, blocks and order of indices, element types of tensors, and from which tier of memory they come. Two
kernels of one form are equal up to names; equal ones may have two forms where names order the parts of an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.core.renaming import renamed_parts
from bbrewrite.core.terms import IndexValue, Read, Term, named_indices, walk
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.partition import KernelTerm


@dataclass(frozen=True)
class CanonicalKernel:
    """A kernel's form, with the canonical names of its indices and what each of its terms is under canonical names."""

    form: object
    indices: Mapping[str, str]
    parts: Mapping[Term, Term]


def canonical_kernel(
    kernel: KernelTerm, indices: IndexTable, tensors: Mapping[str, Tensor], machine: Machine
) -> CanonicalKernel:
    """The form of a kernel for a machine. `tensors` are all that it reads."""
    terms = tuple(dict.fromkeys(part for output in kernel.outputs for part in walk(output.body)))
    touched = {t.tensor: tensors[t.tensor] for t in terms if isinstance(t, Read)}
    touched |= {output.tensor.name: output.tensor for output in kernel.outputs}
    tensor_names = {name: f"tensor{number}" for number, name in enumerate(touched)}
    met = [*(name for tensor in touched.values() for name in tensor.indices), *_indices_of(terms)]
    index_names = {name: f"index{number}" for number, name in enumerate(dict.fromkeys(met))}
    parts = renamed_parts(terms, index_names, tensor_names)
    holders: dict[str, str] = {}
    table = tuple(
        (name, holders.setdefault(indices.root(i.name), name), indices.extent(i.name), i.block, i.block_is_fixed)
        for i in indices
        if (name := index_names.get(i.name)) is not None
    )

    def facts(tensor: Tensor) -> object:
        tier = machine.target.tier_of(machine.distance(tensor, indices))
        is_given = tensor.role in (Role.INPUT, Role.WEIGHT)
        axes = tuple(index_names[name] for name in tensor.indices)
        return (axes, tensor.element, tensor.natural, tier.name, is_given)

    outputs = tuple((tensor_names[output.tensor.name], parts[output.body]) for output in kernel.outputs)
    return CanonicalKernel((table, tuple(map(facts, touched.values())), outputs), index_names, parts)


def _indices_of(terms: tuple[Term, ...]) -> Iterator[str]:
    for term in terms:
        if isinstance(term, IndexValue):
            yield term.index
        elif isinstance(term, Read):
            for address in term.addresses:
                yield from (name for name, _ in (*address.indices, *address.sizes))
        else:
            yield from named_indices(term)
