"""Products of one row that do what stands around them: they normalise it, and multiply it by a second matrix, as gates
and what they gate have two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernels.catalog.family import Call
from kernels.catalog.packing import padded
from kernels.catalog.product import PRODUCTS
from kernels.catalog.product.one_row import RowTile, doubled, normalising
from kernels.ir.graph import Node
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.convolution import constant

from .folding import norm_before, takes_one_row
from .packed_rows import packed_weights, panels


@dataclass(frozen=True)
class Beside:
    """A product's dispatch with what it computes beside."""

    call: Call
    buffers: Mapping[str, str] = field(default_factory=dict)
    epsilon: tuple[float, ...] = ()
    """The norm's, where it normalises."""
    computes_other: bool = False
    """The result of a second matrix is `other` where it ends."""


def beside_row(context: GpuContext, node: Node, call: Call) -> Beside:
    """Return the dispatch of a dense layer with the norm and the matrix that it takes along."""
    if not isinstance(call.tile, RowTile):
        return Beside(call)
    norm, buffers, epsilon = norm_before(context, node), dict[str, str](), tuple[float, ...]()
    if norm is not None:
        call = replace(call, kernel=normalising(call.kernel), switches={**call.switches, "NORMED": 1})
        buffers["norm"] = context.weight(norm.inputs[1], constant(context, norm, 1))
        epsilon = (float(norm.attributes["epsilon"]),)
    gate = context.writers.get(node.inputs[3]) if len(node.inputs) > 3 else None
    if gate is None or not is_taken_along(context, gate):
        return Beside(call, buffers, epsilon)
    assert isinstance(call.tile, RowTile)
    tile, (items, rows, images) = call.tile.twin, call.work_items
    work_items = (items // call.group * tile.group, rows, images)
    call = replace(call, kernel=doubled(call.kernel), tile=tile, group=tile.group, work_items=work_items)
    matrix = packed_weights(context, gate)
    if matrix is None:
        buffers["twin"] = context.weight(gate.inputs[1], padded(constant(context, gate, 1), 1, 4))
    else:
        buffers["twin"] = panels(context, gate, matrix)
    return Beside(call, buffers, epsilon, computes_other=True)


def is_taken_along(context: GpuContext, node: Node) -> bool:
    """Return whether the only layer that reads a dense layer's result, at its end, has the same row and computes it."""
    graph = context.graph
    readers = graph.consumers(node.output)
    alone = node.op == "dense" and not node.attributes.keys() - {"free_rows"} and not any(node.inputs[2:])
    if not alone or len(readers) != 1 or node.output in graph.outputs:
        return False
    (reader,) = readers
    ends = reader.op == "dense" and "ending" in reader.attributes and reader.inputs[3:] == (node.output,)
    if not ends or node.output in reader.inputs[:3] or _source(context, reader) != _source(context, node):
        return False
    sizes = [PRODUCTS.sizes(graph, each) for each in (node, reader)]
    return sizes[0] == sizes[1] and all(takes_one_row(context, each) for each in (node, reader))


def _source(context: GpuContext, node: Node) -> str:
    """Return the tensor that reshapes give the shape of a layer's row."""
    name = node.inputs[0]
    while (writer := context.writers.get(name)) is not None and writer.op == "reshape":
        name = writer.inputs[0]
    return name
