"""Rule sets kept between processes: the same rules as parsed ones, made anew whenever anything is not as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bbrewrite.core.terms import walk
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.resources import resource_directory
from bbrewrite.rules import load
from bbrewrite.rules.load import load_rules, parse_rules, read_rule_sources

TEXT = """\
op weight(a, b) = where(a == b, 1, exp(a - b))

monoid total
    state    s
    identity 0
    element  x => x
    combine  (s1), (s2) => s1 + s2
    finish   s

# One.
rule one "A product with one"
    x * 1  =>  x
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a rule file, and a cache of its own."""
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", str(tmp_path / "cache"))
    directory = tmp_path / "rules"
    directory.mkdir()
    (directory / "a.rules").write_text(TEXT, encoding="utf-8")
    return directory


def _files(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache" / "rules").iterdir())


def test_what_is_remembered_is_what_was_parsed(rules: Path, tmp_path: Path) -> None:
    for directory in (rules, resource_directory("rules")):
        parsed = parse_rules(read_rule_sources(directory))
        for _ in range(2):
            assert load_rules(directory) == parsed
    assert len(_files(tmp_path)) == 2


def test_changed_rules_are_parsed_again(rules: Path, tmp_path: Path) -> None:
    assert [rule.name for rule in load_rules(rules).rules] == ["one"]
    (rules / "a.rules").write_text(TEXT.replace("rule one", "rule unit"), encoding="utf-8")
    assert [rule.name for rule in load_rules(rules).rules] == ["unit"]
    (rules / "a.rules").write_text(TEXT + "rule broken\n    x * y => z\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="z"):
            load_rules(rules)
    assert len(_files(tmp_path)) == 1


def test_rules_are_the_same_on_every_machine(rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_rules(rules)
    description = tmp_path / "config" / "host.toml"
    description.parent.mkdir()
    description.write_text("another machine", encoding="utf-8")
    monkeypatch.setenv("BBREWRITE_CONFIG_DIR", str(description.parent))
    monkeypatch.setattr(load, "parse_rules", lambda *_: pytest.fail("parsed again"))
    assert load_rules(rules) == found


@pytest.mark.parametrize("damage", [b"", b"not a pickle", b"\x80\x05N."])
def test_a_damaged_file_is_made_anew(rules: Path, tmp_path: Path, damage: bytes) -> None:
    expected = load_rules(rules)
    (file,) = _files(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert load_rules(rules) == expected
    assert len(file.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written_is_no_fault(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a directory", encoding="utf-8")
    assert load_rules(rules) == parse_rules(read_rule_sources(rules))


def test_hashes_are_those_of_the_process(rules: Path) -> None:
    """The hash of a name differs between processes; a term that kept its own would not be found among equals."""
    for rule in load_rules(rules).rules:
        {hash(term) for _, left in rule.matches for term in walk(left)}
    script = (
        "import sys; from bbrewrite.rules.load import *; from bbrewrite.core.terms import walk;"
        "a, b = load_rules(sys.argv[1]), parse_rules(read_rule_sources(sys.argv[1]));"
        "assert a == b and {hash(t) for r in a.rules for _, x in r.matches for t in walk(x)}"
        " == {hash(t) for r in b.rules for _, x in r.matches for t in walk(x)}"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", script, str(rules)], check=True, env=environment)
