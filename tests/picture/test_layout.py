"""Layered placement: nothing overlaps, edges lead downwards, and the same graph is always placed the same."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from bbrewrite.picture.layout import layered

type Graph = tuple[dict[int, tuple[float, float]], list[tuple[int, int]]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 12))
    side = st.integers(5, 200).map(float)
    sizes = {box: (draw(side), draw(side)) for box in range(count)}
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    return sizes, edges


@given(graphs())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_placement(graph: Graph) -> None:
    sizes, edges = graph
    layout = layered(sizes, edges)
    assert layout == layered(sizes, edges)
    assert set(layout.corners) == set(sizes)
    for box, (width, height) in sizes.items():
        corner = layout.corners[box]
        assert -1e-6 <= corner.x <= layout.width - width + 1e-6
        assert -1e-6 <= corner.y <= layout.height - height + 1e-6
    for one, other in combinations(sizes, 2):
        a, b = layout.corners[one], layout.corners[other]
        apart_x = a.x + sizes[one][0] <= b.x + 1e-6 or b.x + sizes[other][0] <= a.x + 1e-6
        apart_y = a.y + sizes[one][1] <= b.y + 1e-6 or b.y + sizes[other][1] <= a.y + 1e-6
        assert apart_x or apart_y
    for source, target in edges:
        heights = [layout.corners[source].y + sizes[source][1]]
        heights += [bend.y for bend in layout.bends[source, target]]
        heights.append(layout.corners[target].y)
        assert all(above < below for above, below in pairwise(heights))


def test_long_edges_bend_around_what_stands_between() -> None:
    layout = layered(dict.fromkeys("abc", (50.0, 20.0)), [("a", "b"), ("b", "c"), ("a", "c")])
    (bend,) = layout.bends["a", "c"]
    corner = layout.corners["b"]
    assert not corner.x <= bend.x <= corner.x + 50


def test_nothing() -> None:
    layout = layered({}, [])
    assert (layout.width, layout.height, layout.corners) == (0.0, 0.0, {})
