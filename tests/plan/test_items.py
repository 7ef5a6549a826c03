"""Bills come to what a plain count of terms and passes comes to, whichever way terms were put together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.core.indices import Index, IndexTable
from bbrewrite.core.operators import builtin_table
from bbrewrite.core.programs import Role
from bbrewrite.core.terms import Reduce, Term
from bbrewrite.plan.extraction.items import UNIT, Bill, Items
from bbrewrite.plan.machine import Machine
from bbrewrite.plan.term_costs import TermCosts
from tests.plan.pipelines import TARGET
from tests.programs import apply, read, tensor, total

INDICES = IndexTable.of([Index("m", 256, None, 64), Index("n", 4096, None, 64), Index("k", 30, None, 30)])
TENSORS = {name: tensor(name, axes, Role.INPUT) for name, axes in {"A": "m n", "B": "m n", "C": "m k"}.items()}

type Pass = tuple[str, int]
type Counted = dict[tuple[tuple[Pass, ...], Term], float]


@st.composite
def terms(draw: st.DrawFn) -> list[Term]:
    """Values over rows, each made from earlier ones, so that several share what they are made of."""
    matrices: list[Term] = [read("A", "m", "n"), read("B", "m", "n")]
    vectors: list[Term] = [total("k", apply("row_sum", read("C", "m", "k")))]
    for _ in range(draw(st.integers(2, 9))):
        matrix, vector = draw(st.sampled_from(matrices)), draw(st.sampled_from(vectors))
        match draw(st.sampled_from(["exp", "scale", "add", "sum", "max", "vector"])):
            case "exp":
                matrices.append(apply("exp", matrix))
            case "scale":
                matrices.append(apply("row_scale", matrix, vector))
            case "add":
                matrices.append(apply("add", matrix, draw(st.sampled_from(matrices))))
            case "sum":
                vectors.append(total("n", apply("row_sum", matrix)))
            case "max":
                vectors.append(total("n", apply("row_max", matrix), "max"))
            case _:
                vectors.append(apply("multiply", vector, draw(st.sampled_from(vectors))))
    return [*matrices[2:], *vectors]


def _counted(term: Term, costs: TermCosts) -> Counted:
    """Every pass in which a term is needed, by the definition: what depends on a loop is needed in its pass."""
    found: Counted = {}
    for child in term.children:
        found |= _counted(child, costs)
    if isinstance(term, Reduce):
        outside = {
            key: cost
            for key, cost in found.items()
            if term.index not in key[1].free or any(term.index == index for index, _ in key[0])
        }
        numbers = [passes[0][1] for passes, _ in outside if passes and passes[0][0] == term.index]
        this = (term.index, 1 + max(numbers, default=-1))
        found = {key if key in outside else ((this, *key[0]), key[1]): cost for key, cost in found.items()}
        found[(this,), term] = costs.evaluation(term)
    found[(), term] = costs.evaluation(term)
    return found


def _billed(term: Term, items: Items) -> Bill:
    bill = items.united(_billed(child, items) for child in term.children)
    if isinstance(term, Reduce):
        return items.with_loop(term, bill)
    return items.united((bill, items.evaluation(term)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(terms())
def test_a_bill_is_the_sum_over_terms_and_passes(values: list[Term]) -> None:
    costs = TermCosts(builtin_table(), INDICES, TENSORS, Machine(TARGET, 2, {}))
    items = Items(costs)
    together: Counted = {}
    for value in values:
        together |= _counted(value, costs)
    bill = items.united(_billed(value, items) for value in values)
    assert abs(bill.estimate * UNIT - sum(together.values())) < 1e-12 + 1e-9 * bill.estimate * UNIT
    paid: set[Term] = set()
    keeping = 0.0
    for (_, term), cost in together.items():
        keeping += min(cost, costs.kept(term)) if term in paid else cost
        paid.add(term)
    assert abs(bill.keeping * UNIT - keeping) < 1e-12 + 1e-9 * keeping
    assert abs(items.least(bill) * UNIT - sum(map(costs.least, paid))) < 1e-12 + 1e-9 * keeping
    assert items.united(_billed(value, items) for value in reversed(values)) == bill
