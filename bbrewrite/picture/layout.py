"""Places boxes in layers so that edges lead downwards and cross little.

The classic method in three steps (Sugiyama, Tagawa and Toda 1981): each box one layer below the lowest that it
depends on, long edges through an invisible box in every layer between, and orders within layers by the mean place of
neighbours. Sizes are in pixels; what boxes mean is not known here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 8
_BEND_WIDTH = 12.0


@dataclass(frozen=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True)
class Layout[K: Hashable]:
    """The upper left corner of every box, the bends of every edge that passes a layer, and the size of the whole."""

    corners: Mapping[K, Point]
    bends: Mapping[tuple[K, K], tuple[Point, ...]]
    width: float
    height: float


@dataclass(frozen=True)
class _Bend:
    """The invisible box of an edge in a layer."""

    edge: int
    layer: int


def layered[K: Hashable](
    sizes: Mapping[K, tuple[float, float]],
    edges: Sequence[tuple[K, K]],
    gap_x: float = 24.0,
    gap_y: float = 40.0,
) -> Layout[K]:
    """Places boxes of the given widths and heights; `edges` lead from a box to one that comes after it in `sizes`."""
    edges = list(dict.fromkeys(edges))
    layer = _layers(list(sizes), edges)
    boxes: dict[K | _Bend, tuple[float, float]] = {**sizes}
    chains: list[list[K | _Bend]] = []
    places: dict[K | _Bend, int] = {**layer}
    for number, (source, target) in enumerate(edges):
        bends = [_Bend(number, level) for level in range(layer[source] + 1, layer[target])]
        places |= {bend: bend.layer for bend in bends}
        boxes |= dict.fromkeys(bends, (_BEND_WIDTH, 0.0))
        chains.append([source, *bends, target])
    rows: list[list[K | _Bend]] = [[] for _ in range(max(places.values(), default=-1) + 1)]
    for box, level in places.items():
        rows[level].append(box)
    links = [pair for chain in chains for pair in pairwise(chain)]
    centers = _centers(rows, boxes, links, gap_x)
    left = min((centers[box] - boxes[box][0] / 2 for box in boxes), default=0.0)
    corners: dict[K | _Bend, Point] = {}
    top = 0.0
    for row in rows:
        height = max(boxes[box][1] for box in row)
        for box in row:
            width, own = boxes[box]
            corners[box] = Point(centers[box] - width / 2 - left, top + (height - own) / 2)
        top += height + gap_y
    width = max((corners[box].x + boxes[box][0] for box in boxes), default=0.0)
    bends = {
        edge: tuple(Point(corners[bend].x + _BEND_WIDTH / 2, corners[bend].y) for bend in chain[1:-1])
        for edge, chain in zip(edges, chains, strict=True)
    }
    return Layout({box: corners[box] for box in sizes}, bends, width, max(top - gap_y, 0.0))


def _layers[K: Hashable](boxes: Sequence[K], edges: Sequence[tuple[K, K]]) -> dict[K, int]:
    """Each box below all that it depends on; one that nothing comes before stands just above its highest user."""
    before: dict[K, list[K]] = {box: [] for box in boxes}
    after: dict[K, list[K]] = {box: [] for box in boxes}
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    layer: dict[K, int] = {}
    for box in boxes:
        layer[box] = 1 + max((layer[source] for source in before[box]), default=-1)
    for box in reversed(boxes):
        if not before[box] and after[box]:
            layer[box] = min(layer[target] for target in after[box]) - 1
    return layer


def _centers[B: Hashable](
    rows: list[list[B]], boxes: Mapping[B, tuple[float, float]], links: Sequence[tuple[B, B]], gap: float
) -> dict[B, float]:
    """Orders every row in place, and gives the horizontal center of every box."""
    above: dict[B, list[B]] = {box: [] for box in boxes}
    below: dict[B, list[B]] = {box: [] for box in boxes}
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    centers: dict[B, float] = {}
    for row in rows:
        _packed(row, boxes, dict.fromkeys(row, 0.0), centers, gap)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for row in rows if downwards else reversed(rows):
            wanted: dict[B, float] = {}
            for box in row:
                neighbours = (above if downwards else below)[box] or (below if downwards else above)[box]
                wanted[box] = (
                    sum(centers[other] for other in neighbours) / len(neighbours) if neighbours else centers[box]
                )
            row.sort(key=lambda box: wanted[box])
            _packed(row, boxes, wanted, centers, gap)
    return centers


def _packed[B: Hashable](
    row: Sequence[B],
    boxes: Mapping[B, tuple[float, float]],
    wanted: Mapping[B, float],
    centers: dict[B, float],
    gap: float,
) -> None:
    """Puts the boxes of a row, in their order, as near to where they want to be as they fit without overlap.

    Neighbours that would overlap form a group, which stands at the mean of what its members want.
    """
    groups: list[tuple[list[B], list[float], float]] = []  # members, their places in the group, where the group stands
    for box in row:
        members, places, place = [box], [0.0], wanted[box]
        while groups:
            others, other_places, other_place = groups[-1]
            distance = (boxes[others[-1]][0] + boxes[members[0]][0]) / 2 + gap
            if other_place + other_places[-1] + distance <= place + places[0]:
                break
            groups.pop()
            start = other_places[-1] + distance - places[0]
            places = [*other_places, *(start + inner for inner in places)]
            members = [*others, *members]
            place = sum(wanted[member] - inner for member, inner in zip(members, places, strict=True)) / len(members)
        groups.append((members, places, place))
    for members, places, place in groups:
        centers.update({member: place + inner for member, inner in zip(members, places, strict=True)})
