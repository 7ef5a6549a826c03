"""C++ identifiers for a program's names: unique, legal, and as close to the user's spelling as possible.

Nothing here knows what a name stands for.
"""

from __future__ import annotations

import re

_RESERVED = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "char8_t",
        "char16_t",
        "char32_t",
        "class",
        "compl",
        "concept",
        "const",
        "consteval",
        "constexpr",
        "constinit",
        "const_cast",
        "continue",
        "co_await",
        "co_return",
        "co_yield",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "final",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "import",
        "inline",
        "int",
        "long",
        "module",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "override",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "requires",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "wchar_t",
        "while",
        "xor",
        "xor_eq",
        "bb",
        "std",
        "main",
        "INFINITY",
        "NAN",
        "INT64_MAX",
        "INT64_MIN",
        "BB_INLINE",
        "errno",
        "linux",
        "unix",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "size_t",
    ]
)
# Macros of the headers that generated source includes.
_MACRO = re.compile(
    r"NULL|EOF|HUGE_VALF?L?|BUFSIZ|RAND_MAX|(M|FP|BB|EXIT|MB|MATH)_[A-Z0-9_]+|U?INT[A-Z0-9]*_[A-Z0-9_]+|"
    r"(SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_[A-Z0-9_]+"
)


class Names:
    """Gives out identifiers; a scope made by `inner` avoids those of the scopes around it."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = set(taken)

    def fresh(self, stem: str) -> str:
        """An identifier that was not given out before: the stem, or the stem with a number."""
        base = identifier(stem)
        name, number = base, 1
        while name in self._taken or name in _RESERVED:
            name = f"{base}_{number}"
            number += 1
        self._taken.add(name)
        return name

    def inner(self) -> Names:
        """A scope inside this one."""
        return Names(frozenset(self._taken))


def identifier(name: str) -> str:
    """The name with every character that C++ may not take written as its code point; never a macro's."""
    legal = re.sub(r"[^A-Za-z0-9_]", lambda match: f"u{ord(match.group()):x}", name)
    legal = re.sub(r"__+", "_", legal).lstrip("_") or "x"
    return f"x{legal}" if legal[0].isdigit() or _MACRO.fullmatch(legal) else legal
