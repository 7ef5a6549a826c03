"""Plants a fault: a function of the package with one piece of its text changed, for the time of a test."""

from __future__ import annotations

import inspect
import sys
import textwrap
from types import ModuleType
from typing import Any

import pytest


def plant(patch: pytest.MonkeyPatch, owner: ModuleType | type, name: str, old: str, new: str) -> None:
    """Replaces `old`, which stands once in the source of a function or method, by `new`.

    Functions are replaced in every module of the package and of its tests that has imported them.
    """
    original: Any = inspect.getattr_static(owner, name)
    function = original.__func__ if isinstance(original, staticmethod) else original
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {name}"
    scope: dict[str, Any] = {}
    exec(compile(f"from __future__ import annotations\n{source.replace(old, new)}", "<mutant>", "exec"),
         function.__globals__, scope)  # fmt: skip
    mutant = scope[name]
    patch.setattr(owner, name, mutant)
    if isinstance(owner, ModuleType):
        for module in list(sys.modules.values()):
            if module.__name__.startswith(("bbrewrite.", "tests.")) and module.__dict__.get(name) is function:
                patch.setattr(module, name, mutant)
