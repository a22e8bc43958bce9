"""`transpose`: vectors of four channels change places between rows and stacks; else it is of row-major arrays."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.catalog.transposition import ALGORITHMS, TRANSPOSITIONS, transposition_of
from kernels.catalog.transposition.tiled import Square
from kernels.catalog.work_group import group_conflict
from kernels.ir.dims import TO_IMAGE, TO_ROWS
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import plain
from kernels.lower.gpu.values import View
from kernels.source.kernel import Buffer, Kernel, LocalArray, result

_READ_STACKS = frozenset(
    {"conv", "max_pool", "average_pool", "global_average_pool", "affine", "instance_norm", "resize"}
)


_SQUARE = Square(16, 8)
"""A square of vectors."""
_TURN = Kernel(
    "turn_vectors",
    body("turn_vectors"),
    (Buffer("src"), result("dst")),
    ("rows", "columns", "src_plane", "src_start", "dst_plane", "dst_start"),
    tile=Square,
    locals=(LocalArray("square", "LOCAL_SQUARE"),),
)


def lower_transpose(context: GpuContext, node: Node) -> None:
    """Any permutation of up to four axes, row-major to row-major; vectors of channels where they alone move."""
    if context.is_whole(node.output):
        sizes = transposition_of(context.graph, node)
        (call,) = ALGORITHMS["naive"].lower(sizes, {}, context.options, context.limits)
    elif _turned(context, node):
        return
    else:
        _, (call,) = context.calls(TRANSPOSITIONS, node)
    buffers = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
    context.dispatch(
        call.kernel, node.name, buffers, call.ints, call.work_items, tile=call.tile, group=call.group,
        traffic=context.traffic(node),
    )  # fmt: skip


def _turned(context: GpuContext, node: Node) -> bool:
    shape, perm = context.graph.shapes[node.inputs[0]], tuple(node.attributes["perm"])
    limits, local_bytes = context.limits.within(_TURN.name), _TURN.local_bytes(_SQUARE.constants)
    if limits.cpu_device or group_conflict(limits, group=_SQUARE.group, local_bytes=local_bytes) is not None:
        return False
    if perm == TO_ROWS and shape[1] % 4 == 0 and _is_in_stacks(context, node.inputs[0]):
        _to_rows(context, node)
    elif perm == TO_IMAGE and shape[3] % 4 == 0 and _is_read_in_stacks(context, node.output):
        _to_stacks(context, node)
    else:
        return False
    return True


def _is_in_stacks(context: GpuContext, tensor: str) -> bool:
    value = context.values.get(tensor)
    return value is not None and value.packed is not None and value.plain is None and value.single is None


def _is_read_in_stacks(context: GpuContext, tensor: str) -> bool:
    if tensor in context.graph.outputs:
        return False
    return all(node.op in _READ_STACKS for node in context.graph.consumers(tensor))


def _to_rows(context: GpuContext, node: Node) -> None:
    dims, source = context.dims(node.inputs[0]), context.values[node.inputs[0]].packed
    assert source is not None
    planes = {"src_plane": source.stacks * dims.hw, "src_start": source.stack0 * dims.hw}
    ints = {"rows": dims.stacks, "columns": dims.hw, **planes, "dst_plane": dims.stacks * dims.hw, "dst_start": 0}
    _dispatch(context, node, {"src": source, "dst": context.new_plain(node.output)}, ints, dims.n)


def _to_stacks(context: GpuContext, node: Node) -> None:
    dims, source, target = context.dims(node.output), plain(context, node.inputs[0]), context.new_packed(node.output)
    planes = {"dst_plane": target.stacks * dims.hw, "dst_start": target.stack0 * dims.hw}
    ints = {"rows": dims.hw, "columns": dims.stacks, "src_plane": dims.stacks * dims.hw, "src_start": 0, **planes}
    _dispatch(context, node, {"src": source, "dst": target}, ints, dims.n)


def _dispatch(
    context: GpuContext, node: Node, buffers: Mapping[str, str | View], ints: dict[str, int], planes: int
) -> None:
    across, down = -(-ints["columns"] // _SQUARE.edge), -(-ints["rows"] // _SQUARE.edge)
    items = across * _SQUARE.group, down, planes
    context.dispatch(
        _TURN, node.name, buffers, ints, items, tile=_SQUARE, group=_SQUARE.group, traffic=context.traffic(node)
    )
