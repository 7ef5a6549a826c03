"""PTX text as data: kernels with their parameters, shared memory, registers and instructions.

This reads the form that nvcc writes; it knows the syntax of instructions and not what any of them does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

type OperandKind = Literal["register", "immediate", "name", "vector", "address", "sink", "pair"]


class PtxSyntaxError(Exception):
    """Text that this reader does not understand: a fault of the reader, not of the kernel."""


@dataclass(frozen=True)
class Operand:
    """`text` is a register, a number as PTX writes it, or a name; `offset` belongs to an address.

    `items` are the registers of a vector or of a pair of predicates; `negated` is for predicates.
    """

    kind: OperandKind
    text: str = ""
    items: tuple[Operand, ...] = ()
    offset: int = 0
    negated: bool = False


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction: its dotted opcode, operands, and guard. `line` is that of the PTX text."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: str
    guard_negated: bool
    line: int
    source: str  # the place in the CUDA text, `file:line`, "" where it is not known


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter, at a byte offset among all."""

    name: str
    size: int
    offset: int


@dataclass(frozen=True)
class Variable:
    """An array in shared or local memory, at a byte offset; an external one (size 0) begins where the others end."""

    name: str
    size: int
    offset: int


@dataclass(frozen=True)
class PtxKernel:
    """One entry point."""

    name: str
    parameters: tuple[Parameter, ...]
    shared: tuple[Variable, ...]
    local: tuple[Variable, ...]
    instructions: tuple[PtxInstruction, ...]
    labels: dict[str, int]  # the number of the instruction that follows

    @property
    def static_shared_bytes(self) -> int:
        return max((variable.offset + variable.size for variable in self.shared), default=0)

    @property
    def local_bytes(self) -> int:
        return max((variable.offset + variable.size for variable in self.local), default=0)


_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr\b[^,\[\]]*?)?\s+([\w$]+)(?:\[(\d+)\])?")
_VARIABLE = re.compile(r"(?:\.extern\s+)?\.(shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LABEL = re.compile(r"^([\w$]+):")
_IGNORED = (".reg", ".pragma", ".file", ".section", ".maxntid", ".minnctapersm", ".reqntid", ".maxnreg")
_ADDRESS = re.compile(r"^([%\w$.]+)(?:\s*\+\s*(-?\d+))?$")


def parse_ptx(text: str) -> dict[str, PtxKernel]:
    """The kernels of a module by name."""
    files = {
        number: name.rsplit("/", 1)[-1] for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.M)
    }
    # Shared arrays of templates and dynamic shared memory stand outside of kernels.
    lines = re.sub(r"//.*", "", text).splitlines()
    outside: list[str] = []
    kernels: dict[str, PtxKernel] = {}
    position = 0
    while position < len(lines):
        line = lines[position]
        entry = _ENTRY.search(line)
        if entry is None:
            outside.append(line)
            position += 1
            continue
        head_end = next(k for k in range(position, len(lines)) if lines[k].strip() == "{")
        end = next(k for k in range(head_end, len(lines)) if lines[k].rstrip() == "}")
        head = "\n".join(lines[position:head_end])
        kernels[entry.group(1)] = _kernel(entry.group(1), head, lines, head_end + 1, end, outside, files)
        position = end + 1
    return kernels


def _kernel(
    name: str, head: str, lines: list[str], start: int, end: int, outside: list[str], files: dict[str, str]
) -> PtxKernel:
    instructions: list[PtxInstruction] = []
    labels: dict[str, int] = {}
    source = ""
    pending = ""
    for number in range(start, end):
        # Inline assembly is wrapped in braces of its own; operands' braces are part of an instruction.
        text = lines[number].strip()
        if text.startswith("{") and (text == "{" or text.endswith("}")):
            text = text.removeprefix("{").removesuffix("}").strip()
        text = text.strip() if text != "}" else ""
        label = _LABEL.match(text)
        if label and not pending:
            labels[label.group(1)] = len(instructions)
            text = text[label.end() :].strip()
        if text.startswith(".loc"):
            _, file, place, *_ = text.split()
            source = f"{files.get(file, file)}:{place}"
            continue
        if not text or text.startswith((*_IGNORED, ".shared", ".local", ".extern")):
            continue
        pending = f"{pending} {text}".strip()
        while ";" in pending:
            statement, pending = pending.split(";", 1)
            pending = pending.strip()
            if statement.strip():
                instructions.append(_instruction(statement.strip(), number + 1, source))
    inside = "\n".join(lines[start:end])
    body = "\n".join(outside) + "\n" + inside
    return PtxKernel(
        name, _parameters(head), _variables(body, "shared"), _variables(inside, "local"), tuple(instructions), labels
    )


def _parameters(head: str) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    offset = 0
    for align, kind, name, count in _PARAMETER.findall(head):
        element = type_size(kind)
        size = element * int(count or 1)
        alignment = int(align or element)
        offset = -(-offset // alignment) * alignment
        found.append(Parameter(name, size, offset))
        offset += size
    return tuple(found)


def _variables(text: str, space: str) -> tuple[Variable, ...]:
    found: list[Variable] = []
    external: list[str] = []
    offset = 0
    for match in _VARIABLE.finditer(text):
        own_space, align, kind, name, count = match.groups()
        if own_space != space:
            continue
        if count == "":
            external.append(name)
            continue
        alignment = int(align or type_size(kind))
        offset = -(-offset // alignment) * alignment
        size = type_size(kind) * int(count or 1)
        found.append(Variable(name, size, offset))
        offset += size
    offset = -(-offset // 16) * 16
    return (*found, *(Variable(name, 0, offset) for name in external))


def type_size(kind: str) -> int:
    """The bytes of a PTX type such as `u32`."""
    if kind == "pred":
        return 1
    return int(re.sub(r"\D", "", kind)) // 8


def _instruction(text: str, line: int, source: str) -> PtxInstruction:
    guard, negated = "", False
    if text.startswith("@"):
        word, text = text.split(None, 1)
        negated = word.startswith("@!")
        guard = word.lstrip("@!")
    opcode, _, rest = text.partition(" ") if " " in text else text.partition("\t")
    opcode, _, tail = opcode.partition("\t")
    rest = f"{tail} {rest}".strip()
    operands = tuple(_operand(part) for part in _split(rest))
    return PtxInstruction(tuple(opcode.split(".")), operands, guard, negated, line, source)


def _split(text: str) -> list[str]:
    """Operands, separated by commas outside of braces and brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for place, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _operand(text: str) -> Operand:
    if text.startswith("{"):
        return Operand("vector", items=tuple(_operand(part) for part in _split(text[1:-1])))
    if text.startswith("["):
        match = _ADDRESS.match(text[1:-1].strip())
        if not match:
            raise PtxSyntaxError(f"the address {text} is not understood")
        return Operand("address", match.group(1), offset=int(match.group(2) or 0))
    if "|" in text:
        return Operand("pair", items=tuple(_operand(part.strip()) for part in text.split("|")))
    if text.startswith("!"):
        return Operand("register", text[1:].strip(), negated=True)
    if text == "_":
        return Operand("sink")
    if text.startswith("%"):
        return Operand("register", text)
    if re.fullmatch(r"-?\d+U?|-?0[xX][0-9a-fA-F]+U?|0[fFdD][0-9a-fA-F]+|0b[01]+", text):
        return Operand("immediate", text)
    if re.fullmatch(r"[\w$]+", text):
        return Operand("name", text)
    raise PtxSyntaxError(f"the operand {text} is not understood")
