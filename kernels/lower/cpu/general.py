"""The general operations: map, take, gather, reduce, sort, suppress, roi_align."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod

import numpy as np

from kernels.errors import UnsupportedNode
from kernels.ir.activations import as_map
from kernels.ir.expressions import LETTERS, MAX_INSTRUCTIONS, MAX_NUMBERS, Instruction, program_of
from kernels.ir.graph import Node
from kernels.ir.packed import PackedMatrix
from kernels.ir.programs import Held, computed, whole_value
from kernels.ir.shapes import MAX_TAKE_RANK, REDUCTIONS, Shape
from kernels.ir.sorting import GIVES, twin
from kernels.ir.strides import MAX_AXES, along_channels, strided
from kernels.ir.taking import Axis, axes_of, joined
from kernels.lower.states import copy_for, writes_in_place

from .context import CpuContext
from .functions import CODES, WHOLE_CODES, with_whole_functions
from .packing import BLOCK, blocks, pack_image


def lower_map(context: CpuContext, node: Node) -> None:
    """Row-major, or in blocks where its result lies in these."""
    way = _in_blocks(context, node) if context.writes_blocks(node.output) else _in_rows(context, node)
    extents, strides, operands, target = way
    kind, expression = computed(as_map(node), context.graph.types)
    program = program_of(with_whole_functions(expression) if kind == "f32" else expression)
    missing = len(LETTERS) - len(node.inputs)
    ints = {"operands": len(node.inputs), "instructions": len(program.instructions)}
    ints |= _numbered("d", extents, MAX_AXES, 1)
    for name, steps in zip("abce", (*strides, *((),) * missing), strict=True):
        ints |= _numbered(name, steps, MAX_AXES, 0)
    codes = CODES if kind == "f32" else CODES | WHOLE_CODES
    words = [_word(step, codes) for step in program.instructions]
    words += [0] * (MAX_INSTRUCTIONS - len(words))
    ints |= {f"i{index}": word for index, word in enumerate(words)}
    numbers = (*program.numbers, *(0.0,) * (MAX_NUMBERS - len(program.numbers)))
    buffers = dict(zip(LETTERS, (*operands, *(target,) * missing), strict=True))
    buffers, flops = {**buffers, "dst": target}, len(program.instructions) * prod(context.graph.shapes[node.output])
    if kind == "f32":
        floats = {f"f{index}": number for index, number in enumerate(numbers)}
        context.call("map", node, buffers, ints, floats, flops)
        return
    for index, number in enumerate(numbers):
        ints |= dict(zip((f"n{2 * index}", f"n{2 * index + 1}"), _words(number, kind), strict=True))
    context.call("map_whole", node, buffers, {**ints, "wide": int(kind == "i64")}, None, flops)


def _words(number: float, kind: Held) -> list[int]:
    """Return the lower and the upper word of a whole number."""
    words: list[int] = np.array([whole_value(number, kind)], "<i8").view("<i4").tolist()
    return words


Way = tuple[Shape, tuple[Shape, ...], list[str], str]
"""Extents of the result, strides of each operand, their buffers, the result's."""


def _in_rows(context: CpuContext, node: Node) -> Way:
    way = strided(context.graph.shapes[node.output], [context.graph.shapes[name] for name in node.inputs])
    if len(way.extents) > MAX_AXES:
        raise UnsupportedNode(f"{node.name}: operands that broadcast along {len(way.extents)} axes in turns")
    return way.extents, way.strides, [context.read(name) for name in node.inputs], context.write(node.output)


def _in_blocks(context: CpuContext, node: Node) -> Way:
    """(picture, block, pixel, lane); what lies in lanes beyond the last channel has no meaning."""
    n, c, h, w = shape = context.graph.shapes[node.output]
    stacks, pixels = blocks(c), h * w
    strides, operands = [], []
    for name in node.inputs:
        constant = context.graph.constants.get(name)
        kind = along_channels(context.graph.shapes[name], shape, constant=constant is not None)
        own = n if kind.isupper() else 1
        if constant is None:
            operands.append(context.read_blocks(name))
        else:
            lies = {"f": (own, c, h, w), "c": (own, c, 1, 1), "p": (own, 1, h, w)}[kind.lower()]
            full = pack_image(np.broadcast_to(constant, lies))
            operands.append(context.weight(f"{node.name}:{name}", full, "packed"))
        picture, *steps = {
            "f": (stacks * pixels * BLOCK, pixels * BLOCK, BLOCK, 1),
            "c": (stacks * BLOCK, BLOCK, 0, 1),
            "p": (pixels * BLOCK, 0, BLOCK, 0),
        }[kind.lower()]
        strides.append((picture if own > 1 else 0, *steps))
    return (n, stacks, pixels, BLOCK), tuple(strides), operands, context.write_blocks(node.output)


def _word(step: Instruction, codes: Mapping[str, int]) -> int:
    first, second, third = (*step.arguments, 0, 0)[:3]
    return codes[step.function] << 24 | first << 16 | second << 8 | third


def _numbered(name: str, values: Sequence[int], count: int, fill: int) -> dict[str, int]:
    """Values by numbered names, what is missing in front."""
    return {f"{name}{index}": value for index, value in enumerate((*(fill,) * (count - len(values)), *values))}


def lower_take(context: CpuContext, node: Node) -> None:
    a, shape = node.attributes, context.graph.shapes[node.output]
    base, axes = axes_of(shape, a["strides"], context.graph.constants[node.inputs[1]])
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    move(context, node, buffers, axes, base, value=a["value"])


def move(
    context: CpuContext,
    node: Node,
    buffers: Mapping[str, str],
    axes: Sequence[Axis],
    base: int = 0,
    *,
    rows: tuple[int, int] | None = None,
    value: float = 0.0,
) -> None:
    """Copy elements of the source from where the axes say.

    `rows`: where rows of the last axis begin in the result, and how far apart; None: one after the other.
    """
    starts, start = [], 1
    for axis in axes:
        starts.append(-1 if axis.table is None else start)
        start += 0 if axis.table is None else axis.extent
    table = buffers["dst"]
    if start > 1:
        tables = joined([(0.0,), tuple(chain.from_iterable(axis.table or () for axis in axes))])
        table = context.packed(f"{node.name}:table", np.asarray(tables).astype("<i4"))
    begin, step = rows or (0, axes[-1].extent)
    ints = {"base": base, "dst_start": begin, "dst_step": step}
    ints |= _numbered("d", [axis.extent for axis in axes], MAX_TAKE_RANK, 1)
    ints |= _numbered("s", [axis.stride for axis in axes], MAX_TAKE_RANK, 0) | _numbered("t", starts, MAX_TAKE_RANK, -1)
    ints |= dict(zip(("low", "high"), _words(value, context.held(node.output)), strict=True))
    context.call("take", node, {**buffers, "table": table}, ints, {"value": float(value)})


def lower_gather(context: CpuContext, node: Node) -> None:
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    table, indices = context.graph.constants.get(node.inputs[0]), context.read(node.inputs[1])
    if isinstance(table, PackedMatrix) and axis == 0 and not table.is_turned:
        src, layout = context.panels(node.inputs[0], table)
        ints = {"axis": shape[0], "inner": shape[1], "count": prod(context.graph.shapes[node.inputs[1]]), **layout}
        context.call("gather_packed", node, {"src": src, "indices": indices, "dst": context.write(node.output)}, ints)
        return
    ints = {
        "outer": prod(shape[:axis]), "axis": shape[axis], "inner": prod(shape[axis + 1 :]),
        "count": prod(context.graph.shapes[node.inputs[1]]),
    }  # fmt: skip
    src = context.read(node.inputs[0])
    context.call("gather_values", node, {"src": src, "indices": indices, "dst": context.write(node.output)}, ints)


def grown(context: CpuContext, node: Node) -> str:
    """Return the buffer into which a node puts rows: a state that nothing else reads, or a copy."""
    source = context.read(node.inputs[0])
    if writes_in_place(context.graph, node):
        context.buffers[node.output] = source
    else:
        copy_for(context.draft, node, context.place_of(source)[:2], context.write(node.output))
    return context.buffers[node.output]


def lower_put_rows(context: CpuContext, node: Node) -> None:
    rows, position = map(context.read, node.inputs[1:])
    shape, axis = context.graph.shapes[node.output], node.attributes["axis"]
    ints = {
        "outer": prod(shape[:axis]), "axis": shape[axis], "inner": prod(shape[axis + 1 :]),
        "rows": context.graph.shapes[node.inputs[1]][axis],
    }  # fmt: skip
    context.call("put_rows", node, {"src": rows, "position": position, "dst": grown(context, node)}, ints)


_KINDS = {kind: index for index, kind in enumerate(k for k in REDUCTIONS if k != "mean")} | {"mean": 0}
_SQUARES = 8


def lower_reduce(context: CpuContext, node: Node) -> None:
    shape, a = context.graph.shapes[node.inputs[0]], node.attributes
    outer, n, inner = prod(shape[: a["start"]]), prod(shape[a["start"] : a["stop"]]), prod(shape[a["stop"] :])
    kind = _SQUARES if a.get("squared") else _KINDS[a["kind"]]
    ints = {"kind": kind, "outer": outer, "n": n, "inner": inner}
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    scale = float(np.float32(1 / n)) if a["kind"] == "mean" else 1.0
    context.call("reduce", node, buffers, ints, {"scale": scale}, prod(shape))


def lower_sort(context: CpuContext, node: Node) -> None:
    """Both results at once where both are asked for."""
    if node.output in context.buffers:
        return
    (rows, n), a, other = context.graph.shapes[node.inputs[0]], node.attributes, twin(context.graph, node)
    targets = {a["gives"]: context.write(node.output)}
    for gives in GIVES:
        if gives not in targets:
            unread = f"{node.name}:{gives}"
            kind = "i64" if gives == "places" else context.held(node.inputs[0])
            targets[gives] = context.write(other.output) if other else context.scratch(unread, rows * a["k"], kind)
    ints = {"rows": rows, "n": n, "k": a["k"], "largest": int(a["largest"])}
    context.call("sort_rows", node, {"src": context.read(node.inputs[0]), **targets}, ints)


def lower_suppress(context: CpuContext, node: Node) -> None:
    batch, n, _ = context.graph.shapes[node.inputs[0]]
    rows, length = context.graph.shapes[node.inputs[1]]
    boxes, order, valid = map(context.read, node.inputs)
    buffers = {"boxes": boxes, "order": order, "valid": valid, "dst": context.write(node.output)}
    ints = {"batch": batch, "n": n, "rows": rows, "length": length, "rounds": node.attributes["rounds"]}
    context.call("suppress_rows", node, buffers, ints, {"overlap": float(node.attributes["overlap"])})


def lower_roi_align(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    a, (rows, _, oh, ow) = node.attributes, context.graph.shapes[node.output]
    boxes, pictures, valid = map(context.read, node.inputs[1:])
    src = context.read_blocks(node.inputs[0])
    buffers = {"src": src, "boxes": boxes, "pictures": pictures, "valid": valid, "dst": context.write(node.output)}
    ints = {"n": n, "c": c, "h": h, "w": w, "rows": rows, "oh": oh, "ow": ow, "points": a["points"]}
    ints |= {"half": int(a["half"]), "largest": int(a["kind"] == "max")}
    flops = 8 * rows * c * oh * ow * a["points"] ** 2
    context.call("roi_align_nc16", node, buffers, ints, {"scale": float(a["scale"])}, flops)
