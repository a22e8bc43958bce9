"""A dense layer behind a flatten reads the stacks of channels as they lie; its weight's rows are reordered offline."""

from __future__ import annotations

from kernels.ir.dims import dims_of
from kernels.ir.graph import Array, Graph, Node


def is_read_in_stacks(graph: Graph, reshape: Node) -> bool:
    """Return whether only dense layers read a flattened image, so that nobody needs it row-major.

    Channels must fill their stacks: a lane beyond the last channel may hold NaN, which no weight of zero takes out.
    """
    source = reshape.inputs[0]
    shape, flat = graph.shapes[source], graph.shapes[reshape.output]
    if len(shape) != 4 or len(flat) != 2 or flat[0] != shape[0] or shape[1] % 4 or dims_of(shape).hw == 1:
        return False
    readers = graph.consumers(reshape.output)
    free = reshape.output not in graph.outputs and source not in graph.inputs and source not in graph.constants
    return free and bool(readers) and all(_is_only_data(reader, reshape.output) for reader in readers)


def _is_only_data(reader: Node, tensor: str) -> bool:
    return reader.op == "dense" and reader.inputs[0] == tensor and tensor not in reader.inputs[1:]


def flattened_from(graph: Graph, dense: Node) -> str | None:
    """The image whose stacks a dense layer reads; None where it reads rows of numbers."""
    writer = next((node for node in graph.nodes if dense.inputs[0] in node.outputs), None)
    if writer is None or writer.op != "reshape" or not is_read_in_stacks(graph, writer):
        return None
    return writer.inputs[0]


def rows_by_stack(weight: Array, pixels: int) -> Array:
    """Rows (C * pixels, M), channel by channel, in the order of stacks: [stack][pixel][four channels]."""
    columns = weight.shape[1]
    return weight.reshape(-1, 4, pixels, columns).transpose(0, 2, 1, 3).reshape(-1, columns)
