"""What a program is compiled from, and what is remembered of a compilation: values without the code that makes them.

Light to import: a program that was compiled before is called without any of the stages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bbrewrite.core.spans import Source
from bbrewrite.resources import configuration_fingerprint, package_fingerprint
from bbrewrite.runtime.processor import processor_name
from bbrewrite.runtime.signature import Signature


class CompileRequest(NamedTuple):
    """The texts of a program and of rules, and the choices made. `sizes` and `blocks` are by index name.

    With `fused` false the program is planned as it is without rules, though with the operators that they add. With
    `packed`, it takes weights as they are packed ahead of calls. With `tuned`, what tuning found has a say.
    """

    program: Source
    rules: tuple[Source, ...]
    sizes: Mapping[str, int]
    blocks: Mapping[str, int]
    threads: int
    fast_math: bool
    fused: bool = True
    packed: bool = False
    tuned: bool = True

    @property
    def told(self) -> str:
        """All that decides what is compiled from this, on this machine, by this version of the package, but for what
        tuning found.
        """
        choices = [sorted(self.sizes.items()), sorted(self.blocks.items()), self.threads, self.fast_math]
        choices += [self.fused, self.packed, self.tuned]
        rules = [text for source in self.rules for text in (source.name, source.text)]
        machine = (configuration_fingerprint(), os.environ.get("CXX", ""), processor_name())
        parts = (package_fingerprint(), *machine, repr(choices), self.program.text, *rules)
        return "".join(f"{len(part)} {part}\n" for part in parts)


class Record(NamedTuple):
    """How a compiled program is called, and the extents of root indices for which it was planned.

    `extents_matter` tells that other extents may not do: the program reads at computed addresses, or at indices whose
    extents are those of the axis only as declared; or its repeats are written out.
    """

    signature: Signature
    extents: Mapping[str, int]
    extents_matter: bool

    @property
    def plain(self) -> tuple[Any, ...]:
        """The same in nothing but tuples, strings and numbers, as files keep it."""
        return self.signature.plain, tuple(self.extents.items()), self.extents_matter

    @classmethod
    def from_plain(cls, plain: Any) -> Record:
        """The record of which this is the plain form, as lists or tuples."""
        signature, extents, extents_matter = plain
        return cls(Signature.from_plain(signature), dict(extents), extents_matter)
