"""No test sees what machine this is, or what was measured on it by `target --measure` or by tuning: plans are for the
description that ships, as it stands, and the model's own. What tests compile stays in a cache of their own. Processes
that they start, of which there are many, find bytecode whatever the environment says of it: without, each takes two
more seconds.

Of several workers each takes whole files: the tests of one share what they plan, compile and run.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest

from bbrewrite.compiler_options import OPTIONS
from bbrewrite.host import measured_host_file, shipped_host_file
from bbrewrite.resources import cache_directory
from tests.built import QUICKLY

# Modules and collected tests are a large heap that lives as long as the process: looking through it for garbage again
# and again takes a twentieth of all tests' time.
gc.set_threshold(50_000, 20, 20)

# Workers and commands alike take over the environment.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_machine_everywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        measured_host_file().parent.mkdir()
        measured_host_file().write_text(shipped_host_file().read_text(encoding="utf-8"), encoding="utf-8")
        patch.setenv("BBREWRITE_CACHE_DIR", str(cache_directory() / "tests"))
        yield


# Tests of what happens before and after, or of what the generator means, which run what they build for an instant.
_BUILT_QUICKLY = (
    "tests/api/test_compile.py",
    "tests/candidates",
    "tests/cli/test_commands.py",
    "tests/codegen/test_copied_weights.py",
    "tests/codegen/test_functions_of_vectors.py",
    "tests/codegen/test_in_passing.py",
    "tests/codegen/test_split.py",
    "tests/codegen/test_user_monoids.py",
    "tests/plan/test_kernel_counts.py",
    "tests/runtime/test_prepared.py",
)


@pytest.fixture(scope="module", autouse=True)
def _options_of_the_compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.node.nodeid.startswith(_BUILT_QUICKLY):
            patch.setattr("bbrewrite.runtime.compiler.OPTIONS", (*OPTIONS, *QUICKLY))
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    # By their names, files that take long come early. Those of few tests, which would come last, need not be quick.
    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)
