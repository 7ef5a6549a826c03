"""What is drawn of a plan: tensors in global memory, and kernels as clusters of the operators that they compute.

A `Picture` says what is connected to what and how many bytes move; where things stand and how they look is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from bbrewrite.core.programs import Role


class VertexKind(Enum):
    """What a vertex inside a kernel does."""

    LOAD = "load"
    OPERATOR = "operator"
    LOOP = "loop"  # a reduction: the result of a serial loop
    STORE = "store"


@dataclass(frozen=True)
class Vertex:
    """Something computed inside a kernel. `note` says more than `label`, for whoever points at it."""

    key: str
    kind: VertexKind
    label: str
    note: str = ""


@dataclass(frozen=True)
class Cluster:
    """A kernel: its vertices, operands before users, and the pairs of keys between which blocks pass locally."""

    name: str
    caption: str
    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TensorBox:
    """A tensor in global memory. `caption` is its shape and size."""

    name: str
    role: Role
    caption: str


@dataclass(frozen=True)
class Transfer:
    """Blocks that a kernel loads from a tensor or stores to it: all its `amount` bytes, repetitions included.

    `vertex` is the vertex of the cluster that loads or stores.
    """

    tensor: str
    cluster: str
    vertex: str
    amount: int
    is_store: bool


@dataclass(frozen=True)
class Picture:
    """A plan as a graph. Clusters are in the order in which the kernels run."""

    tensors: Mapping[str, TensorBox]
    clusters: tuple[Cluster, ...]
    transfers: tuple[Transfer, ...]
