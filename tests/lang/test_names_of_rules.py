"""Names that rule files add to the language are free for programs: brackets tell what is called."""

from __future__ import annotations

import pytest

from bbrewrite.core.operators import builtin_table
from bbrewrite.core.printing import print_shared_program
from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.diagnostics import InputError
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import run
from bbrewrite.request import make_request
from tests.plan.pipelines import shipped_rules

# Every tensor and index has the name of an `op` or `monoid` of the shipped rules, and fused forms call some of these.
TAKEN = {
    "rescaled_sum": """\
program rescaled_sum
index spread = 20, squares_of = 19, row_squares = 16, squared_deviations = 8
input  weight[spread, row_squares], one_if_visible[squares_of, row_squares] : f32
input  count_of[squares_of, squared_deviations] : f32
col_count[spread, squares_of] = sum[row_squares](weight[spread, row_squares] * one_if_visible[squares_of, row_squares])
row_count[spread, squares_of] = softmax[squares_of](col_count[spread, squares_of])
output twice_rescaled_sum[spread, squared_deviations] = sum[squares_of](row_count[spread, squares_of]
    * count_of[squares_of, squared_deviations])
""",
    # Rows too long to be kept local are read once only by the rules' moments.
    "squared_deviations": """\
program squared_deviations
index spread = 2, row_squares = 2000000
input  weight[spread, row_squares] : f32
output scalar_rescaled_sum[spread] = variance[row_squares](weight[spread, row_squares])
""",
}
CALLED = {"rescaled_sum": ["reduce rescaled_sum"], "squared_deviations": ["reduce squared_deviations", "spread("]}
RULES = shipped_rules()
ADDED = sorted({*RULES.table.operators, *RULES.table.monoids} - {*builtin_table().operators, *builtin_table().monoids})


@pytest.mark.parametrize("target", ["cpp", "numpy"])
@pytest.mark.parametrize("program", TAKEN)
def test_a_program_may_use_the_names_of_operators_that_its_fused_form_calls(program: str, target: str) -> None:
    request = make_request(parse_program(Source("taken", TAKEN[program]), RULES.table), RULES)
    result = run(request, target, 0)
    assert result.comparison.ok
    assert result.fusion.after.kernels < result.fusion.before.kernels
    text = print_shared_program(result.fusion.fused.fused, RULES.table)
    for call in CALLED[program]:
        assert call in text
    assert parse_program(Source("again", text), RULES.table).definitions == result.fusion.fused.fused.definitions


@pytest.mark.parametrize("name", ADDED)
def test_every_added_name_is_free(name: str) -> None:
    assert ADDED
    texts = [
        f"program p\nindex m = 4\ninput {name}[m] : f32\noutput y[m] = {name}[m]\n",
        f"program p\nindex {name} = 4\ninput x[{name}] : f32\noutput y[{name}] = x[{name}] + {name}\n",
        f"program p\nindex m = 4\ninput x[m] : f32\noutput {name}[m] = x[m]\n",
        f"program {name}\nindex m = 4\ninput x[m] : f32\ndef {name}(a) = a * 2\noutput y[m] = {name}(x[m])\n",
        f"block program p\nindex m = 4 by 4\ninput x[m] : f32\nlet {name} = x[m] + 1\noutput y = map m: {name}\n",
    ]
    for text in texts:
        fuse(make_request(parse_program(Source("p", text), RULES.table), RULES))


def test_a_call_is_of_the_operator_and_everything_else_of_the_tensor() -> None:
    text = "program p\nindex m = 4\ninput weight[m] : f32\noutput y[m] = weight(weight[m], weight[m])\n"
    assert run(make_request(parse_program(Source("p", text), RULES.table), RULES), "numpy", 0).comparison.ok


@pytest.mark.parametrize("name", ["exp", "row_sum", "softmax", "map", "size"])
def test_the_names_of_the_language_itself_are_not(name: str) -> None:
    with pytest.raises(InputError, match="is a name of the language"):
        parse_program(Source("p", f"program p\nindex m = 4\ninput {name}[m] : f32\noutput y = 1\n"), RULES.table)


def test_an_operator_of_the_rules_is_no_tensor() -> None:
    with pytest.raises(InputError, match="`weight` is an operator of the rules; a tensor"):
        parse_program(Source("p", "program p\nindex m = 4\ninput x[m] : f32\noutput y[m] = weight[m]\n"), RULES.table)
