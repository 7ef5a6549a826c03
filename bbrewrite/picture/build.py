"""From a plan to the graph that is drawn: one cluster a kernel, one vertex an operator, with bytes on what moves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from math import prod

from bbrewrite.core.indices import IndexTable
from bbrewrite.core.operators import OperatorTable
from bbrewrite.core.printing import print_tensor, print_term
from bbrewrite.core.programs import Definition, Tensor
from bbrewrite.core.terms import Read, Reduce, Term
from bbrewrite.picture.graph import Cluster, Picture, TensorBox, Transfer, Vertex, VertexKind
from bbrewrite.picture.labels import Labels, seen_through
from bbrewrite.plan.costs.traffic import kernel_traffic
from bbrewrite.plan.kernel import Kernel
from bbrewrite.plan.plans import Plan
from bbrewrite.units import byte_count


def picture_of(plan: Plan, extents: Mapping[str, int], threads: int, table: OperatorTable) -> Picture:
    """The plan as a graph. `extents` are those of root indices."""
    program = plan.kernels
    indices = program.indices.with_extents(extents)
    tensors = (*program.inputs, *program.buffers, *program.outputs)
    definitions = {definition.tensor.name: definition for definition in plan.fused.definitions}
    clusters: list[Cluster] = []
    transfers: list[Transfer] = []
    for kernel in program.kernels:
        made = [definitions[tensor.name] for tensor in kernel.writes]
        builder = _ClusterBuilder(kernel, made, table)
        clusters.append(builder.cluster)
        traffic = kernel_traffic(kernel, {tensor.name: tensor for tensor in tensors}, extents, table, threads)
        transfers += [
            Transfer(tensor, kernel.name, vertex, traffic.loaded.get(tensor, 0), False)
            for tensor, vertex in builder.loads.items()
        ]
        transfers += [
            Transfer(tensor, kernel.name, vertex, traffic.stored.get(tensor, 0), True)
            for tensor, vertex in builder.stores.items()
        ]
    boxes = {tensor.name: TensorBox(tensor.name, tensor.role, _caption(tensor, indices)) for tensor in tensors}
    return Picture(boxes, tuple(clusters), tuple(transfers))


class _ClusterBuilder:
    """The vertices and edges of one kernel."""

    def __init__(self, kernel: Kernel, made: list[Definition], table: OperatorTable) -> None:
        self._kernel = kernel
        self._table = table
        self._labels = Labels([definition.body for definition in made], table)
        self._vertices: dict[str, Vertex] = {}
        self._edges: list[tuple[str, str]] = []
        self._numbers = count()
        self._keys: dict[Term, str] = {}
        self.loads: dict[str, str] = {}
        self.stores: dict[str, str] = {}
        for definition in made:
            key = self._key()
            source = self._visit(definition.body)
            self._add(Vertex(key, VertexKind.STORE, f"store {print_tensor(definition.tensor)}"))
            self._edges.append((source, key))
            self.stores[definition.tensor.name] = key
        grid = f"parallel over {', '.join(kernel.grid)}" if kernel.grid else "one block"
        caption = "all processors together" if kernel.is_split else grid
        self.cluster = Cluster(kernel.name, caption, tuple(self._vertices.values()), tuple(self._edges))

    def _key(self) -> str:
        return f"{self._kernel.name}.{next(self._numbers)}"

    def _add(self, vertex: Vertex) -> None:
        self._vertices[vertex.key] = vertex

    def _visit(self, term: Term) -> str:
        term = seen_through(term)
        if term in self._keys:
            return self._keys[term]
        if isinstance(term, Read):
            key = self._load(term)
        else:
            label, operands = self._labels.of(term)
            sources = [self._visit(operand) for operand in operands]
            key = self._key()
            kind = VertexKind.LOOP if isinstance(term, Reduce) else VertexKind.OPERATOR
            self._add(Vertex(key, kind, label, self._note(term)))
            self._edges += [(source, key) for source in sources]
        self._keys[term] = key
        return key

    def _load(self, term: Read) -> str:
        """One vertex for each tensor, however it is addressed."""
        key = self.loads.get(term.tensor)
        if key is None:
            key = self.loads[term.tensor] = self._key()
            self._add(Vertex(key, VertexKind.LOAD, f"load {print_term(term, self._table)}"))
        return key

    def _note(self, term: Term) -> str:
        where = f"for every block of {', '.join(sorted(term.free))}" if term.free else "once"
        return f"{where}: {print_term(term, self._table)}"


def _caption(tensor: Tensor, indices: IndexTable) -> str:
    extents = [indices.extent(index) or 0 for index in tensor.indices]
    shape = " x ".join(map(str, extents)) or "a number"
    return f"{shape}, {byte_count(prod(extents) * tensor.element.size_bytes)}"
