"""No test sees what was measured on this machine: plans are for the description that ships."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_measured_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
    yield
    patch.undo()
