"""Bad input of every kind: a message, exit code 2 (3 for a missing tool), and never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import SCALED_SUM, Command


def _refused(bbrewrite: Command, *arguments: object, code: int = 2) -> str:
    """Runs the command, which must refuse, and returns its message."""
    result = bbrewrite(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert result.stderr.strip()
    return result.stderr


@pytest.mark.parametrize("command", ["run", "fuse", "bench", "check"])
def test_a_missing_program(bbrewrite: Command, rules: Path, command: str) -> None:
    assert "no file none.bb" in _refused(bbrewrite, command, rules, "none.bb")


@pytest.mark.parametrize("command", ["run", "fuse", "bench", "check"])
def test_missing_rules(bbrewrite: Command, scaled_sum: Path, command: str) -> None:
    assert "no file none" in _refused(bbrewrite, command, "none", scaled_sum)


def test_a_directory_for_a_program(bbrewrite: Command, rules: Path) -> None:
    assert "is a directory" in _refused(bbrewrite, "run", rules, ".")
    assert "is a directory" in _refused(bbrewrite, "lower", ".")


def test_bytes_that_are_not_text(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    Path("latin.bb").write_bytes("program caf\xe9\n".encode("latin-1"))
    Path("latin.rules").write_bytes(b"rule \xff\n")
    assert "latin.bb:1:12" in _refused(bbrewrite, "run", rules, "latin.bb")
    assert "latin.rules:1:6" in _refused(bbrewrite, "run", "latin.rules", scaled_sum)


def test_faults_of_a_program_are_shown_where_they_are(bbrewrite: Command, rules: Path) -> None:
    Path("bad.bb").write_text(SCALED_SUM.replace("P[m, n])", "Q[m, n])"))
    message = _refused(bbrewrite, "run", rules, "bad.bb")
    assert "bad.bb:6:" in message
    assert "output Y[m] = s * sum[n](Q[m, n])" in message
    assert "^" in message


def test_faults_of_rules_are_shown_where_they_are(bbrewrite: Command, scaled_sum: Path) -> None:
    Path("bad.rules").write_text("rule r\n    row_scale(a, c)  =>  row_scale(a, d)\n")
    message = _refused(bbrewrite, "check", "bad.rules")
    assert "bad.rules:2:39" in message
    assert "not on the left" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "q=5"], "no index q"),
        (["--size", "m=x"], "'x' is not a whole number"),
        (["--size", "m=-1"], "'-1' is less than 0"),
        (["--size", "m=1.5"], "not a whole number"),
        (["--size", "m="], "not of the form"),
        (["--size", "m"], "not of the form"),
        (["--size", "=3"], "not of the form"),
        (["--size", "m=" + "9" * 30], "too large"),
        (["--size", "m=1", "--size", "m=2"], "'m' is given twice"),
        (["--size", "m=3", "--block", "m=0"], "'0' is less than 1"),
        (["--size", "m=3", "--block", "q=4"], "no index q"),
        (["--size", "m=3", "--threads", "0"], "--threads"),
        (["--size", "m=3", "--seed", "-1"], "--seed"),
        (["--size", "m=3", "--target", "gpu"], "--target"),
        (["--size", "m=3", "--input", "X"], "not of the form"),
        (["--size", "M=1", "--size", "M=2"], "`--size`: 'M' is given twice"),
        (["--block", "Rows.=1", "--block", "Rows.=2"], "`--block`: 'Rows.' is given twice"),
        (["--input", "X=a", "--input", "X=b"], "`--input`: 'X' is given twice"),
        (["--input", "Got X=a", "--input", "Got X=b"], "`--input`: 'Got X' is given twice"),
        (["--size", "m=3", "--input", "A=a.npy"], "no input A"),
        (["--size", "m=3", "--input", "X=none.npy"], "no such file"),
        (["--size", "m=3", "--frobnicate"], "there is no option `--frobnicate`"),
        ([], "the extent of m is open"),
    ],
)
def test_options(bbrewrite: Command, rules: Path, scaled_sum: Path, options: list[str], message: str) -> None:
    assert message in _refused(bbrewrite, "run", rules, scaled_sum, *options)


_ABSURD = ["-1", "9" * 40, "x", "1.5", "1e3", "nan", ""]


@pytest.mark.parametrize("command", ["run", "fuse", "lower", "codegen", "bench", "fuzz"])
def test_absurd_numbers(bbrewrite: Command, rules: Path, scaled_sum: Path, command: str) -> None:
    arguments = {"lower": [scaled_sum], "fuzz": [rules], "codegen": [rules, scaled_sum, "-o", "made"]}
    takes = {"lower": ["--size=m=", "--block=m="], "fuzz": ["--seed=", "--jobs="]}
    options = takes.get(command, ["--size=m=", "--block=m=", "--threads="])
    options += ["--seed="] if command in ("run", "bench") else []
    for option in options:
        for value in _ABSURD:
            _refused(bbrewrite, command, *arguments.get(command, [rules, scaled_sum]), option + value)
    if command == "fuzz":
        for value in ("nan", "-1", "1e99", "x"):
            assert "--budget" in _refused(bbrewrite, "fuzz", rules, "--budget", value)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5, np.float32), "needs 2 axes, the array has shape (5,)"),
        (np.zeros((4, 6), np.float32), "gives n = 6, but the program declares n = 5"),
        (np.zeros((3, 5), np.float32), "gives m = 3, but --size m=4"),
        (np.zeros((4, 5), np.complex64), "complex64"),
        (np.full((4, 5), None), "not a .npy file of numbers"),
        (np.full((4, 5), "a"), "needs a float type"),
    ],
)
def test_arrays(bbrewrite: Command, rules: Path, scaled_sum: Path, array: np.ndarray, message: str) -> None:
    np.save("x.npy", array, allow_pickle=True)
    assert message in _refused(bbrewrite, "run", rules, scaled_sum, "--size", "m=4", "--input", "X=x.npy")


def test_an_array_that_breaks_an_assumption(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text("program p\nindex m\ninput X[m] : f32\nassume positive(X)\noutput Y[m] = 1 / X[m]\n")
    np.save("x.npy", np.array([1.0, -3.0]))
    assert "assumes positive(X), but [1] is -3" in _refused(bbrewrite, "run", rules, "p.bb", "--input", "X=x.npy")


def test_extents_that_do_not_fit_in_memory(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    message = _refused(bbrewrite, "run", rules, scaled_sum, "--size", f"m={2**50}")
    assert "GiB of memory" in message
    assert "P[m = 1125899906842624, n = 5]" in message or "X[m = 1125899906842624, n = 5]" in message


def test_a_read_outside_its_tensor(bbrewrite: Command, rules: Path) -> None:
    Path("p.bb").write_text("program p\nindex m = 4\ninput X[m] : f32\noutput Y[m] = X[m + 1]\n")
    message = _refused(bbrewrite, "run", rules, "p.bb", "--target", "numpy")
    assert "p.bb:4:15" in message
    assert "X is read at m + 1 = 4" in message


def test_places_that_cannot_be_written(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:
    Path("file").write_text("")
    run = ["run", rules, scaled_sum, "--target", "numpy", "--size", "m=4"]
    assert "cannot write file" in _refused(bbrewrite, *run, "--save", "file")
    assert "cannot write file/deep" in _refused(bbrewrite, *run, "--save", "file/deep")
    message = _refused(bbrewrite, "codegen", rules, scaled_sum, "--size", "m=4", "-o", "file")
    assert "-o: cannot write file: it is a file, and a directory is needed" in message
    Path("out/Y.npy").mkdir(parents=True)
    assert "cannot write out/Y.npy" in _refused(bbrewrite, *run, "--save", "out")


def test_files_that_cannot_be_written_are_told_in_one_form(
    bbrewrite: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever runs the tests may write anywhere, so writing itself is refused."""
    Path("p.bb").write_text("program p\noutput   Y = 1\n")
    monkeypatch.setenv("BBREWRITE_CONFIG_DIR", str(tmp_path / "p.bb"))
    monkeypatch.setattr("bbrewrite.cli.target.measured_target", lambda shipped, threads: shipped)
    message = _refused(bbrewrite, "target", "--measure")
    assert "error[unwritable]: --measure: cannot write" in message
    assert "BBREWRITE_CONFIG_DIR" in message

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_text", refused)
    assert "error[unwritable]: fmt: cannot write p.bb: Permission denied" in _refused(bbrewrite, "fmt", "p.bb")


@pytest.mark.parametrize("command", [["run", "", "P"], ["run", "R", ""], ["fmt", ""], ["codegen", "R", "P", "-o", ""]])
def test_an_empty_path_is_not_the_working_directory(
    bbrewrite: Command, rules: Path, scaled_sum: Path, command: list[str]
) -> None:
    paths = {"R": rules, "P": scaled_sum}
    assert "the path is empty" in _refused(bbrewrite, *(paths.get(word, word) for word in command))


def test_a_cache_that_cannot_be_written(
    bbrewrite: Command, rules: Path, scaled_sum: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("BBREWRITE_CACHE_DIR", os.path.abspath("file/cache"))
    message = _refused(bbrewrite, "run", rules, scaled_sum, "--size", "m=4")
    assert "file/cache" in message
    assert "BBREWRITE_CACHE_DIR" in message


def test_no_compiler(bbrewrite: Command, rules: Path, scaled_sum: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    message = _refused(bbrewrite, "run", rules, scaled_sum, "--size", "m=4", code=3)
    assert "apt install g++" in message
    assert bbrewrite("run", rules, scaled_sum, "--size", "m=4", "--target", "numpy").exit_code == 0


def test_an_endless_expression(bbrewrite: Command, rules: Path) -> None:
    Path("long.bb").write_text(f"program p\ninput x : f32\noutput y = {' + '.join(['x'] * 20000)}\n")
    _refused(bbrewrite, "run", rules, "long.bb")


def test_an_unsound_rule_that_equates_numbers(bbrewrite: Command, scaled_sum: Path) -> None:
    Path("unsound.rules").write_text("rule r\n    x + 1  =>  x\nrule fuse\n    at(map(i, x), i)  =>  x\n")
    Path("p.bb").write_text("program p\nindex m = 4\ninput X[m] : f32\noutput Y[m] = (2 + 1) * X[m]\n")
    result = bbrewrite("run", "unsound.rules", "p.bb", "--target", "numpy")
    assert result.exit_code in (1, 2), result.output
    assert "Traceback" not in result.output


TWINS = {
    "arrays": "program twins\nindex m = 4, n = 4\ninput X[m] : f32\noutput Y[n] = X[n]\n",
    "definitions": "program twins\nindex m = 4, n = 4\ninput X[n] : f32\nS[n] = 2 * X[n]\n"
    "output Y[m] = sum[n](where(n == m, S[m], 0))\n",
    "blocks": "block program twins\nindex m = 4, n = 4\ninput X[m] : f32\noutput Y = map n: X[n]\n",
}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("command", ["run", "fuse", "bench", "lower", "codegen"])
def test_extents_that_a_read_needs_equal(bbrewrite: Command, rules: Path, command: str, name: str) -> None:
    Path("twins.bb").write_text(TWINS[name])
    paths = ["twins.bb"] if command == "lower" else [rules, "twins.bb"]
    options = ["-o", "out"] if command == "codegen" else []
    for size in ("m=5", "n=5"):
        message = _refused(bbrewrite, command, *paths, *options, "--size", size)
        assert "twins.bb:" in message
        assert "^" in message
        assert "declare `index n = m`" in message
    assert not Path("out").exists()
    if command in ("lower", "codegen"):
        result = bbrewrite(command, *paths, *options, "--size", "m=5", "--size", "n=5")
        assert result.exit_code == 0, result.output
    if command == "codegen":
        assert "Extents that must be equal: size_m = size_n." in Path("out/twins.h").read_text()


def test_given_arrays_that_a_read_needs_equal(bbrewrite: Command, rules: Path) -> None:
    text = "program twins\nindex m = 4, n = 4\ninput X[m], Z[n] : f32\noutput Y[n] = X[n] * Z[n]\n"
    Path("twins.bb").write_text(text)
    for name, extent in (("X", 4), ("Z", 5)):
        np.save(f"{name}.npy", np.ones(extent, np.float32))
    message = _refused(bbrewrite, "run", rules, "twins.bb", "--input", "X=X.npy", "--input", "Z=Z.npy", "--size", "n=5")
    assert "X is read at n, but size(n) is 5 and size(m) is 4" in message
