"""The cache of build products under interruption, damage and concurrency."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from bbrewrite.resources import cache_directory, configuration_directory
from bbrewrite.runtime.cache import cached_product, content_key


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "cache"))


def test_the_environment_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("BBREWRITE_CACHE_DIR")
    assert cache_directory().name == "bbrewrite"


def test_a_users_files_lie_where_the_system_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("BBREWRITE_CACHE_DIR", "BBREWRITE_CONFIG_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_directory() == tmp_path / ".cache/bbrewrite"
    assert configuration_directory() == tmp_path / ".config/bbrewrite"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_directory() == tmp_path / "Library/Caches/bbrewrite"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "scratch"))
    assert cache_directory() == tmp_path / "scratch/bbrewrite"


def test_keys_tell_parts_apart() -> None:
    assert content_key("ab", "c") != content_key("a", "bc")
    assert content_key("a") == content_key("a")


def test_a_product_is_built_once(tmp_path: Path) -> None:
    builds: list[Path] = []

    def build(directory: Path) -> None:
        builds.append(directory)
        (directory / "product").write_text("x")

    first = cached_product("key", "product", build)
    assert cached_product("key", "product", build) == first
    assert len(builds) == 1
    assert first.read_text() == "x"


def test_a_damaged_product_is_built_again() -> None:
    def build(directory: Path) -> None:
        (directory / "product").write_text("whole")

    path = cached_product("key", "product", build)
    path.write_text("dama")
    assert cached_product("key", "product", build).read_text() == "whole"
    (path.parent / "checksum").unlink()
    assert cached_product("key", "product", build).read_text() == "whole"
    path.unlink()
    assert cached_product("key", "product", build).read_text() == "whole"


def test_a_failed_build_leaves_nothing() -> None:
    def fail(directory: Path) -> None:
        (directory / "product").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_product("key", "product", fail)
    assert [path.name for path in cache_directory().iterdir() if not path.name.endswith(".lock")] == []


def test_leftovers_of_a_killed_build_are_ignored() -> None:
    entry = cache_directory() / "key"
    entry.mkdir(parents=True)
    (entry / "product").write_text("half")
    assert (
        cached_product("key", "product", lambda d: (d / "product").write_text("whole") and None).read_text() == "whole"
    )


def _build_and_count(directory: Path) -> None:
    with (cache_directory() / "builds").open("a") as log:
        log.write("x")
    (directory / "product").write_text("x" * 100000)


def _use(_: int) -> int:
    return len(cached_product("key", "product", _build_and_count).read_text())


def test_concurrent_processes_build_once() -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(_use, range(6)) == [100000] * 6
    assert (cache_directory() / "builds").read_text() == "x"
