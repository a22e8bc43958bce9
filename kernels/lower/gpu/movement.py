"""Operations that move data: concat, slice, reshape."""

from __future__ import annotations

from math import prod

from kernels.ir.dims import dims_of, has_channels
from kernels.ir.graph import Node
from kernels.source.kernel import Buffer, Kernel, result, view

from .bodies import body
from .context import GpuContext
from .layout import exists_in_single, packed, plain, single
from .places.flatten import is_read_in_stacks
from .values import Value, View

_PAIR = (Buffer("src", 1), result("dst", 1))
_COPY_CHANNELS = Kernel(
    "copy_channels",
    body("copy_channels"),
    _PAIR,
    (*view("src"), *view("dst"), "channels", "written", "dst_channel0", "hw"),
)
_COPY_BLOCK = Kernel("copy_block", body("copy_block"), _PAIR, ("count", "dst_stride", "dst_offset"))
_TAKE_BLOCK = Kernel("take_block", body("take_block"), _PAIR, ("count", "src_stride", "src_offset"))


def lower_concat(context: GpuContext, node: Node) -> None:
    """Parts that were written in place cost nothing; the others are copied."""
    shape, axis = context.graph.shapes[node.output], node.attributes["axis"]
    if axis == 1 and has_channels(shape) and not context.is_whole(node.output):
        _concat_channels(context, node)
    else:
        _concat_plain(context, node, axis)


def _concat_channels(context: GpuContext, node: Node) -> None:
    target, dims = context.new_packed(node.output), context.dims(node.output)
    offset = 0
    for index, name in enumerate(node.inputs):
        part = context.dims(name)
        view = packed(context, name)
        in_place = view.buffer == target.buffer and view.stack0 * 4 == target.stack0 * 4 + offset
        if not in_place or offset % 4:
            last = index == len(node.inputs) - 1
            written = part.c + (-(offset + part.c) % 4 if last else 0)
            context.dispatch(
                _COPY_CHANNELS, node.name, {"src": view.buffer, "dst": target.buffer},
                {
                    **view.ints("src"), **target.ints("dst"), "channels": part.c, "written": written,
                    "dst_channel0": offset, "hw": dims.hw,
                },
                (dims.hw, written, dims.n), traffic=2 * prod(context.graph.shapes[name]) * (2 if context.half else 4),
            )  # fmt: skip
        offset += part.c


def _concat_plain(context: GpuContext, node: Node, axis: int) -> None:
    shape = context.graph.shapes[node.output]
    sources = [plain(context, name) for name in node.inputs]
    target = context.new_plain(node.output)
    stride, offset = prod(shape[axis:]), 0
    for name, source in zip(node.inputs, sources, strict=True):
        count = prod(context.graph.shapes[name][axis:])
        ints = {"count": count, "dst_stride": stride, "dst_offset": offset}
        items = (count, prod(shape[:axis]), 1)
        traffic = 2 * prod(context.graph.shapes[name]) * (2 if context.half else 4)
        context.dispatch_copy(_COPY_BLOCK, node.name, {"src": source, "dst": target}, ints, items, traffic)
        offset += count


def lower_slice(context: GpuContext, node: Node) -> None:
    """Whole stacks of channels are a view of the source; anything else is copied row by row."""
    shape, a = context.graph.shapes[node.inputs[0]], node.attributes
    axis, start, stop = a["axis"], a["start"], a["stop"]
    in_stacks = axis == 1 and has_channels(shape) and not context.is_whole(node.output)
    if in_stacks and start % 4 == 0 and (stop % 4 == 0 or stop == shape[1]):
        view = packed(context, node.inputs[0])
        context.values[node.output] = Value(packed=View(view.buffer, view.stacks, view.stack0 + start // 4))
        return
    inner = prod(shape[axis + 1 :])
    count = (stop - start) * inner
    buffers = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
    ints = {"count": count, "src_stride": shape[axis] * inner, "src_offset": start * inner}
    traffic = 2 * prod(context.graph.shapes[node.output]) * (2 if context.half else 4)
    context.dispatch_copy(_TAKE_BLOCK, node.name, buffers, ints, (count, prod(shape[:axis]), 1), traffic)


def lower_reshape(context: GpuContext, node: Node) -> None:
    """No data moves: the result is another view of the row-major bytes, or of the stacks where these agree."""
    if is_read_in_stacks(context.graph, node):
        return
    source, shape = node.inputs[0], context.graph.shapes[node.output]
    old = context.graph.shapes[source]
    if context.is_whole(source):
        buffer = plain(context, source)
        context.values[node.output] = Value(plain=buffer, single=buffer)
    elif source in context.values and context.values[source].dealt is not None and old[-1:] == shape[-1:]:
        context.values[node.output] = context.values[source]
    elif source in context.kept_single or exists_in_single(context, source):
        context.values[node.output] = Value(single=single(context, source))
    elif dims_of(old) == dims_of(shape) and has_channels(old) and has_channels(shape):
        context.values[node.output] = context.values[source]
    elif context.half:
        context.values[node.output] = Value(plain=plain(context, source))
    else:
        context.values[node.output] = Value(single=single(context, source))
