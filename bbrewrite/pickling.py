"""Pickles forms of this package for other processes: read-only views of dicts too, which Python does not pickle."""

from __future__ import annotations

import copyreg
import pickle
from io import BytesIO
from types import MappingProxyType
from typing import Any


def pickled(what: Any) -> bytes:
    """What `pickle.loads` makes an equal object of. Raises what pickling raises."""
    stream = BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    # Packages add to the table as they are imported: numpy adds how its functions are pickled.
    pickler.dispatch_table = copyreg.dispatch_table | {MappingProxyType: _as_dict}
    pickler.dump(what)
    return stream.getvalue()


def _view(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


def _as_dict(view: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _view, (dict(view),)
