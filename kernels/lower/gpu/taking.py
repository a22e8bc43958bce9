"""`take` and `gather`: copies of single elements of row-major arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from kernels.ir.graph import Node
from kernels.ir.taking import NOTHING, Axis, axes_of, joined, taken_channels
from kernels.ir.weight_parts import Range, row_ranges
from kernels.lower.states import copy_for, writes_in_place
from kernels.plan.model import ITEM_BYTES, Tensor
from kernels.source.kernel import Buffer, Kernel, Storage, changed, result, view
from kernels.source.tile import UNTILED, Tile

from .bodies import body
from .context import GpuContext
from .expression_text import whole_number
from .layout import exists_in_single, packed, plain, single
from .maps import START, counting, generated

_GATHER = Kernel(
    "gather",
    body("gather"),
    (Buffer("src", 1), Buffer("indices", 1, "f32"), result("dst", 1)),
    ("axis", "inner", "indices_count", "count"),
)
_PUT_ROWS = Kernel(
    "put_rows",
    body("put_rows"),
    (Buffer("src", 1), Buffer("position", 1, "f32"), changed("dst", 1)),
    ("count", "stride", "inner", "most"),
)
_TAKE_CHANNELS = Kernel(
    "take_channels",
    body("take_channels"),
    (Buffer("src", 1), Buffer("table", 1, "f32"), result("dst")),
    (*view("src"), *view("dst"), "hw"),
)


def lower_take(context: GpuContext, node: Node) -> None:
    """Take along axes that lie in even steps by their strides, along others by a table."""
    channels = _channels(context, node)
    if channels is not None:
        _take_channels(context, node, channels)
        return
    a, shape = node.attributes, context.graph.shapes[node.output]
    base, axes = axes_of(shape, a["strides"], context.graph.constants[node.inputs[1]])
    kind = context.held(node.output)
    lanes: Literal[1, 4] = 4 if _in_fours(base, axes) and kind == "f32" else 1
    if lanes == 4:
        *outer, last = axes
        fours = (Axis(each.extent, each.stride // 4, each.table) for each in outer)
        base, axes = base // 4, [*fours, Axis(last.extent // 4, 1)]
    ints = {"count": prod(shape) // lanes, "base": base}
    ints |= {f"n{k}": axis.extent for k, axis in enumerate(axes) if k}
    ints |= {f"s{k}": axis.stride for k, axis in enumerate(axes)}
    text, place, empty, tables, start = [], "base", [], [np.zeros(1, np.float32)], 1
    for k, axis in enumerate(axes):
        if axis.table is None:
            place += f" + x{k} * s{k}"
            continue
        tables.append(np.asarray(axis.table, np.float32))
        text.append(f"const int p{k} = TO_INT(LOAD_table(t{k} + x{k}));\n    ")
        ints[f"t{k}"], start = start, start + axis.extent
        place += f" + p{k} * s{k}"
        empty.append(f"p{k} < 0")
    value = f"LOAD_src({place})"
    if empty:
        text.append(f"const bool empty = {' || '.join(empty)};\n    ")
        nothing = "SPLAT(value)" if lanes == 4 else "value" if kind == "f32" else whole_number(a["value"], kind)
        value = f"empty ? {nothing} : LOAD_src(empty ? 0 : {place})"
    written = f"{START}{counting([axis.extent for axis in axes])}\n    {''.join(text)}STORE_dst(i, {value});"
    source, storage = _source(context, node.inputs[0])
    buffers = (
        Buffer("src", lanes, storage),
        Buffer("table", 1, "f32"),
        result("dst", lanes, context.storage(node.output)),
    )
    floats = {"value": float(a["value"])} if kind == "f32" else {}
    kernel, target = generated("take", written, buffers, ints, tuple(floats)), context.new_plain(node.output)
    context.dispatch(
        kernel, node.name, {"src": source, "table": _table(context, node, joined(tables)), "dst": target}, ints,
        (ints["count"], 1, 1), floats=floats, traffic=context.traffic(node),
    )  # fmt: skip


def _channels(context: GpuContext, node: Node) -> list[float] | None:
    """Return the channels that are taken of a tensor in stacks, where nothing else is chosen."""
    source = context.values.get(node.inputs[0])
    return taken_channels(context.graph, node) if source is not None and source.packed is not None else None


def _take_channels(context: GpuContext, node: Node, channels: Sequence[float]) -> None:
    source, target, dims = packed(context, node.inputs[0]), context.new_packed(node.output), context.dims(node.output)
    context.dispatch(
        _TAKE_CHANNELS, node.name, {"src": source, "table": channels_table(context, node, channels), "dst": target},
        {**source.ints("src"), **target.ints("dst"), "hw": dims.hw}, (dims.hw, dims.stacks, dims.n),
        traffic=2 * dims.elements * (2 if context.half else 4),
    )  # fmt: skip


def channels_table(context: GpuContext, node: Node, channels: Sequence[float]) -> str:
    """The channels of each stack."""
    table = np.pad(np.asarray(channels, np.float32), (0, -len(channels) % 4), constant_values=NOTHING)
    return _table(context, node, table)


def _source(context: GpuContext, tensor: str) -> tuple[str, Storage]:
    """Row-major: in single where it exists so alone, and halves would be read here only."""
    if exists_in_single(context, tensor) and len(context.graph.consumers(tensor)) == 1:
        return single(context, tensor), "f32"
    return plain(context, tensor), context.storage(tensor)


def _in_fours(base: int, axes: Sequence[Axis]) -> bool:
    """Return whether whole vectors of four elements are copied to whole vectors."""
    *outer, last = axes
    numbers = (base, last.extent, *(axis.stride for axis in outer))
    return last.stride == 1 and last.table is None and not any(number % 4 for number in numbers)


def _table(context: GpuContext, node: Node, content: np.ndarray) -> str:
    """Add a table, in fp32 in every plan: it holds places."""
    described = Tensor(shape=content.shape, dtype="f32")
    return context.draft.add_weight(f"{node.name}:table", content.astype("<f4").tobytes(), described)


def lower_gather(context: GpuContext, node: Node) -> None:
    """Gather by whole numbers that are computed; of a constant that no buffer holds in parts."""
    name, axis, graph, largest = node.inputs[0], node.attributes["axis"], context.graph, context.limits.max_buffer_bytes
    held = context.held(name)
    ranges: tuple[Range, ...] = ((0, graph.shapes[name][axis]),)
    if name in graph.constants and not axis:
        item = ITEM_BYTES[context.dtype if held == "f32" else held]
        ranges = row_ranges(graph.constants[name], largest // item)
    gather_rows(context, node, _GATHER, {rows: plain(context, _rows_of(context, name, axis, rows)) for rows in ranges})


def _rows_of(context: GpuContext, table: str, axis: int, rows: Range) -> str:
    """Return the name of a constant of some rows of another, or of the table itself where these are all."""
    graph, (first, end) = context.graph, rows
    if end - first == graph.shapes[table][axis]:
        return table
    name = f"{table}.rows.{first}:{end}"
    graph.constants[name] = graph.constants[table][first:end]
    graph.shapes[name], graph.types[name] = graph.constants[name].shape, graph.types[table]
    return name


def gather_rows(
    context: GpuContext, node: Node, kernel: Kernel, parts: Mapping[Range, str], tile: Tile = UNTILED
) -> None:
    """Append a step for each part of a gather's table, which a buffer of its own holds."""
    axis, count = node.attributes["axis"], len(parts)
    table, places, target = (context.graph.shapes[name] for name in (*node.inputs[:2], node.output))
    ints = {"axis": table[axis], "inner": prod(table[axis + 1 :]), "indices_count": prod(places), "count": prod(target)}
    buffers = {"indices": single(context, node.inputs[1]), "dst": context.new_plain(node.output)}
    switches = {"WHOLE": 1} if context.is_whole(node.inputs[1]) else {}
    if count > 1:
        kernel = replace(kernel, ints=(*kernel.ints, "first", "rows"))
        context.draft.in_parts[node.name] = (
            f"{count} parts by rows: its table exceeds the largest buffer of {context.limits.max_buffer_bytes}"
        )
    for (first, end), source in parts.items():
        own, mode = ({"first": first, "rows": end - first}, {"ROWS": 2 if first else 1}) if count > 1 else ({}, {})
        *read, written = kernel.buffers
        context.dispatch(
            replace(kernel, buffers=(*read, changed(written.name, 1))) if first else kernel, node.name,
            {**buffers, "src": source}, {**ints, **own}, (ints["count"], 1, 1), tile=tile,
            switches={**switches, **mode}, traffic=context.traffic(node) // count,
        )  # fmt: skip


def grown(context: GpuContext, node: Node) -> str:
    """Return the buffer into which a node puts rows: a state that nothing else reads, or a copy."""
    source = plain(context, node.inputs[0])
    if writes_in_place(context.graph, node):
        context.values[node.output] = context.values[node.inputs[0]]
    else:
        copy_for(context.draft, node, (source, 0), context.new_data(node.output))
    return plain(context, node.output)


def lower_put_rows(context: GpuContext, node: Node) -> None:
    target = grown(context, node)
    shape, axis = context.graph.shapes[node.output], node.attributes["axis"]
    inner, added = prod(shape[axis + 1 :]), context.graph.shapes[node.inputs[1]][axis]
    count = added * inner
    ints = {"count": count, "stride": shape[axis] * inner, "inner": inner, "most": (shape[axis] - added) * inner}
    buffers = {"src": plain(context, node.inputs[1]), "position": single(context, node.inputs[2]), "dst": target}
    items = (count, prod(shape[:axis]), 1)
    context.dispatch_copy(_PUT_ROWS, node.name, buffers, ints, items, context.traffic(node), kept=("position",))
