"""A program's terms as egglog text: one `let` for each distinct subterm, and what the analyses are told of leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Assumption, Role, Tensor
from bbrewrite.core.terms import At, Cast, Read, Size, Term, walk
from bbrewrite.core.types import BlockType, BlockTypeError, Type, Typing
from bbrewrite.egraph.masks import Masks
from bbrewrite.egraph.vocabulary import Constructor, attributes_of, constructor_of, read_text


@dataclass
class SpelledProgram:
    """The text, and what is needed to read the frozen e-graph: index names by number, reads and addresses by text."""

    masks: Masks
    index_names: tuple[str, ...]
    lines: list[str] = field(default_factory=list[str])
    constructors: set[Constructor] = field(default_factory=set[Constructor])
    globals: dict[Term, str] = field(default_factory=dict[Term, str])
    reads: dict[str, Read] = field(default_factory=dict[str, Read])
    addresses: dict[str, Address] = field(default_factory=dict[str, Address])


def spell_program(
    roots: Mapping[str, Term],
    indices: IndexTable,
    tensors: Mapping[str, Tensor],
    assumptions: Iterable[Assumption],
    table: OperatorTable,
) -> SpelledProgram:
    """The e-graph's initial terms and facts. `tensors` are all tensors that terms read."""
    names = tuple(index.name for index in indices)
    spelled = SpelledProgram(Masks.for_count(len(names)), names)
    number = {name: str(position) for position, name in enumerate(names)}
    typing = Typing(table, indices, tensors)
    for name in names:
        spelled.lines.append(f"(set (root {number[name]}) {number[indices.root(name)]})")
        extent = indices.extent(name)
        if extent is not None:
            spelled.lines.append(f"(set (extent {number[name]}) {float(extent)!r})")
    facts: dict[str, list[str]] = {}
    for assumption in assumptions:
        facts.setdefault(assumption.tensor, []).append(assumption.fact)

    def index_number(name: str) -> str:
        return number[name]

    def mask(names: Iterable[str]) -> str:
        return spelled.masks.literal(sum(1 << int(number[name]) for name in names))

    for root in roots.values():
        for term in walk(root):
            if term in spelled.globals:
                continue
            constructor = constructor_of(term, is_rounding(term, typing))
            spelled.constructors.add(constructor)
            operands = [spelled.globals[child] for child in term.children]
            attributes = attributes_of(_with_root_size(term, indices), index_number)
            name = f"$t{len(spelled.globals)}"
            spelled.globals[term] = name
            spelled.lines.append(f"(let {name} ({' '.join([constructor.name, *attributes, *operands])}))")
            if _is_scalar(typing.of(term)):
                spelled.lines.append(f"(scalar {name})")
            if isinstance(term, At) and term.address.plain_index is None:
                text = str(term.address)
                if text not in spelled.addresses:
                    spelled.addresses[text] = term.address
                    spelled.lines.append(f'(set (address-mask "{text}") {mask(term.address.index_names)})')
            if isinstance(term, Read):
                spelled.reads[read_text(term)] = term
                spelled.lines.append(f"(set (free {name}) {mask(term.free)})")
                spelled.lines += _facts_of_read(name, tensors[term.tensor], facts)
    return spelled


def _facts_of_read(name: str, tensor: Tensor, facts: Mapping[str, list[str]]) -> list[str]:
    lines = [f"({fact} {name})" for fact in facts.get(tensor.name, [])]
    if tensor.role is Role.WEIGHT:
        lines.append(f"(constant {name})")
    if not tensor.element.is_float:
        lines.append(f"(finite {name})")
    if tensor.element is Element.BOOL:
        lines.append(f"(nonnegative {name})")
    return lines


def _with_root_size(term: Term, indices: IndexTable) -> Term:
    """Sizes of indices with one root are one number."""
    return Size(indices.root(term.index)) if isinstance(term, Size) else term


def _is_scalar(found: Type) -> bool:
    return isinstance(found, BlockType) and not found.axes


def is_rounding(term: Term, typing: Typing) -> bool:
    """Whether a term is a cast from float to float that a value which stays local need not undergo.

    One after which values are computed as f64 that were computed as f32 is no rounding.
    """
    if not isinstance(term, Cast):
        return False
    try:
        found = typing.of(term.value)
    except BlockTypeError:  # of a term that explanations piece together from classes
        return False
    source, target = found.element if isinstance(found, BlockType) else None, Element(term.element)
    if source is None or not (source.is_float and target.is_float):
        return False
    return target.compute_type is not Element.F64 or source.compute_type is Element.F64
