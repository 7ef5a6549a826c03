"""egglog's bindings, loaded by themselves: the Python package around them is not used here, and takes half a second.

Whoever imports the package beside finds the same bindings.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

_NAME = "egglog.bindings"


def _loaded() -> ModuleType:
    """The module; by the package where it is found in no other way."""
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    package = find_spec("egglog")
    found = None if package is None else PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if found is None or found.loader is None:
        from egglog import bindings

        return bindings
    module = sys.modules[_NAME] = module_from_spec(found)
    found.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from egglog import bindings as bindings
else:
    bindings = _loaded()
