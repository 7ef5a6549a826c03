"""An installed package, not a checkout, holds all that the command needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import ROOT


def test_an_installed_package_runs_from_another_directory(scaled_sum: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, ROOT], check=True)
    data = site / "bbrewrite" / "data"
    for folder in ("grammar", "rules", "targets"):
        held, expected = (
            {path.relative_to(root) for path in (root / folder).rglob("*") if path.is_file()} for root in (data, ROOT)
        )
        assert held == expected
    command = [sys.executable, "-m", "bbrewrite.cli.main", "run", data / "rules", scaled_sum]
    run = subprocess.run(
        [*command, "--size", "m=10"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site), "BBREWRITE_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "result: right" in run.stdout
