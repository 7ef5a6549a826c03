"""What a request was compiled to is found by the next process, and by none for which anything at all is different."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bbrewrite.api.choices import rule_sources
from bbrewrite.api.record import CompileRequest, Record
from bbrewrite.api.remembered import Compiled, remember, remembered
from bbrewrite.core.elements import Element
from bbrewrite.core.roles import Role
from bbrewrite.core.spans import Source
from bbrewrite.resources import cache_directory, told_of_files
from bbrewrite.runtime.cache import TUNED, cached_product, note
from bbrewrite.runtime.processor import processor_name
from bbrewrite.runtime.signature import Argument, Signature

ARGUMENTS = (
    Argument("X", Role.INPUT, Element.F32, ("m", "k"), ("positive", "finite")),
    Argument("W", Role.WEIGHT, Element.BF16, ("k",), (), "prepare_W"),
    Argument("Y", Role.OUTPUT, Element.F64, ("m",)),
    Argument("t", Role.BUFFER, Element.F32, ()),
)
RECORD = Record(Signature.of("entry", ARGUMENTS, ("m", "k")), {"m": 3, "k": 2**40}, True)
RULE = 'rule one "A product with one"\n    x * 1  =>  x\n'

type Change = Callable[[pytest.MonkeyPatch, CompileRequest], CompileRequest]


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompileRequest]:
    """A request that was compiled by a package of one file, on a machine that one file describes, with its compiler."""
    files = {"package/stage.py": "a = 1", "config/cpp.toml": "l2 = 1", "rules/a.rules": RULE, "bin/g++": "version 1"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "bin/g++").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'others'}{os.pathsep}{tmp_path / 'bin'}")
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr("bbrewrite.resources._PACKAGE", tmp_path / "package")
    _forget_the_machine()
    request = CompileRequest(Source("p.bb", "program p\n"), rule_sources("rules"), {"m": 3}, {"m": 1}, 2, False)
    library = cached_product("key", "library.so", lambda directory: _write(directory / "library.so", "code"))
    remember(request, Compiled(RECORD, library, {"asked": None}))
    yield request
    _forget_the_machine()


def _forget_the_machine() -> None:
    """What a process looks up once, another one looks up again."""
    told_of_files.cache_clear()
    processor_name.cache_clear()


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _written(name: str, text: str, in_secret: bool = False) -> Change:
    """A file that is written, as an editor or an archive would; `in_secret` with the time at which it was before."""

    def change(patch: pytest.MonkeyPatch, request: CompileRequest) -> CompileRequest:
        path = Path(name)
        before = path.stat() if path.exists() else None
        while True:
            path.write_text(text)
            if before is not None and in_secret:
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            if before is None or path.stat().st_ctime_ns != before.st_ctime_ns:  # a moment has passed
                return request._replace(rules=rule_sources("rules"))

    return change


def _another_compiler(directory: str, name: str) -> Change:
    def change(patch: pytest.MonkeyPatch, request: CompileRequest) -> CompileRequest:
        Path(directory).mkdir(exist_ok=True)
        Path(directory, name).write_text("version 1")
        Path(directory, name).chmod(0o755)
        return request

    return change


def _chosen(**choices: object) -> Change:
    return lambda patch, request: request._replace(**choices)  # pyright: ignore[reportArgumentType]


def _variable(name: str, value: str) -> Change:
    def change(patch: pytest.MonkeyPatch, request: CompileRequest) -> CompileRequest:
        patch.setenv(name, value)
        return request

    return change


def _another_processor(patch: pytest.MonkeyPatch, request: CompileRequest) -> CompileRequest:
    patch.setattr("platform.machine", lambda: "another")
    return request


def _tuned(patch: pytest.MonkeyPatch, request: CompileRequest) -> CompileRequest:
    note(TUNED, "asked", b"a faster plan")
    return request


CHANGES: dict[str, Change] = {
    "the program": _chosen(program=Source("p.bb", "program q\n")),
    "a rule": _written("rules/a.rules", RULE.replace("x * 1", "1 * x")),
    "one more rule": _written("rules/b.rules", RULE),
    "a file of the package": _written("package/stage.py", "a = 2"),
    "one more file of the package": _written("package/other.py", ""),
    "the user's description of the machine": _written("config/cpp.toml", "l2 = 2"),
    "another description": _variable("BBREWRITE_CONFIG_DIR", "package"),
    "a file of the package, as large and as old as before": _written("package/stage.py", "a = 2", in_secret=True),
    "the compiler's name": _variable("CXX", "clang++"),
    "the compiler's file": _written("bin/g++", "version 1.1"),
    "the compiler's file, as large and as old as before": _written("bin/g++", "version 2", in_secret=True),
    "another compiler under the same name": _another_compiler("others", "g++"),
    "a compiler under a name that is asked for first": _another_compiler("bin", "c++"),
    "the processor": _another_processor,
    "another cache": _variable("BBREWRITE_CACHE_DIR", "elsewhere"),
    "extents": _chosen(sizes={"m": 4}),
    "block sizes": _chosen(blocks={}),
    "threads": _chosen(threads=1),
    "accuracy": _chosen(fast_math=True),
    "fusion": _chosen(fused=False),
    "packed weights": _chosen(packed=True),
    "tuning": _chosen(tuned=False),
    "what tuning found": _tuned,
    "a damaged library": _written("cache/key/library.so", "code of another"),
}


def test_what_is_remembered_is_what_was_compiled(request_: CompileRequest) -> None:
    found = remembered(request_)
    assert found == Compiled(RECORD, cache_directory() / "key" / "library.so", {"asked": None})


def test_where_the_compiler_is_gone_its_libraries_do(request_: CompileRequest) -> None:
    Path("bin/g++").unlink()
    assert remembered(request_) is not None


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_is_remembered_of_other_circumstances(
    request_: CompileRequest, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = change(monkeypatch, request_)
    _forget_the_machine()
    assert remembered(changed) is None


def test_edits_of_the_same_length_within_a_moment_are_noticed(request_: CompileRequest) -> None:
    """Texts of programs and rules are compared themselves; other files by when they were changed."""
    for digit in "234567":
        Path("rules/a.rules").write_text(RULE.replace("one", f"on{digit}"))
        assert remembered(request_._replace(rules=rule_sources("rules"))) is None


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_damaged_file_is_not_read(request_: CompileRequest, place: int) -> None:
    (file,) = (cache_directory() / "compiled").iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place:][1:]):
        file.write_bytes(damaged)
        assert remembered(request_) is None
    file.write_bytes(whole)
    assert remembered(request_) is not None
