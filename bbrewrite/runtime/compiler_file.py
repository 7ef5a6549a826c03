"""Which file the C++ compiler is, told without running it: another one in its place makes other libraries.

Light to import: a program that was compiled before asks for nothing more.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from bbrewrite.resources import told_of_file

# The names under which a compiler is looked for where the user names none.
CANDIDATES = ("c++", "g++", "clang++")


def compiler_file() -> str:
    """The path of the compiler that would be taken, its size, and when it was changed; "" where none is found. Of a
    command such as `ccache g++` so much of every word that is a program.
    """
    named = os.environ.get("CXX", "")
    if not named:
        return next((told for told in map(_told, CANDIDATES) if told), "")
    import shlex  # seldom needed

    try:
        told = [_told(word) for word in shlex.split(named)]
    except ValueError:
        return ""
    return "\n".join(word for word in told if word) if told and told[0] else ""


def _told(name: str) -> str:
    """The same of a program of this name or path."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    for path in [name] if os.sep in name else [os.path.join(place, name) for place in places if place]:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if S_ISREG(found.st_mode) and os.access(path, os.X_OK):
            return told_of_file(path, found)
    return ""
