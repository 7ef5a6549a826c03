"""Messages for faulty programs, each against a golden file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrewrite.core.spans import Source
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.lang.sources import read_source

from .golden_files import check_golden
from .texts import TABLE

_HEAD = "program p\nindex m = 8, n = 4, d = 8, k, e = d\ninput X[m, d], Y[m, n], s : f32, mask[m] : i32, c[m] : bool\n"
_BLOCK_HEAD = "block program p\nindex m = 8 by 4, n = 4 by 4, h = 2\ninput X[m, n], v[n] : f32\n"


def _array(statement: str) -> str:
    return f"{_HEAD}{statement}\noutput O[m] = s\n"


def _block(statement: str) -> str:
    return f"{_BLOCK_HEAD}{statement}\noutput O = map m: reduce sum n: row_sum(X[m, n])\n"


def _repeat(body: str, index: str = "k") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{_HEAD}repeat {index}\n{lines}output O[m] = s\n"


FAULTY = {
    # Syntax
    "missing_operator": _array("A[m] = 2 s"),
    "missing_value": _array("A[m] = 2 *\n# nothing more\noutput B = s"),
    "chained_comparison": _array("A[m] = where(0 < m < 4, 1, 0)"),
    "assignment_for_comparison": _array("A[m] = where(m = 4, 1, 0)"),
    "reduce_at_array_level": _array("A[m] = reduce(sum, n, Y[m, n])"),
    "double_star": _array("A[m] = s ** 2"),
    "double_slash": _array("A[m] = s // 2"),
    "unary_plus": _array("A[m] = +s"),
    "tight_not": _array("A[m] = where(c[m] == not c[m], 1, 0)"),
    "leading_operator": _array("A[m] = s\n  + 2"),
    "unclosed_bracket": _array("A[m] = (s + 2\nB[m] = s + A[m]"),
    "unclosed_call": _array("A[m] = maximum(s,\noutput B[m] = s"),
    "wrong_bracket": _array("A[m] = (s + 2]"),
    "stray_bracket": _array("A[m] = s)"),
    "unknown_character": _array("A[m] = s \u00d7 2"),
    "letter_that_looks_like_another": _array("A[m] = sum[d](\u0425[m, d])"),
    "wide_character": _array("A[m] \uff1d s"),
    "space_that_is_none": _array("A[m] = s\u00a0+ 2"),
    "curly_brackets": _array("A{m} = s"),
    "quotes": 'program "p"\nindex m = 4\noutput O[m] = 1\n',
    "semicolons": "program p; index m = 4; output O[m] = 1\n",
    "matrix_product": _array("A[m] = X @ Y"),
    "comment_of_another_language": _array("// note\nA[m] = s /* note */"),
    "rules_for_a_program": "rule r\n    exp(x)  =>  x\n",
    "type_behind_a_comma": "program p\nindex m = 4\ninput X[m], f32\noutput O[m] = X[m]\n",
    "non_ascii_name": _array("\u03c3[m] = s"),
    "semicolon": _array("A[m] = s;"),
    "misspelt_keyword": _array("ouptut A[m] = s"),
    "misspelt_repeat": _array("repeet t:\n  A[m] = s"),
    "misspelt_index": _array("indx 3"),
    "keyword_as_index": _array("A[not] = s"),
    "address_on_the_left": _array("A[m + 1] = s"),
    "empty_call": _array("A[m] = exp()"),
    "deep": _array("A[m] = " + "-" * 2000 + "s"),
    "deep_by_defs": _array("def f(x) = exp(" + "exp(" * 20 + "x" + ")" * 20 + ")\nA[m] = " + "f(" * 9 + "s" + ")" * 9),
    "large_by_defs": _array("def f(x) = x * x\nA[m] = " + "f(" * 40 + "s" + ")" * 40),
    "several": _array("A[m] = 2 s\nB[m] = A[m] + t\nC[m] = exp(B[m], 1)"),
    # Declarations
    "no_header": "index m = 4\ninput X[m] : f32\noutput O[m] = X[m]\n",
    "two_headers": "program a\nindex m = 4\ninput X[m] : f32\noutput O[m] = X[m]\nprogram b\n",
    "late_header": "index m = 4\nprogram a\ninput X[m] : f32\noutput O[m] = X[m]\n",
    "empty": "# nothing\n",
    "fractional_extent": "program p\nindex m = 4.5\noutput O[m] = 1\n",
    "negative_extent": "program p\nindex m = -4\noutput O[m] = 1\n",
    "huge_extent": "program p\nindex m = 123456789012345678901234567890\noutput O[m] = 1\n",
    "extent_of_unknown": "program p\nindex m = mm, k = k\noutput O[m] = 1\n",
    "index_twice": "program p\nindex m = 4, m = 5\noutput O[m] = 1\n",
    "by_at_array_level": "program p\nindex m = 4 by 2\noutput O[m] = 1\n",
    "zero_block": "program p\nindex m = 4\nblock m = 0\noutput O[m] = 1\n",
    "block_of_unknown": "program p\nindex m = 4\nblock mm = 4\noutput O[m] = 1\n",
    "block_twice": "program p\nindex m = 4\nblock m = 2, m = 4\noutput O[m] = 1\n",
    "no_type": "program p\nindex m = 4\ninput X[m]\noutput O[m] = X[m]\n",
    "unknown_type": "program p\nindex m = 4\ninput X[m] : fp32\noutput O[m] = X[m]\n",
    "index_twice_in_tensor": "program p\nindex m = 4\ninput X[m, m] : f32\noutput O[m] = X[m, m]\n",
    "unknown_fact": _array("assume postive(X)"),
    "assume_computed": _array("A[m] = s\nassume positive(A), positive(Z)"),
    "no_output": "program p\nindex m = 4\nA[m] = 1\n",
    "nothing_defined": "program p\nindex m = 4\n",
    # Repeats
    "repeat_of_unknown": _repeat("carry A[m] = s\nnext A[m] = A[m] + 1", index="layers"),
    "repeat_in_repeat": _repeat("carry A[m] = s\nrepeat d\nnext A[m] = A[m]"),
    "repeat_of_nothing": _repeat("B[m] = s"),
    "repeat_without_next": _repeat("carry A[m] = s\nB[m] = A[m]"),
    "repeat_next_of_another": _repeat("carry A[m] = s\nB[m] = A[m]\nnext B[m] = A[m]\nnext A[m] = B[m]"),
    "repeat_next_twice": _repeat("carry A[m] = s\nnext A[m] = A[m]\nnext A[m] = A[m]"),
    "repeat_next_of_other_extent": _repeat("carry A[m] = s\nnext A[n] = Y[0, n]"),
    "repeat_next_of_other_rank": _repeat("carry A[m] = s\nnext A[m, n] = Y[m, n]"),
    "repeat_loose_index": _repeat("carry A[m] = s\nnext A[m] = A[m] + Y[m, n]"),
    "repeat_index_on_the_left": _repeat("carry A[m] = s\nB[n, m] = A[m]\nnext A[m] = A[m]", index="n"),
    "repeat_late_carry": _repeat("B[m] = s\ncarry A[m] = s\nnext A[m] = B[m]"),
    "repeat_output": _repeat("carry A[m] = s\noutput B[m] = A[m]\nnext A[m] = A[m]"),
    "repeat_declaration": _repeat("carry A[m] = s\nindex q = 4\nnext A[m] = A[m]"),
    "repeat_inner_name_outside": _repeat("carry A[m] = s\nB[m] = A[m]\nnext A[m] = B[m]") + "C[m] = B[m]\n",
    "carry_outside": _array("carry A[m] = s"),
    "next_outside": _array("A[m] = s\nnext A[m] = s"),
    "block_repeat": _block("repeat h"),
    # Names
    "clash_with_operator": "program p\nindex m = 4\ninput exp[m] : f32\noutput O[m] = exp[m]\n",
    "clash_with_index": _array("m = s"),
    "output_twice": _array("output O[m] = s"),
    "unknown_tensor": _array("A[m] = XX[m, n]"),
    "unknown_function": _array("A[m] = sofmax[n](Y[m, n])"),
    "use_before_definition": _array("A[m] = B[m]\nB[m] = s"),
    "use_of_itself": _array("A[m] = A[m] + 1"),
    "recursive_def": _array("def f(x) = f(x - 1)\nA[m] = f(s)"),
    "fault_in_def": _array("def f(x) = x + y\nA[m] = f(s)"),
    "def_parameter_twice": _array("def f(x, x) = x\nA[m] = f(s, s)"),
    # Indices
    "loose_index": _array("A[m] = X[m, d]"),
    "loose_softmax": _array("A[m] = softmax[n](Y[m, n])"),
    "reduced_twice": _array("A[m] = sum[n, n](Y[m, n])"),
    "reduction_binds_argument_only": _array("A[m] = sum[n](Y[m, n]) * Y[m, n]"),
    "reduction_over_address": _array("A[m] = sum[n + 1](Y[m, n])"),
    "reduction_over_tensor": _array("A[m] = sum[s](Y[m, n])"),
    "reduction_without_index": _array("A[m] = sum(Y[m, n])"),
    "max_of_two": _array("A[m] = max(s, 0)"),
    "wrong_rank": _array("A[m] = X[m]"),
    "no_indices": _array("A[m] = X + s[m]"),
    "other_extent": _array("A[n] = sum[d](X[n, d])"),
    "open_extents": _array("A[k] = sum[d](X[k, d])"),
    "address_not_affine": _array("A[m] = Y[m, m * m] + Y[m, 4 / m] + Y[m, 1.5] + Y[m, s]"),
    "address_divisions": _array("A[m] = Y[m, m / 2 + m / 3] + Y[m, -(m / 2)] + Y[m, m / 0] + Y[m, 2 * (m / 4)]"),
    "round_brackets_on_tensor": _array("A[m] = sum[n](Y(m, n))"),
    "index_of_value": _array("A[m] = (s + 1)[m]"),
    # Arguments and types
    "arity": _array("A[m] = exp(s, s) + where(c[m], 1)"),
    "brackets_on_function": _array("A[m] = exp[m](s)"),
    "function_without_arguments": _array("A[m] = exp + softmax"),
    "eps": _array("A[m] = rms_norm[m](s, 1e-6) + rms_norm[m](s, epsilon = 1) + layer_norm[m](s, eps = s)"),
    "eps_where_there_is_none": _array("A[m] = softmax[m](s, eps = 1)"),
    "size_of_tensor": _array("A[m] = size(X) + size(m + 1) + size"),
    "named_infix": _array("A[m] = add(s, 1)"),
    "block_operator": _array("A[m] = dot(X[m, d], X[m, d])"),
    "map_at_array_level": _array("A = map m: s"),
    "condition_on_float": _array("A[m] = where(s, 1, 0) + where(c[m] and s, 1, 0)"),
    "stored_as_bool": _array("A[m] : bool = s"),
    "unknown_declared_type": _array("A[m] : float = s\nB[m] = A[m]"),
    "number_too_large": _array("A[m] = 1e999"),
    "type_fault_inside_def": _array("def f(x) = where(x, 1, 0)\nA[m] = f(s)"),
    "def_arity": _array("def f[i](x) = sum[i](x)\nA[m] = f[n](s, s) + f(s)"),
    "parameter_as_function": _array("def f(x) = x(1) + x[m]\nA[m] = f(s)"),
    # Block level
    "block_unknown_operator": _block("A = map m: rowsum(v[m])"),
    "block_unknown_monoid": _block("A = map m: reduce average n: row_sum(X[m, n])"),
    "block_loose_index": _block("A = map m: row_sum(X[m, n])"),
    "block_type": _block("A = map m: map n: X[m, n] + v[n]"),
    "block_reduce_along_block": _block("A = map m: reduce sum n: X[m, n]"),
    "block_transposed": _block("A = map n: map m: X[m, n]"),
    "block_pair_definition": _block("A = map m: pair(1, 2)"),
    "block_array_syntax": _block("A[m] = sum[n](X[m, n])"),
    "block_reduction_call": _block("A = map m: softmax(v[m])"),
    "block_statement_in_block": _block("block m = 4"),
    "block_def": _block("def f(x) = x"),
    "block_operand_count": _block("A = map m: reduce sum n: (row_sum(X[m, n]), 1)"),
    "block_spread_index": _block("A = map m: map n: row_spread(row_sum(X[m, n]), 3)"),
    "block_read_of_value": _block("A = map n: (v[n])[n]"),
    "block_two_maps_over_one_index": _block("A = map m: map m: 1"),
    "block_rank": _block("A = map m: X[m] + X"),
    "block_body_in_operand": _block("A = map m: 1 + reduce sum n: row_sum(X[m, n])"),
    "block_map_of_nothing": _block("A = map q: 1"),
}


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_message(name: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_program(Source("program.bb", FAULTY[name]), TABLE)
    check_golden(f"errors/{name}.txt", FAULTY[name][:400].rstrip() + "\n----\n" + str(caught.value) + "\n")


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_messages_point_into_the_text(name: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_program(Source("program.bb", FAULTY[name]), TABLE)
    for fault in caught.value.diagnostics:
        assert fault.span is not None
        line = fault.span.source.line(fault.span.line)
        assert 1 <= fault.span.column <= len(line) + 1
        assert not any(word in fault.render() for word in ("lark", "Token(", "UnexpectedToken", "LEFT_SQUARE", "_ANON"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary.bb"
    binary.write_bytes(b"program p\nindex m = \xff\n")
    with pytest.raises(InputError, match=r"binary\.bb:2:11: error\[not-text\]: the byte 0xff"):
        read_source(binary)
    with pytest.raises(InputError, match="there is no file"):
        read_source(tmp_path / "absent.bb")
    with pytest.raises(InputError, match="is a directory"):
        read_source(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_source("a\0b")


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "p.bb"
    path.write_bytes(b"\xef\xbb\xbfprogram p\r\noutput O = 1\r\n")
    assert read_source(path).text == "program p\noutput O = 1\n"
