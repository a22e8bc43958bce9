"""`take` and `gather`: copies of single elements of row-major arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from kernels.ir.graph import Node
from kernels.ir.taking import Axis, axes_of, joined
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, result

from .bodies import body
from .context import GpuContext
from .layout import plain, single
from .maps import START, counting, generated

_GATHER = Kernel(
    "gather",
    body("gather"),
    (Buffer("src", 1), Buffer("indices", 1, "f32"), result("dst", 1)),
    ("axis", "inner", "indices_count", "count"),
)


def lower_take(context: GpuContext, node: Node) -> None:
    """Along axes that lie in even steps by their strides, along others by a table."""
    a, shape = node.attributes, context.graph.shapes[node.output]
    base, axes = axes_of(shape, a["strides"], context.graph.constants[node.inputs[1]])
    lanes: Literal[1, 4] = 4 if _in_fours(base, axes) else 1
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
        nothing = "SPLAT(value)" if lanes == 4 else "value"
        value = f"empty ? {nothing} : LOAD_src(empty ? 0 : {place})"
    written = f"{START}{counting([axis.extent for axis in axes])}\n    {''.join(text)}STORE_dst(i, {value});"
    buffers = (Buffer("src", lanes), Buffer("table", 1, "f32"), result("dst", lanes))
    kernel = generated("take", written, buffers, ints, ("value",))
    source, target = plain(context, node.inputs[0]), context.new_plain(node.output)
    context.dispatch(
        kernel, node.name, {"src": source, "table": _table(context, node, joined(tables)), "dst": target}, ints,
        (ints["count"], 1, 1), floats={"value": float(a["value"])}, traffic=context.traffic(node),
    )  # fmt: skip


def _in_fours(base: int, axes: Sequence[Axis]) -> bool:
    """Whether whole vectors of four elements are copied to whole vectors."""
    *outer, last = axes
    numbers = (base, last.extent, *(axis.stride for axis in outer))
    return last.stride == 1 and last.table is None and not any(number % 4 for number in numbers)


def _table(context: GpuContext, node: Node, content: np.ndarray) -> str:
    """In fp32 in every plan: it holds places."""
    described = Tensor(shape=content.shape, dtype="f32")
    return context.draft.add_weight(f"{node.name}:table", content.astype("<f4").tobytes(), described)


def lower_gather(context: GpuContext, node: Node) -> None:
    """By whole numbers that are computed."""
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    indices = prod(context.graph.shapes[node.inputs[1]])
    count, inner = prod(context.graph.shapes[node.output]), prod(shape[axis + 1 :])
    buffers = {
        "src": plain(context, node.inputs[0]), "indices": single(context, node.inputs[1]),
        "dst": context.new_plain(node.output),
    }  # fmt: skip
    ints = {"axis": shape[axis], "inner": inner, "indices_count": indices, "count": count}
    context.dispatch(_GATHER, node.name, buffers, ints, (count, 1, 1), traffic=context.traffic(node))
