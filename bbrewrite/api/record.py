"""What a program is compiled from, and what is remembered of a compilation: values that are written beside libraries.

Light to import: a program that was compiled before is called without any of the stages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from bbrewrite.core.spans import Source
from bbrewrite.resources import package_fingerprint
from bbrewrite.runtime.cache import content_key
from bbrewrite.runtime.processor import processor_name
from bbrewrite.runtime.signature import Signature


@dataclass(frozen=True)
class CompileRequest:
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
    def key(self) -> str:
        """A name for what is compiled from this, on this machine, by this version of the package; what tuning found may
        change what that is.
        """
        choices = [sorted(self.sizes.items()), sorted(self.blocks.items()), self.threads, self.fast_math]
        choices += [self.fused, self.packed, self.tuned]
        rules = [text for source in self.rules for text in (source.name, source.text)]
        machine = (os.environ.get("CXX", ""), processor_name())
        return content_key("api", package_fingerprint(), *machine, json.dumps(choices), self.program.text, *rules)


@dataclass(frozen=True)
class Record:
    """How a compiled program is called, and the extents of root indices for which it was planned.

    `extents_matter` tells that other extents may not do: the program reads at computed addresses, or at indices whose
    extents are those of the axis only as declared; or its repeats are written out.
    """

    signature: Signature
    extents: Mapping[str, int]
    extents_matter: bool

    def to_json(self) -> str:
        told = {"extents": dict(self.extents), "extents_matter": self.extents_matter}
        return json.dumps({**told, "signature": json.loads(self.signature.to_json())}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Record:
        told = json.loads(text)
        return cls(Signature.from_json(json.dumps(told["signature"])), told["extents"], told["extents_matter"])
