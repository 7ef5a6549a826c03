"""Draws a picture as SVG: tensors and kernels from top to bottom in the order of data flow.

Colours are left to the style sheet of the page; the classes `input`, `weight`, `buffer` and `output` tell tensors and
their transfers apart. Every box is a group with a title, which browsers show to whoever points at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import log2

from bbrewrite.core.programs import Role
from bbrewrite.picture.graph import Cluster, Picture, Vertex
from bbrewrite.picture.layout import Layout, Point, layered
from bbrewrite.units import byte_count

_CHARACTER = 6.7  # the width of one, in the page's fixed-width type of 11 pixels
_LINE = 16.0
_PADDING = 12.0
_CAPTION = 40.0  # above the vertices of a cluster
_MARGIN = 16.0


@dataclass(frozen=True)
class _Inside:
    """A cluster laid out by itself."""

    cluster: Cluster
    layout: Layout[str]
    sizes: dict[str, tuple[float, float]]

    @property
    def size(self) -> tuple[float, float]:
        caption = _text_width(f"kernel {self.cluster.name}", self.cluster.caption)
        width = max(self.layout.width, caption) + 2 * _PADDING
        return width, self.layout.height + _CAPTION + 2 * _PADDING


def draw(picture: Picture) -> str:
    """The picture as an `svg` element."""
    insides = {cluster.name: _inside(cluster) for cluster in picture.clusters}
    sizes = {("tensor", name): (_text_width(name, box.caption) + 20, 40.0) for name, box in picture.tensors.items()}
    sizes |= {("kernel", name): inside.size for name, inside in insides.items()}
    order = _in_order(picture)
    edges = [
        (("kernel", t.cluster), ("tensor", t.tensor)) if t.is_store else (("tensor", t.tensor), ("kernel", t.cluster))
        for t in picture.transfers
    ]
    layout = layered({key: sizes[key] for key in order}, edges, gap_x=32, gap_y=64)
    parts = [
        *_kernels(insides, layout),
        *_transfers(picture, insides, sizes, layout),
        *_tensors(picture, sizes, layout),
    ]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    box = f"{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width:.0f}" height="{height:.0f}">'
    return "\n".join([head, _MARKER, *parts, "</svg>"])


_MARKER = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


def _text_width(*lines: str) -> float:
    return max(len(line) for line in lines) * _CHARACTER


def _inside(cluster: Cluster) -> _Inside:
    sizes = {vertex.key: (_text_width(vertex.label) + 16, _LINE + 8) for vertex in cluster.vertices}
    return _Inside(cluster, layered(sizes, cluster.edges, gap_x=16, gap_y=24), sizes)


def _in_order(picture: Picture) -> list[tuple[str, str]]:
    """Tensors and kernels so that each comes after what it depends on."""
    stored = {transfer.tensor for transfer in picture.transfers if transfer.is_store}
    order = [("tensor", name) for name in picture.tensors if name not in stored]
    for cluster in picture.clusters:
        order.append(("kernel", cluster.name))
        order += [("tensor", t.tensor) for t in picture.transfers if t.is_store and t.cluster == cluster.name]
    return order


def _kernels(insides: dict[str, _Inside], layout: Layout[tuple[str, str]]) -> Iterator[str]:
    for name, inside in insides.items():
        corner = layout.corners["kernel", name]
        width, height = inside.size
        yield f'<g class="kernel">{_rect(corner.x, corner.y, width, height, 8)}'
        yield _text(corner.x + _PADDING, corner.y + 18, f"kernel {name}", "name")
        yield _text(corner.x + _PADDING, corner.y + 34, inside.cluster.caption, "caption")
        origin = _origin(inside, corner)
        for source, target in dict.fromkeys(inside.cluster.edges):
            ends = (_bottom(inside, source, origin), _top(inside, target, origin))
            bends = [Point(origin.x + p.x, origin.y + p.y) for p in inside.layout.bends[source, target]]
            yield f'<path class="local" d="{_curve([ends[0], *bends, ends[1]])}"/>'
        for vertex in inside.cluster.vertices:
            yield _vertex(vertex, inside, origin)
        yield "</g>"


def _vertex(vertex: Vertex, inside: _Inside, origin: Point) -> str:
    corner = inside.layout.corners[vertex.key]
    width, height = inside.sizes[vertex.key]
    x, y = origin.x + corner.x, origin.y + corner.y
    title = f"<title>{escape(vertex.note)}</title>" if vertex.note else ""
    box = _rect(x, y, width, height, 4)
    label = _text(x + width / 2, y + height / 2 + 4, vertex.label, "label")
    return f'<g class="vertex {vertex.kind.value}">{title}{box}{label}</g>'


def _transfers(
    picture: Picture,
    insides: dict[str, _Inside],
    sizes: dict[tuple[str, str], tuple[float, float]],
    layout: Layout[tuple[str, str]],
) -> Iterator[str]:
    for transfer in picture.transfers:
        inside = insides[transfer.cluster]
        tensor, kernel = ("tensor", transfer.tensor), ("kernel", transfer.cluster)
        origin = _origin(inside, layout.corners[kernel])
        corner = layout.corners[tensor]
        width, height = sizes[tensor]
        if transfer.is_store:
            ends = (_bottom(inside, transfer.vertex, origin), Point(corner.x + width / 2, corner.y))
            bends = layout.bends[kernel, tensor]
        else:
            ends = (Point(corner.x + width / 2, corner.y + height), _top(inside, transfer.vertex, origin))
            bends = layout.bends[tensor, kernel]
        role = picture.tensors[transfer.tensor].role
        verb = "stores to" if transfer.is_store else "loads from"
        amount = byte_count(transfer.amount)
        title = f"kernel {transfer.cluster} {verb} {transfer.tensor}: {amount}"
        points = [ends[0], *bends, ends[1]]
        # Ten times the bytes are about twice the width.
        thickness = max(1.0, 0.35 * log2(1 + transfer.amount / 2**14))
        path = f'<path d="{_curve(points)}" style="stroke-width:{thickness:.1f}" marker-end="url(#arrow)"/>'
        place = _label_place(points)
        label = _text(place.x + 6 + thickness / 2, place.y, amount, "amount")
        yield f'<g class="transfer {role.value}"><title>{escape(title)}</title>{path}{label}</g>'


def _label_place(points: Sequence[Point]) -> Point:
    """Near the tensor's end of loads and stores, where edges of different tensors are apart."""
    first, second = points[0], points[1]
    return Point((first.x + second.x) / 2, (first.y + second.y) / 2)


def _tensors(
    picture: Picture, sizes: dict[tuple[str, str], tuple[float, float]], layout: Layout[tuple[str, str]]
) -> Iterator[str]:
    for name, box in picture.tensors.items():
        corner = layout.corners["tensor", name]
        width, height = sizes["tensor", name]
        kind = "buffer in global memory" if box.role is Role.BUFFER else box.role.value
        rect = _rect(corner.x, corner.y, width, height, 20)
        texts = _text(corner.x + width / 2, corner.y + 17, name, "name middle")
        texts += _text(corner.x + width / 2, corner.y + 32, box.caption, "caption middle")
        title = escape(f"{kind} {name}: {box.caption}")
        yield f'<g class="tensor {box.role.value}"><title>{title}</title>{rect}{texts}</g>'


def _origin(inside: _Inside, corner: Point) -> Point:
    """Where the vertices of a cluster begin."""
    spare = inside.size[0] - 2 * _PADDING - inside.layout.width
    return Point(corner.x + _PADDING + spare / 2, corner.y + _PADDING + _CAPTION)


def _top(inside: _Inside, key: str, origin: Point) -> Point:
    corner = inside.layout.corners[key]
    return Point(origin.x + corner.x + inside.sizes[key][0] / 2, origin.y + corner.y)


def _bottom(inside: _Inside, key: str, origin: Point) -> Point:
    top = _top(inside, key, origin)
    return Point(top.x, top.y + inside.sizes[key][1])


def _curve(points: Sequence[Point]) -> str:
    """A path through the points that leaves and enters each of them vertically."""
    first = points[0]
    parts = [f"M{first.x:.1f} {first.y:.1f}"]
    for before, after in pairwise(points):
        middle = (before.y + after.y) / 2
        parts.append(f"C{before.x:.1f} {middle:.1f} {after.x:.1f} {middle:.1f} {after.x:.1f} {after.y:.1f}")
    return " ".join(parts)


def _rect(x: float, y: float, width: float, height: float, radius: int) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(text)}</text>'
