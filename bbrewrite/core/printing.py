"""Prints block terms and block programs as the language writes them, with the fewest brackets.

`parse(print(p)) == p` for every program whose types are right: index values beside a matrix are printed
without the spreads that parsing puts back (see `spreads.py`), every other spread is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from bbrewrite.core.addresses import Address
from bbrewrite.core.elements import Element, stored_element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.programs import Assumption, BlockProgram, Definition, Role, Tensor
from bbrewrite.core.sharing import share_terms
from bbrewrite.core.spreads import bare_index_values, without_spreads
from bbrewrite.core.terms import (
    Apply,
    At,
    Cast,
    Component,
    IndexValue,
    Loaded,
    Local,
    Map,
    Number,
    Pair,
    Read,
    Reduce,
    Size,
    Stored,
    Term,
    walk,
)
from bbrewrite.core.types import BlockType, BlockTypeError, ListType, StoredType, Type, Typing

# How tightly a form binds: a body after `:` loosest, then operators by their precedences (1 to 8), then calls.
BODY = 0
COMPARISON = 4
UNARY = 7
POWER = 8
ATOM = 9


def print_block_program(program: BlockProgram, table: OperatorTable) -> str:
    """The program as text that parses back to it."""
    typing = Typing(table, program.indices, program.tensors)
    lines = [f"block program {program.name}", *index_lines(program.indices)]
    lines += input_lines(program.inputs, program.assumptions)
    lines += [_definition(definition, typing, table) for definition in program.definitions]
    return "\n".join(lines) + "\n"


def print_shared_program(program: BlockProgram, table: OperatorTable) -> str:
    """The same, with a `let` for every larger term that stands in several places.

    Fused programs share their terms heavily; written out, a running maximum would repeat the scores many times.
    """
    typing = Typing(table, program.indices, program.tensors)
    lines = [f"block program {program.name}", *index_lines(program.indices)]
    lines += input_lines(program.inputs, program.assumptions)
    taken = {*program.tensors, *(index.name for index in program.indices), *table.operators, *table.monoids}
    shared = share_terms([definition.term for definition in program.definitions], taken)
    types = {name: typing.block(term) for name, term in shared.names.items()}
    named = typing.with_locals(types)
    printer = _TermPrinter(table)
    waiting = dict(shared.lets)
    known = {tensor.name for tensor in program.inputs}
    for definition, term in zip(program.definitions, shared.terms, strict=True):
        # A name is given behind the definitions that it reads; what it mentions reads no more than it does.
        for name in [name for name in waiting if _tensors_read(shared.names[name]) <= known]:
            lines.append(f"let {name} = {printer.text(waiting.pop(name))}")
        text = printer.text(without_spreads(term, table, named))
        lines.append(f"{_heading(definition, typing)} = {text}")
        known.add(definition.tensor.name)
    return "\n".join(lines) + "\n"


def _tensors_read(term: Term) -> set[str]:
    return {node.tensor for node in walk(term) if isinstance(node, Read)}


def print_term(term: Term, table: OperatorTable, typing: Typing | None = None) -> str:
    """A term on one line.

    With the `typing` of its program the text parses back to the term; without, every spread of an index value
    among elementwise operators is left out, for reading.
    """
    shown = bare_index_values(term, table) if typing is None else without_spreads(term, table, typing)
    return _TermPrinter(table).text(shown)


def index_lines(indices: IndexTable) -> Iterator[str]:
    """The statement that declares the indices, with their block sizes; none where there are no indices."""
    if indices.entries:
        yield f"index {', '.join(_index(index) for index in indices)}"


def input_lines(inputs: tuple[Tensor, ...], assumptions: tuple[Assumption, ...]) -> Iterator[str]:
    """The statements that declare inputs, weights and assumptions, as both levels write them."""
    for (role, element), group in groupby(inputs, key=lambda tensor: (tensor.role, tensor.element)):
        yield f"{role.value} {', '.join(print_tensor(tensor) for tensor in group)} : {element}"
    if assumptions:
        yield f"assume {', '.join(f'{assumption.fact}({assumption.tensor})' for assumption in assumptions)}"


def print_tensor(tensor: Tensor) -> str:
    """`Q[m, d]`, or the name of a scalar."""
    return tensor.name + (f"[{', '.join(tensor.indices)}]" if tensor.indices else "")


def print_number(value: float) -> str:
    """The shortest text that reads back as the number."""
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    mantissa, _, exponent = repr(float(value)).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}" if exponent else mantissa


def join_infix(symbol: str, precedence: int, operands: list[tuple[str, int]]) -> str:
    """An operator between or before its operands, which are given with how tightly each binds."""
    texts = [text if level >= needed else f"({text})" for (text, level), needed in
             zip(operands, _needed(precedence, len(operands)), strict=True)]  # fmt: skip
    if len(texts) == 1:
        return f"{symbol} {texts[0]}" if symbol.isalpha() else f"{symbol}{texts[0]}"
    return symbol.join(texts) if precedence == POWER else f" {symbol} ".join(texts)


def _needed(precedence: int, arity: int) -> tuple[int, ...]:
    """The least tightness of each operand: infix operators group to the left, `^` to the right."""
    if arity == 1:
        return (precedence,)
    if precedence == POWER:
        return (ATOM, UNARY)
    return (precedence + (precedence == COMPARISON), precedence + 1)


def _index(index: Index) -> str:
    extent = index.same_as if index.same_as is not None else index.extent
    text = index.name + (f" = {extent}" if extent is not None else "")
    return text + (f" by {index.block}" if index.block is not None else "")


def _definition(definition: Definition, typing: Typing, table: OperatorTable) -> str:
    return f"{_heading(definition, typing)} = {print_term(definition.term, table, typing)}"


def _heading(definition: Definition, typing: Typing) -> str:
    """What stands before the `=`."""
    tensor = definition.tensor
    keyword = "output " if tensor.role is Role.OUTPUT else ""
    declared = "" if _inferred_element(definition.term, typing) is tensor.element else f" : {tensor.element}"
    return f"{keyword}{tensor.name}{declared}"


def _inferred_element(term: Term, typing: Typing) -> Element | None:
    """The type of a definition that declares none; None where the term has no type."""
    try:
        found: Type = typing.of(term)
    except BlockTypeError:
        return None
    while isinstance(found, ListType | StoredType):
        found = found.item
    return stored_element(found.element) if isinstance(found, BlockType) else None


class _TermPrinter:
    """Texts of terms with how tightly they bind, each distinct term printed once."""

    def __init__(self, table: OperatorTable) -> None:
        self._table = table
        self._known: dict[Term, tuple[str, int]] = {}

    def text(self, term: Term) -> str:
        return self._leveled(term)[0]

    def _leveled(self, term: Term) -> tuple[str, int]:
        if term not in self._known:
            self._known[term] = self._print(term)
        return self._known[term]

    def _print(self, term: Term) -> tuple[str, int]:
        match term:
            case Number(value):
                return print_number(value), UNARY if value < 0 else ATOM
            case Size(index):
                return f"size({index})", ATOM
            case IndexValue(index):
                return index, ATOM
            case Read(tensor, addresses):
                return tensor + _addressed(addresses), ATOM
            case Local(name, indices):
                return name + _addressed(indices), ATOM
            case Map(index, body):
                return f"map {index}: {self.text(body)}", BODY
            case Reduce(monoid, index, operands):
                texts = ", ".join(self.text(operand) for operand in operands)
                body = texts if len(operands) == 1 else f"({texts})"
                return f"reduce {monoid} {index}: {body}", BODY
            case At():
                return self._read(term), ATOM
            case Stored(value):
                return self._call("stored", (value,)), ATOM
            case Loaded(stored):
                return self._call("loaded", (stored,)), ATOM
            case Pair(first, second):
                return self._call("pair", (first, second)), ATOM
            case Component(position, pair):
                return self._call(("first", "second")[position], (pair,)), ATOM
            case Cast(element, value):
                return self._call(element, (value,)), ATOM
            case Apply(operator, operands, indices):
                function = self._table.functions.get(operator)
                if function is None or not function.symbol:
                    return self._call(operator, operands, indices), ATOM
                leveled = [self._leveled(operand) for operand in operands]
                if operator == "negate" and isinstance(operands[0], Number) and operands[0].value >= 0:
                    # Without brackets the sign would be read as the number's own.
                    leveled = [(leveled[0][0], BODY)]
                return join_infix(function.symbol, function.precedence, leveled), function.precedence
            case _:
                raise AssertionError(term)

    def _call(self, name: str, operands: tuple[Term, ...], indices: tuple[str, ...] = ()) -> str:
        return f"{name}({', '.join([*(self.text(operand) for operand in operands), *indices])})"

    def _read(self, term: At) -> str:
        addresses: list[Address] = []
        items: Term = term
        while isinstance(items, At):
            addresses.insert(0, items.address)
            items = items.items
        text, level = self._leveled(items)
        # Brackets behind a bare name read a tensor by name; around it they tell the two apart.
        is_name = isinstance(items, Read | Local | Number | IndexValue)
        return (f"({text})" if level < ATOM or is_name else text) + _addressed(addresses)


def _addressed(addresses: Iterable[Address | str]) -> str:
    text = ", ".join(str(address) for address in addresses)
    return f"[{text}]" if text else ""
