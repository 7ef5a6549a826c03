"""The host's description: it prints and reads back, is measured where asked for, and is refused where it is none."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

import pytest

from bbrewrite.host import (
    host_target,
    measured_host_file,
    shipped_host_file,
    unmeasured_host,
    with_caches,
    with_vectors,
)
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.plan.target import load_target, print_target, read_target
from bbrewrite.runtime.processor import cache_sizes
from tests.cli.conftest import Command, bbrewrite, rules, scaled_sum  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path / "config"))


def _written(text: str) -> None:
    measured_host_file().parent.mkdir(parents=True)
    measured_host_file().write_text(text)


def test_a_description_reads_back() -> None:
    assert read_target(print_target(host_target())) == host_target()


def test_measuring_writes_what_is_planned_for_from_then_on(
    bbrewrite: Command,  # noqa: F811
    rules: Path,  # noqa: F811
    scaled_sum: Path,  # noqa: F811
) -> None:
    shipped = host_target()
    assert "targets/host.toml" in bbrewrite("target").output
    result = bbrewrite("target", "--measure", "--threads", "1")
    assert result.exit_code == 0, result.output
    found = host_target()
    assert found.processors == 1
    assert [tier.name for tier in found.memory] == [tier.name for tier in shipped.memory]
    rates = [tier.bytes_per_second for tier in found.memory]
    rates += [found.vector_operations_per_second, found.matrix_flops_per_second, found.launch_seconds]
    assert all(isfinite(rate) and rate > 0 for rate in rates)
    assert found.memory[-1].capacity_bytes == inf
    # What the compiler makes of this processor is what was known without it.
    vectors = (found.vector_lanes, found.matrix_rows, found.matrix_columns)
    assert vectors == (shipped.vector_lanes, shipped.matrix_rows, shipped.matrix_columns)
    assert [tier.capacity_bytes for tier in found.memory] == [tier.capacity_bytes for tier in shipped.memory]
    assert result.stdout in measured_host_file().read_text()
    assert bbrewrite("target").output.splitlines()[0] == f"# {measured_host_file()}"
    assert bbrewrite("run", rules, scaled_sum, "--size", "m=9", "--target", "numpy").exit_code == 0


@pytest.mark.parametrize("text", ["", "name = 3", "[", "name = 'host'\nkind = 'cpu'\nparallel = 4\n"])
def test_a_file_that_describes_no_machine_is_refused_by_name(
    bbrewrite: Command,  # noqa: F811
    rules: Path,  # noqa: F811
    scaled_sum: Path,  # noqa: F811
    text: str,
) -> None:
    _written(text)
    with pytest.raises(InputError, match=r"host\.toml describes no machine"):
        host_target()
    result = bbrewrite("run", rules, scaled_sum, "--size", "m=9")
    assert (result.exit_code, "`bbrewrite target --measure` writes the host's anew" in result.output) == (2, True)


def test_a_directory_that_cannot_be_written_is_told(
    bbrewrite: Command,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("bbrewrite.cli.target.measured_target", lambda known, threads: known)
    result = bbrewrite("target", "--measure")
    assert (result.exit_code, "BBREWRITE_CONFIG_DIR" in result.output) == (2, True)


def test_what_the_system_tells_replaces_what_ships() -> None:
    shipped = load_target(shipped_host_file())
    assert with_caches(with_vectors(shipped, ()), {}) == shipped
    assert host_target() == unmeasured_host()
    other = with_caches(shipped, {"L1": 32 * 1024, "L2": 2**19, "L3": 2**26})
    assert [tier.capacity_bytes / 1e6 for tier in other.memory] == pytest.approx([0.5, 40, inf], rel=0.001)
    # The machine on which the rates were measured has these.
    same = with_vectors(with_caches(shipped, {"L2": 2**20, "L3": 2**25}), {"sse2", "avx", "avx512f", "avx512_bf16"})
    assert same.memory[0].capacity_bytes == pytest.approx(shipped.memory[0].capacity_bytes, rel=1e-3)
    assert replace(same, memory=shipped.memory) == shipped


@pytest.mark.parametrize(
    ("features", "lanes", "columns", "narrow"),
    [
        ({"sse2", "avx", "avx512f"}, 16, 64, 1),
        ({"sse2", "avx", "avx2"}, 8, 16, 1),
        ({"sse2"}, 4, 8, 1),
        ({"fp", "asimd"}, 4, 16, 1),
    ],
)
def test_vectors_are_the_processors(features: set[str], lanes: int, columns: int, narrow: float) -> None:
    shipped = load_target(shipped_host_file())
    found = with_vectors(shipped, features)
    assert (found.vector_lanes, found.matrix_columns, found.narrow_product_rate) == (lanes, columns, narrow)
    # Products take as many instructions for each number as everything else does.
    per_vector = [target.matrix_flops_per_second / target.vector_lanes for target in (shipped, found)]
    assert per_vector[0] == per_vector[1]
    # With 16 registers panels are narrow, and none of the rates are those of the machine that was measured.
    is_narrow = features & {"sse2"} and "avx512f" not in features
    assert (found.fetching_operations > shipped.fetching_operations) == bool(is_narrow)
    assert (found.tolerance > shipped.tolerance) == bool(is_narrow)


def test_cache_sizes_are_what_the_system_tells(tmp_path: Path) -> None:
    told = [("1", "Data", "32K"), ("1", "Instruction", "64K"), ("2", "Unified", "2048K"), ("3", "Unified", "32M")]
    for number, entry in enumerate(told):
        (tmp_path / f"index{number}").mkdir()
        for name, text in zip(("level", "type", "size"), entry, strict=True):
            (tmp_path / f"index{number}" / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()
    assert cache_sizes(tmp_path) == {"L1": 32 * 1024, "L2": 2 * 1024**2, "L3": 32 * 1024**2}
    assert cache_sizes(tmp_path / "nothing") == {}
