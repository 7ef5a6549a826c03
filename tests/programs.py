"""Block programs written by hand, as lowering makes them: what tests of rewriting work on."""

from __future__ import annotations

from bbrewrite.core.addresses import Address, index_address
from bbrewrite.core.elements import Element
from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.programs import Assumption, BlockProgram, Definition, Role, Tensor
from bbrewrite.core.terms import Apply, Map, Number, Read, Reduce, Size, Term


def read(tensor: str, *addresses: str | Address) -> Read:
    return Read(tensor, tuple(index_address(a) if isinstance(a, str) else a for a in addresses))


def apply(operator: str, *operands: Term | float) -> Apply:
    return Apply(operator, tuple(o if isinstance(o, Term) else Number(float(o)) for o in operands))


def total(index: str, body: Term, monoid: str = "sum") -> Reduce:
    return Reduce(monoid, index, (body,))


def indices(**blocks: int | None) -> IndexTable:
    return IndexTable.of([Index(name, 256, None, block) for name, block in blocks.items()])


def tensor(name: str, names: str, role: Role, element: Element = Element.F32) -> Tensor:
    return Tensor(name, tuple(names.split()), element, role)


def define(name: str, names: str, body: Term, role: Role = Role.BUFFER) -> Definition:
    term = body
    for index in reversed(names.split()):
        term = Map(index, term)
    return Definition(tensor(name, names, role), term)


def program(
    name: str,
    table: IndexTable,
    inputs: list[Tensor],
    definitions: list[Definition],
    assumptions: tuple[Assumption, ...] = (),
) -> BlockProgram:
    return BlockProgram(name, table, tuple(inputs), assumptions, tuple(definitions))


def safe_shift(m: Term) -> Term:
    """-m, and 0 where m is -inf."""
    return apply("where", apply("equal", m, float("-inf")), 0, apply("negate", m))


def attention(guarded: bool = True, squared: bool = False) -> BlockProgram:
    s, m, e, c, p = read("S", "m", "n"), read("M", "m"), read("E", "m", "n"), read("c", "m"), read("P", "m", "n")
    shift = safe_shift(m) if guarded else apply("negate", m)
    divisor = apply("where", apply("equal", c, 0), 0, apply("recip", c)) if guarded else apply("recip", c)
    scores = apply(
        "divide", total("d", apply("dot", read("Q", "m", "d"), read("K", "n", "d"))), apply("sqrt", Size("d"))
    )
    weights = apply("power", p, 2) if squared else p
    return program(
        "attention",
        indices(m=64, n=64, d=64, l=64),
        [tensor("Q", "m d", Role.INPUT), tensor("K", "n d", Role.INPUT), tensor("V", "n l", Role.INPUT)],
        [
            define("S", "m n", scores),
            define("M", "m", total("n", apply("row_max", s), "max")),
            define("E", "m n", apply("exp", apply("row_shift", s, shift))),
            define("c", "m", total("n", apply("row_sum", e))),
            define("P", "m n", apply("row_scale", e, divisor)),
            define(
                "O",
                "m l",
                total("n", apply("dot", weights, apply("transpose", read("V", "n", "l")))),
                Role.OUTPUT,
            ),
        ],
    )


def layernorm_matmul() -> BlockProgram:
    x, mean, scale = read("X", "m", "k"), read("A", "m"), read("R", "m")
    shifted = apply("row_shift", x, apply("negate", mean))
    return program(
        "layernorm_matmul",
        indices(m=64, k=64, n=64),
        [tensor("X", "m k", Role.INPUT), tensor("W", "k n", Role.WEIGHT)],
        [
            define("A", "m", apply("divide", total("k", apply("row_sum", x)), Size("k"))),
            define(
                "B",
                "m",
                apply("divide", total("k", apply("row_sum", apply("multiply", shifted, shifted))), Size("k")),
            ),
            define("R", "m", apply("rsqrt", apply("add", read("B", "m"), 1e-5))),
            define("N", "m k", apply("row_scale", shifted, scale)),
            define(
                "Y",
                "m n",
                total("k", apply("dot", read("N", "m", "k"), apply("transpose", read("W", "k", "n")))),
                Role.OUTPUT,
            ),
        ],
    )


def rmsnorm_swiglu() -> BlockProgram:
    x = read("X", "m", "d")
    return program(
        "rmsnorm_swiglu",
        indices(m=64, d=64, f=64, e=64),
        [
            tensor("X", "m d", Role.INPUT),
            tensor("W1", "d f", Role.WEIGHT),
            tensor("W3", "d f", Role.WEIGHT),
            tensor("W2", "f e", Role.WEIGHT),
            tensor("g", "d", Role.WEIGHT),
        ],
        [
            define("B", "m", apply("divide", total("d", apply("row_sum", apply("multiply", x, x))), Size("d"))),
            define("R", "m", apply("rsqrt", apply("add", read("B", "m"), 1e-6))),
            define("N", "m d", apply("row_scale", x, read("R", "m"))),
            define("H", "m d", apply("col_scale", read("N", "m", "d"), read("g", "d"))),
            define("A", "m f", total("d", apply("dot", read("H", "m", "d"), apply("transpose", read("W1", "d", "f"))))),
            define("C", "m f", total("d", apply("dot", read("H", "m", "d"), apply("transpose", read("W3", "d", "f"))))),
            define("G", "m f", apply("multiply", apply("silu", read("A", "m", "f")), read("C", "m", "f"))),
            define(
                "Y",
                "m e",
                total("f", apply("dot", read("G", "m", "f"), apply("transpose", read("W2", "f", "e")))),
                Role.OUTPUT,
            ),
        ],
    )
