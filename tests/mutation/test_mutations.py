"""Planted faults are caught: every check passes on the package as it is, and fails on each of its mutants."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bbrewrite.codegen import scope as codegen_scope
from bbrewrite.codegen.cpp import kernels as codegen_kernels
from bbrewrite.egraph import analyses, compile, facts, inline
from bbrewrite.egraph.masks import Masks
from bbrewrite.interpret import block_operators, positions, scalar_functions
from bbrewrite.plan.extraction import extract, forms
from bbrewrite.resources import resource_directory
from bbrewrite.runtime import apart
from tests.egraph.fact_checks import check_function_facts, check_monoid_facts, counterexample, derivations
from tests.mutation import checks
from tests.mutation.mutants import plant

type Check = Callable[[], None]
type Mutant = tuple[ModuleType | type, str, str, str]

MUTANTS: list[tuple[Check, Mutant]] = [
    # The free-index analysis.
    (checks.classes_have_one_value, (Masks, "union", "masks[1:]", "masks[2:]")),
    (checks.hoisting_asks_for_free_indices, (Masks, "bit", "(<< {self.one} {index})", "(<< {self.one} (+ {index} 1))")),
    (checks.free_indices_are_seen_through_edges, (Masks, "without", "(- {mask} (& {mask} {bit}))", "{mask}")),
    (checks.headline_programs_fuse, (Masks, "without", "(- {mask} (& {mask} {bit}))", "{mask}")),
    (checks.free_indices_are_the_fewest, (analyses, "free_declarations", "(& old new)", "(| old new)")),
    (checks.classes_have_one_value, (analyses, "free_rules", "found + bits", "bits")),
    (checks.many_indices_have_masks, (Masks, "for_count", "count <= _MACHINE_BITS", "count <= 2 * _MACHINE_BITS")),
    # Constness, scalars, facts.
    (
        checks.constness_is_proved,
        (analyses, "constant_rules", "range(constructor.operands)", "range(constructor.operands - 1)"),
    ),
    (
        checks.scalars_are_proved,
        (
            analyses,
            "scalar_rules",
            "operator.is_elementwise:\n        return [_rule(constructor, all_scalar,",
            "operator.is_elementwise:\n        return [_rule(constructor, [],",
        ),
    ),
    (checks.new_vectors_are_no_scalars, (analyses, "scalar_rules", "not s.result", "s.result")),
    (
        checks.sums_need_not_be_nonzero,
        (facts, "_rules", "_KEPT_BY_MONOIDS[operator.fold] if operator.fold else FACTS", "FACTS"),
    ),
    (
        checks.facts_are_proved,
        (facts, "_rules", "_rule(constructor, premises, fact)", "_rule(constructor, premises[1:], fact)"),
    ),
    # Inlining.
    (checks.inlining_does_not_capture, (inline._Renaming, "_binder", "elif bound in taken:", "elif False:")),
    (
        checks.inlining_does_not_capture,
        (inline._Renaming, "_binder", "inner.get(name, name) for name in term.free", "name for name in term.free"),
    ),
    (checks.addresses_follow_a_renaming, (inline._Renaming, "_find", "address.renamed(names) for", "address for")),
    # The scope check of extraction.
    (checks.plans_keep_to_scope, (extract._Extraction, "kernels_of", "if scoped and", "if")),
    (
        checks.plans_keep_to_scope,
        (forms, "_serves_for", "one.free <= other.free", "True"),
    ),
    # Operators of the interpreter.
    (checks.plans_mean_what_the_reference_says, (block_operators, "apply_operator", "a @ b.T", "a @ b.T + a[0, 0]")),
    (
        checks.plans_mean_what_the_reference_says,
        (block_operators, "_placed", "letters.index(letter) for letter in present", "range(len(present))"),
    ),
    (checks.values_are_those_worked_out_by_hand, (scalar_functions, "fold_axes", '"max": -np.inf', '"max": 0.0')),
    (
        checks.plans_mean_what_the_reference_says,
        (positions.Positions, "bounds", "min((number + 1) * block, self.extent(index))", "(number + 1) * block - 1"),
    ),
]


@pytest.fixture(autouse=True)
def no_text_of_another_mutant() -> None:
    """Texts of rules are kept within a process; a mutant's must not reach the next test, nor hide the mutant."""
    compile.compile_rule.cache_clear()


@pytest.mark.parametrize(
    ("check", "mutant"), MUTANTS, ids=[f"{check.__name__}-{m[1]}-{number}" for number, (check, m) in enumerate(MUTANTS)]
)
def test_the_mutant_is_caught(check: Check, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, old, new = mutant
    plant(monkeypatch, owner, name, old, new)
    with pytest.raises(Exception):  # noqa: B017, PT011  a mutant may fail in any way, but it must fail
        check()


@pytest.mark.parametrize("check", sorted({check for check, _ in MUTANTS}, key=lambda c: c.__name__))
def test_the_check_passes_without(check: Check) -> None:
    check()


# --- the table of facts, every premise of it

# Dropping these leaves a true line: what they exclude gives NaN or an infinity, of which the fact says nothing.
CAUTIOUS = {
    ("divide", "nonzero", "nonzero(b)"),
    ("exact_quotient", "nonzero", "nonzero(b)"),
    ("rsqrt", "nonnegative", "positive(a)"),
    ("rsqrt", "positive", "positive(a)"),
    ("recip", "nonzero", "nonzero(a)"),
}
DROPPED = [
    (function, premises, premise, conclusion)
    for function, premises, conclusion in derivations()
    for premise in premises
    if (function, conclusion, premise) not in CAUTIOUS
]


@pytest.mark.parametrize(
    ("function", "premises", "premise", "conclusion"), DROPPED, ids=[f"{f}-{c}-{p}" for f, _, p, c in DROPPED]
)
def test_every_premise_of_a_fact_is_needed(
    function: str, premises: tuple[str, ...], premise: str, conclusion: str
) -> None:
    assert counterexample(function, tuple(p for p in premises if p != premise), conclusion) is not None


def test_facts_of_monoids(monkeypatch: pytest.MonkeyPatch) -> None:
    check_monoid_facts()
    monkeypatch.setattr(facts, "_KEPT_BY_MONOIDS", {**facts._KEPT_BY_MONOIDS, "sum": facts.FACTS})
    with pytest.raises(AssertionError, match="sum of"):
        check_monoid_facts()


def test_a_wrong_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    check_function_facts()
    table = facts._OF_FUNCTIONS.replace("exp         finite(a)", "log         finite(a)", 1)
    monkeypatch.setattr(facts, "_OF_FUNCTIONS", table)
    with pytest.raises(AssertionError, match="log finite"):
        check_function_facts()


# --- generated code: each mutant is compiled

TEMPLATES = [
    ("bb_tile.hpp", "long p = 0;", "long p = G;"),
    ("bb_tile.hpp", "x = a[i * lda + p] - vec{};", "x = a[i * lda] - vec{};"),
]


@pytest.fixture
def mutable_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the targets that builds use, with a cache of its own."""
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "cache"))
    copy = tmp_path / "targets"
    shutil.copytree(resource_directory("targets"), copy)
    monkeypatch.setattr(apart, "resource_directory", lambda name: tmp_path / name)
    return copy / "cpp"


def test_generated_products_agree(mutable_targets: Path) -> None:
    checks.generated_products_agree()


@pytest.mark.parametrize(("header", "old", "new"), TEMPLATES)
def test_a_fault_in_a_template_is_caught(mutable_targets: Path, header: str, old: str, new: str) -> None:
    path = mutable_targets / header
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(AssertionError):
        checks.generated_products_agree()


# Faults that read or write less than they should, so that a mutant stays inside its arrays.
GENERATOR: list[Mutant] = [
    (
        codegen_kernels,
        "_block_bounds",
        "bb::minimum({index.block}, {index.size} - {index.start})",
        "bb::maximum<int64_t>(1, bb::minimum({index.block}, {index.size} - {index.start}) - 1)",
    ),
    (codegen_scope, "tensor_strides", "sizes[axis + 1 :]", "sizes[axis + 2 :]"),
]


@pytest.mark.parametrize("mutant", GENERATOR)
def test_a_fault_in_the_generator_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, old, new = mutant
    assert isinstance(module, ModuleType)
    owner = next(c for c in vars(module).values() if isinstance(c, type) and name in vars(c))
    plant(monkeypatch, owner, name, old, new)
    with pytest.raises(AssertionError):
        checks.generated_products_agree()
