"""What tuning found is used by later runs of the program, at extents of its size class, and of nothing else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bbrewrite
from bbrewrite.api import stages
from bbrewrite.api.record import CompileRequest
from bbrewrite.fusion import Fusion, fuse, plan_space
from bbrewrite.pipeline import run
from bbrewrite.plan.choices import PlanChoice
from bbrewrite.plan.plans import Plan
from bbrewrite.request import Request
from bbrewrite.tuning.store import Winner, keep_winner, kept_winner
from tests.plan.headline import HEADLINE
from tests.tuning.scores import TEXT, request


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path))
    return tmp_path


def other_plan(fusion: Fusion) -> Plan:
    """A plan whose loops are others than those of the model's own choice."""
    near = plan_space(fusion).near(fusion.fused)
    return next(plan for plan in near if plan.schedules != fusion.fused.schedules)


def kept(asked: Request) -> Plan:
    plan = other_plan(fuse(asked))
    keep_winner(asked, Winner(plan.choice, 1.0, 2.0, 7))
    return plan


def test_a_winner_may_be_the_own_choice_with_loops_unrolled() -> None:
    fusion = fuse(request())
    unrolled = plan_space(fusion).near(fusion.fused)[0]
    assert unrolled.kernels == replace(fusion.fused.kernels, unrolled=True)
    assert plan_space(fusion).near(unrolled)[0] == fusion.fused
    keep_winner(request(), Winner(unrolled.choice, 1.0, 2.0, 7))
    found = fuse(request())
    # Why the model chose it is no longer to be said.
    assert found.fused == replace(unrolled, notes=())
    assert any("the fastest, loops unrolled (1 ms, the model's own choice took 2 ms)" in note for note in found.notes)


def test_a_winner_is_used_and_told_and_can_be_left_out() -> None:
    own = fuse(request()).fused
    plan = kept(request())
    found = fuse(request())
    assert found.fused.kernels == plan.kernels != own.kernels
    (note,) = [note for note in found.notes if "tuned" in note]
    assert "of 7 plans measured the fastest (1 ms, the model's own choice took 2 ms)" in note
    without = fuse(request(tuned=False))
    assert without.fused.kernels == own.kernels
    assert not any("tuned" in note for note in without.notes)
    assert run(request(), "cpp", 0).comparison.ok


def test_it_holds_for_extents_of_the_same_size_class_only() -> None:
    kept(request())
    assert fuse(request(m=127, n=65)).winner is not None
    assert fuse(request(m=128)).winner is None
    assert fuse(request(n=63)).winner is None


@pytest.mark.parametrize(
    "other",
    [
        lambda asked: replace(asked, threads=1),
        lambda asked: replace(asked, fast_math=True),
        lambda asked: replace(asked, rules=replace(asked.rules, rules=asked.rules.rules[1:])),
        lambda _: request(TEXT.replace("softmax[n](S[m, n])", "exp(S[m, n])")),
        lambda _: request(TEXT.replace("input Q", "block m = 32\ninput Q")),
    ],
)
def test_it_is_of_one_program_one_rule_set_and_one_number_of_threads(other) -> None:
    kept(request())
    assert kept_winner(request()) is not None
    assert kept_winner(other(request())) is None


def _damage(told: dict, how: str) -> object:
    kernel = told["choice"]["kernels"][0]
    match how:
        case "terms":
            told["choice"]["terms"][0][1] = "0" * 24
        case "grid":
            kernel["grid"] = ["x"]
        case "order":
            kernel["order"] = kernel["order"] * 2
        case "split":
            kernel["split"] = "m"
        case "kept":
            kernel["kept"] = ["0" * 24]
        case "blocks":
            kernel["blocks"] = [[name, 0] for name, _ in kernel["blocks"]]
        case "kernels":
            told["choice"]["kernels"] = []
        case "types":
            told["choice"]["kernels"] = [{"grid": 3}]
        case "times":
            told["milliseconds"] = -1
        case "list":
            return [told]
        case "missing":
            del told["choice"]
    return told


DAMAGES = ["terms", "grid", "order", "split", "kept", "blocks", "kernels", "types", "times", "list", "missing"]


@pytest.mark.parametrize("how", DAMAGES)
def test_an_entry_that_tells_no_plan_of_the_program_changes_nothing(how: str, cache: Path) -> None:
    own = fuse(request(tuned=False)).fused
    kept(request())
    (entry,) = (cache / "tuned").iterdir()
    entry.write_text(json.dumps(_damage(json.loads(entry.read_text()), how)))
    found = fuse(request())
    assert found.fused.kernels == own.kernels
    assert found.winner is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"null", b'{"choice": {"terms": 3}}'])
def test_a_damaged_file_changes_nothing(content: bytes, cache: Path) -> None:
    kept(request())
    (entry,) = (cache / "tuned").iterdir()
    entry.write_bytes(content)
    assert fuse(request()).winner is None


def test_writers_at_one_time_lose_nothing(cache: Path) -> None:
    """Each entry is a file that appears whole, whoever writes others."""
    requests = [request(m=m) for m in (5, 10, 20, 40, 80, 160)]
    choice = fuse(request()).fused.choice
    with ThreadPoolExecutor(len(requests)) as pool:
        for _ in range(20):
            list(pool.map(lambda asked: keep_winner(asked, Winner(choice, 1.0, 2.0, asked.extents["m"])), requests))
    found = [kept_winner(asked) for asked in requests]
    assert [winner and winner.measured for winner in found] == [5, 10, 20, 40, 80, 160]
    assert len(list((cache / "tuned").iterdir())) == len(requests)


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "file"))
    kept(request())
    assert fuse(request()).winner is None


@pytest.mark.parametrize("name", ["attention", "layernorm_matmul", "rmsnorm_swiglu"])
def test_every_alternative_is_made_again_from_what_is_written_of_it(name: str) -> None:
    fusion = fuse(request(HEADLINE[name]))
    space, again = plan_space(fusion), plan_space(fusion)
    plans = [*space.pareto(), *space.near(fusion.fused)[:12]]
    for plan in plans:
        choice = PlanChoice.from_json(json.loads(str(plan.choice)))
        followed = again.followed(choice)
        assert followed is not None
        assert followed.kernels == plan.kernels
        assert followed.seconds == plan.seconds


def test_compiled_functions_use_it_too_and_are_planned_anew_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    q, k = (generator.standard_normal(shape).astype(np.float32) for shape in ((100, 16), (90, 16)))
    planned: list[Plan] = []

    def planning(request: CompileRequest):
        found = plan(request)
        planned.append(found.fusion.fused)
        return found

    plan = stages.planned_program
    monkeypatch.setattr(stages, "planned_program", planning)
    first = bbrewrite.compile(TEXT, threads=2)(q, k)
    kept(request(TEXT.replace("softmax[n](S[m, n])", "exp(S[m, n])")))
    kept(request(m=300))
    bbrewrite.compile(TEXT, threads=2)
    assert len(planned) == 1
    winner = kept(request())
    for _ in range(2):
        np.testing.assert_allclose(bbrewrite.compile(TEXT, threads=2)(q, k), first, rtol=1e-5)
    assert [found.choice for found in planned[1:]] == [winner.choice]
    bbrewrite.compile(TEXT, threads=2, tuned=False)
    assert planned[2].choice == planned[0].choice != winner.choice
