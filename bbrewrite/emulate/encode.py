"""Turns the instructions of a kernel into what the machine runs.

PTX writes an operation with its type and modifiers in one dotted word. Here each becomes one operation of the machine
with its type, mode and flags, and operands become slots of the register file. A modifier or an operation that is not
known is an error: nothing is ever skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bbrewrite.emulate.ptx import Operand, PtxInstruction, PtxKernel, PtxSyntaxError

SPECIALS = (
    *(f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    "%laneid",
    "%warpid",
)
_SHARED_WINDOW, _LOCAL_WINDOW = 1 << 60, 1 << 61
_FLUSH, _SATURATE, _PROPAGATE_NAN, _NEGATE_THIRD = 1, 2, 4, 8

_SPACES = frozenset({"global", "shared", "local"})
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"})
# Modifiers that change speed or caching, never a value.
_CACHING = (
    "nc",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "volatile",
    "weak",
    "relaxed",
    "L1::no_allocate",
    "L2::128B",
)
_WITHOUT_EFFECT = frozenset({"approx", "full", "sync", "aligned", "uni", *_CACHING})
# The shape in which tensor cores multiply operands of a type.
_PRODUCTS = {"bf16": "m16n8k16", "f16": "m16n8k16", "tf32": "m16n8k8"}
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", *_UNORDERED})
# Operations of one result and the given number of sources, the same name in the machine.
_PLAIN = {
    **dict.fromkeys(("neg", "abs", "not", "popc", "clz", "brev", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin"), 1),
    **dict.fromkeys(("cos", "tanh"), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"), 2),
    **dict.fromkeys(("copysign",), 2),
    **dict.fromkeys(("fma", "mad", "bfe", "prmt"), 3),
    **dict.fromkeys(("bfi", "lop3"), 4),
}


@dataclass
class Encoded:
    """One instruction for the machine; `target` is a label until all are known."""

    operation: str
    type: str = "b32"
    source_type: str = "b32"
    mode: str = "none"
    combine: int = 0
    count: int = 1
    flags: int = 0
    guard: int = -1
    guard_negated: bool = False
    line: int = 0
    operands: list[int] = field(default_factory=list[int])
    offset: int = 0
    target: str = ""


@dataclass(frozen=True)
class EncodedKernel:
    """A kernel for the machine. `constants` gives the value of each slot that holds one from the start."""

    kernel: PtxKernel
    code: tuple[Encoded, ...]
    slot_count: int
    constants: Mapping[int, int]
    specials: Mapping[str, int]

    def place(self, number: int) -> str:
        """Where an instruction comes from, as `file:line (line of the PTX)`."""
        line = self.code[number].line
        source = next((read.source for read in self.kernel.instructions if read.line == line), "")
        return f"{source or 'unknown'} (line {line} of the PTX)"


def encode(kernel: PtxKernel) -> EncodedKernel:
    """Raises PtxSyntaxError at the first instruction that is not known."""
    encoder = _Encoder(kernel)
    code = [encoder.instruction(instruction) for instruction in kernel.instructions]
    # A kernel may end in a branch; what follows its last instruction is its end.
    code.append(Encoded("exit", line=kernel.instructions[-1].line))
    for encoded in code:
        if encoded.target:
            encoded.offset = kernel.labels[encoded.target]
    return EncodedKernel(kernel, tuple(code), encoder.slot_count, encoder.constants, encoder.specials)


class _Encoder:
    def __init__(self, kernel: PtxKernel) -> None:
        self._parameters = {parameter.name: parameter for parameter in kernel.parameters}
        self._names = {variable.name: variable.offset for variable in (*kernel.shared, *kernel.local)}
        self._slots: dict[str, int] = {}
        self._constant_slots: dict[int, int] = {}
        self.constants: dict[int, int] = {}
        self.specials: dict[str, int] = {}
        self.slot_count = 0

    def instruction(self, read: PtxInstruction) -> Encoded:
        """The machine's form of one instruction."""
        name, *modifiers = read.opcode
        made = self._made(read, name, [m for m in modifiers if m not in _WITHOUT_EFFECT])
        if made is None:
            text = ".".join(read.opcode)
            raise PtxSyntaxError(f"line {read.line} of the PTX: the emulator does not know the instruction {text}")
        made.line = read.line
        if read.guard:
            made.guard, made.guard_negated = self._register(read.guard), read.guard_negated
        assert len(made.operands) <= 16
        return made

    def _made(self, read: PtxInstruction, name: str, modifiers: list[str]) -> Encoded | None:
        operands = read.operands
        if name in ("bra", "ret", "exit", "bar", "barrier", "membar", "fence"):
            return self._control(name, modifiers, operands)
        if name in ("ld", "ldu", "st"):
            return self._memory(name, modifiers, operands)
        if name in ("shfl", "vote", "activemask", "ldmatrix", "mma"):
            return self._collective(name, modifiers, operands)
        if name == "cp":
            return self._copy(modifiers, operands)
        if name in ("mov", "cvt", "cvta", "setp", "selp", "testp", "shf"):
            return self._conversion(name, modifiers, operands)
        return self._arithmetic(name, modifiers, operands)

    # Operands

    def _register(self, name: str) -> int:
        if name not in self._slots:
            self._slots[name] = self._new_slot()
            if name in SPECIALS:
                self.specials[name] = self._slots[name]
            elif name.startswith("%") and ("." in name or name in ("%clock", "%smid", "%gridid")):
                raise PtxSyntaxError(f"the emulator does not know the special register {name}")
        return self._slots[name]

    def _new_slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1

    def _constant(self, value: int) -> int:
        value &= (1 << 64) - 1
        if value not in self._constant_slots:
            slot = self._constant_slots[value] = self._new_slot()
            self.constants[slot] = value
        return self._constant_slots[value]

    def _slot(self, operand: Operand, width: int = 64) -> int:
        """The slot from which an operand is read."""
        match operand.kind:
            case "register":
                return self._register(operand.text)
            case "immediate":
                return self._constant(_bits(operand.text, width))
            case "name" if operand.text == "WARP_SZ":
                return self._constant(32)
            case "name" if operand.text in self._names:
                return self._constant(self._names[operand.text])
            case _:
                raise PtxSyntaxError(f"the operand {operand.text or operand.kind} is not understood")

    def _slots_of(self, operands: Sequence[Operand], width: int = 64) -> list[int]:
        return [self._slot(operand, width) for operand in operands]

    def _result(self, operand: Operand) -> int:
        return -1 if operand.kind == "sink" else self._register(operand.text)

    def _address(self, operand: Operand) -> tuple[int, int]:
        """The slot and the offset of an address."""
        if operand.text in self._names:
            return self._constant(0), self._names[operand.text] + operand.offset
        return self._register(operand.text), operand.offset

    # Kinds of instructions

    def _control(self, name: str, modifiers: list[str], operands: tuple[Operand, ...]) -> Encoded | None:
        match name, modifiers:
            case "bra", []:
                return Encoded("branch", target=operands[0].text)
            case (("ret" | "exit"), []):
                return Encoded("exit")
            case (("bar" | "barrier"), ([] | ["cta"])) if [o.text for o in operands] == ["0"]:
                return Encoded("barrier")
            case "bar", ["warp"]:
                return Encoded("sync_warp", operands=self._slots_of(operands, 32))
            case (("membar" | "fence"), _):
                return Encoded("fence")
            case _:
                return None

    def _memory(self, name: str, modifiers: list[str], operands: tuple[Operand, ...]) -> Encoded | None:
        *rest, kind = modifiers
        count = next((int(m[1]) for m in rest if m in ("v2", "v4")), 1)
        rest = [m for m in rest if m not in ("v2", "v4")]
        if len(rest) > 1 or not set(rest) <= {*_SPACES, "param"}:
            return None
        space = rest[0] if rest else "generic"
        values, address = (operands[0], operands[1]) if name != "st" else (operands[1], operands[0])
        items = values.items or (values,)
        if space == "param":
            start = self._parameters[address.text].offset + address.offset
            return Encoded("parameter", kind, count=count, operands=[self._result(v) for v in items], offset=start)
        base, offset = self._address(address)
        if name == "st":
            sources = self._slots_of(items, _width(kind))
            return Encoded("store", kind, mode=space, count=count, operands=[base, *sources], offset=offset)
        results = [self._result(item) for item in items]
        return Encoded("load", kind, mode=space, count=count, operands=[*results, base], offset=offset)

    def _collective(self, name: str, modifiers: list[str], operands: tuple[Operand, ...]) -> Encoded | None:
        match name, modifiers:
            case "shfl", [("idx" | "bfly" | "down" | "up") as how, "b32"]:
                result, *sources = operands
                first, second = result.items if result.kind == "pair" else (result, Operand("sink"))
                slots = [self._result(first), self._result(second), *self._slots_of(sources, 32)]
                return Encoded("shuffle", mode=how, operands=slots)
            case "vote", [("all" | "any" | "ballot") as how, _]:
                return Encoded(
                    "vote", mode=how, operands=[self._result(operands[0]), *self._slots_of(operands[1:], 32)]
                )
            case "activemask", ["b32"]:
                return Encoded("active_mask", operands=[self._result(operands[0])])
            case "ldmatrix", ["m8n8", ("x1" | "x2" | "x4") as width, *rest] if rest in (
                ["shared", "b16"],
                ["trans", "shared", "b16"],
            ):
                base, offset = self._address(operands[1])
                items = operands[0].items or (operands[0],)
                mode = "trans" if "trans" in rest else "plain"
                slots = [*(self._result(item) for item in items), base]
                return Encoded("ldmatrix", mode=mode, count=int(width[1]), operands=slots, offset=offset)
            case "mma", [shape, "row", "col", "f32", a, b, "f32"] if a == b and shape == _PRODUCTS.get(a):
                results = [self._result(item) for item in operands[0].items]
                sources = [self._slot(item, 32) for operand in operands[1:] for item in operand.items]
                return Encoded("mma", "f32", a, operands=[*results, *sources])
            case _:
                return None

    def _copy(self, modifiers: list[str], operands: Sequence[Operand]) -> Encoded | None:
        match modifiers:
            case ["async", "shared", "global"]:
                target, offset = self._address(operands[0])
                source, source_offset = self._address(operands[1])
                if source_offset:
                    return None
                valid = self._slot(operands[3], 32) if len(operands) > 3 else self._constant(int(operands[2].text))
                slots = [target, source, valid]
                return Encoded("copy_async", count=int(operands[2].text), operands=slots, offset=offset)
            case ["async", "commit_group"]:
                return Encoded("commit")
            case ["async", "wait_group"]:
                return Encoded("wait", offset=int(operands[0].text))
            case ["async", "wait_all"]:
                return Encoded("wait", offset=-1)
            case _:
                return None

    def _conversion(self, name: str, modifiers: list[str], operands: tuple[Operand, ...]) -> Encoded | None:
        match name, modifiers:
            case "mov", [kind]:
                return self._move(kind, operands)
            case "cvta", [*to, ("global" | "shared" | "local" | "param") as space, "u64"]:
                window = {"shared": _SHARED_WINDOW, "local": _LOCAL_WINDOW}.get(space, 0)
                slots = [self._result(operands[0]), self._slot(operands[1])]
                return Encoded("add_offset", "b64", operands=slots, offset=-window if to else window)
            case "cvt", [*how, to, source]:
                return self._convert(how, to, source, operands)
            case (("selp"), [kind]):
                return Encoded(
                    "selp", kind, operands=[self._result(operands[0]), *self._slots_of(operands[1:], _width(kind))]
                )
            case "setp", [how, *rest, kind] if how in _COMPARISONS:
                return self._comparison(how, rest, kind, operands)
            case "testp", [how, kind]:
                slots = [self._result(operands[0]), self._slot(operands[1], _width(kind))]
                return Encoded("testp", kind, mode=how, operands=slots)
            case "shf", [("l" | "r") as direction, ("wrap" | "clamp") as how, "b32"]:
                operation = "funnel_left" if direction == "l" else "funnel_right"
                slots = [self._result(operands[0]), *self._slots_of(operands[1:], 32), -1]
                return Encoded(operation, mode=how, operands=slots)
            case _:
                return None

    def _move(self, kind: str, operands: tuple[Operand, ...]) -> Encoded | None:
        result, source = operands
        if result.kind == "vector":
            slots = [*(self._result(item) for item in result.items), self._slot(source)]
            return Encoded("unpack", kind, count=len(result.items), operands=slots)
        if source.kind == "vector":
            parts = self._slots_of(source.items, _width(kind) // len(source.items))
            return Encoded("pack", kind, count=len(source.items), operands=[self._result(result), *parts])
        return Encoded("mov", kind, operands=[self._result(result), self._slot(source, _width(kind))])

    def _convert(self, how: list[str], to: str, source: str, operands: tuple[Operand, ...]) -> Encoded | None:
        if to == "tf32":
            slots = [self._result(operands[0]), self._slot(operands[1], 32)]
            return Encoded("convert", to, source, operands=slots) if (how, source) == (["rna"], "f32") else None
        flags = (_FLUSH if "ftz" in how else 0) | (_SATURATE if "sat" in how else 0)
        modes = [m for m in how if m in _ROUNDINGS]
        if set(how) - {"ftz", "sat", *modes} or len(modes) > 1:
            return None
        result = self._result(operands[0])
        if to in ("bf16x2", "f16x2") and source == "f32" and how == ["rn"]:
            return Encoded("convert_pair", to[:-2], "f32", operands=[result, *self._slots_of(operands[1:], 32)])
        slots = [result, self._slot(operands[1], _width(source))]
        return Encoded("convert", to, source, mode=modes[0] if modes else "none", flags=flags, operands=slots)

    def _comparison(self, how: str, rest: list[str], kind: str, operands: tuple[Operand, ...]) -> Encoded | None:
        combine = {"and": 1, "or": 2, "xor": 3}
        unknown = set(rest) - {"ftz", *combine}
        if unknown:
            return None
        result, *sources = operands
        first, second = result.items if result.kind == "pair" else (result, Operand("sink"))
        slots = [self._result(first), self._result(second), *self._slots_of(sources, _width(kind))]
        negated = any(source.negated for source in sources)
        meets = next((combine[m] for m in rest if m in combine), 0)
        return Encoded("setp", kind, mode=how, combine=meets, flags=_NEGATE_THIRD if negated else 0, operands=slots)

    def _arithmetic(self, name: str, modifiers: list[str], operands: tuple[Operand, ...]) -> Encoded | None:
        if name not in _PLAIN or not modifiers:
            return None
        *how, kind = modifiers
        operation, mode, flags = name, "none", 0
        for modifier in how:
            match modifier:
                case "lo" if name in ("mul", "mad"):
                    pass
                case "hi" | "wide" if name in ("mul", "mad"):
                    operation = f"{name}_{modifier}"
                case "ftz":
                    flags |= _FLUSH
                case "sat":
                    flags |= _SATURATE
                case "NaN":
                    flags |= _PROPAGATE_NAN
                case _ if modifier in _ROUNDINGS:
                    mode = modifier
                case _:
                    return None
        if len(operands) != _PLAIN[name] + 1:
            return None
        if kind in ("f16", "bf16", "f16x2", "bf16x2", "b16x2"):
            return None
        sources = self._slots_of(operands[1:], _width(kind))
        slots = [self._result(operands[0]), *sources, *([-1] * (4 - len(sources)))]
        return Encoded(operation, kind, mode=mode, flags=flags, operands=slots)


def _width(kind: str) -> int:
    return 1 if kind == "pred" else int("".join(c for c in kind if c.isdigit()))


def _bits(text: str, width: int) -> int:
    """The bits of an immediate operand where an operand of `width` bits is wanted."""
    lowered = text.lower().removesuffix("u")
    if lowered.startswith("0f"):
        value = int(lowered[2:], 16)
        # A double operand may be written as a single: then its value is meant.
        return (
            value
            if width <= 32
            else struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", value))[0]))[0]
        )
    if lowered.startswith("0d"):
        return int(lowered[2:], 16)
    base = 16 if "0x" in lowered else 2 if lowered.startswith("0b") else 10
    return int(lowered, base) & ((1 << max(width, 1)) - 1)
