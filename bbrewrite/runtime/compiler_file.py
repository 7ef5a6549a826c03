"""Which file the C++ compiler is, told without running it: another one in its place makes other libraries.

Light to import: a program that was compiled before asks for nothing more.
"""

from __future__ import annotations

import os
from stat import S_ISREG

# The names under which a compiler is looked for where the user names none.
CANDIDATES = ("c++", "g++", "clang++")


def compiler_file() -> str:
    """The path of the compiler that would be taken, its size, and when it was changed; "" where none is found."""
    named = os.environ.get("CXX", "").split()[:1]
    places = os.environ.get("PATH", "").split(os.pathsep)
    for name in named or CANDIDATES:
        for path in [name] if os.sep in name else [os.path.join(place, name) for place in places if place]:
            try:
                found = os.stat(path)
            except OSError:
                continue
            if S_ISREG(found.st_mode) and os.access(path, os.X_OK):
                return f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    return ""
