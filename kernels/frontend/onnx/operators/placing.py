"""Operators that only choose, copy and order elements."""

from __future__ import annotations

from functools import reduce
from math import isfinite, prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows import shaping
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.counted_rows.rules import passed
from kernels.frontend.onnx.operator import AXES, Operator, Values
from kernels.frontend.onnx.operators.parts import element_numbers
from kernels.frontend.onnx.steps import Steps
from kernels.ir.expressions import number_of
from kernels.ir.resampling import PAD_MODES


def pad(node: OnnxNode, to: Context) -> None:
    """Any axes, in any mode, and cropped where a pad is negative."""
    s = Steps(node, to)
    x = s.operand(0)
    shape, mode = s.shape(x), str(s.attribute("mode", "constant"))
    pads = s.whole_numbers(1, "pads") or []
    chosen = s.whole_numbers(3)
    axes = list(range(len(shape))) if chosen is None else node.distinct_axes(chosen, len(shape))
    if len(pads) != 2 * len(axes):
        node.damaged(f"{len(pads)} pads for {len(axes)} axes; the model is damaged")
    borders = dict(zip(axes, zip(pads, pads[len(axes) :], strict=False), strict=True))
    s.check_size([extent + sum(borders.get(axis, ())) for axis, extent in enumerate(shape)])
    value = 0.0
    if mode == "constant":
        value = number_of(to.constant(node, 2)) if s.has(2) else float(s.attribute("value", 0.0))
    before, after = zip(*(borders.get(axis, (0, 0)) for axis in range(4)), strict=True)
    inside = len(shape) == 4 and min(pads, default=0) >= 0 and (*before[:2], *after[:2]) == (0, 0, 0, 0)
    if inside and mode in PAD_MODES and isfinite(value) and to.is_activation(x):  # height and width alone
        to.emit(node, "pad", (x,), {"pads": (*before[2:], *after[2:]), "mode": mode, "value": value})
        return
    tables = [np.arange(extent) for extent in shape]
    for k, axis in enumerate(axes):
        tables[axis] = _padded(shape[axis], pads[k], pads[len(axes) + k], mode)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    extents = [len(table) for table in tables]
    if isfinite(value):
        s.end(s.take(x, extents, tables, strides, value))
        return
    outside = [table < 0 if (table < 0).any() else np.zeros(1, np.bool_) for table in tables]
    mask = reduce(np.logical_or.outer, outside).astype(np.float32)
    s.end(s.map(("select", "b", "c", "a"), s.take(x, extents, tables, strides), mask, np.full(1, value, np.float32)))


def _padded(extent: int, begin: int, end: int, mode: str) -> AnyArray:
    places = np.arange(-begin, extent + end)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    if mode == "reflect":
        period = max(1, 2 * (extent - 1))
        turned = places % period
        return np.minimum(turned, period - turned) if extent > 1 else np.zeros_like(places)
    return np.where((places < 0) | (places >= extent), -1, places)


def tile(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, repeats = s.operand(0), s.whole_numbers(1) or []
    shape = s.shape(x)
    if len(repeats) != len(shape) or min(repeats, default=1) < 1:
        node.damaged(f"repeats {repeats} do not fit {shape}")
    s.check_size([extent * times for extent, times in zip(shape, repeats, strict=True)])
    tables = [np.arange(extent * times) % extent for extent, times in zip(shape, repeats, strict=True)]
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    s.end(s.take(x, [len(table) for table in tables], tables, strides))


def expand(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, wanted = s.operand(0), s.whole_numbers(1) or []
    try:
        shape = tuple(int(extent) for extent in np.broadcast_shapes(s.shape(x), tuple(wanted)))
    except ValueError as e:
        raise ModelError(f"node {node.name!r} ({node.op}): {s.shape(x)} does not broadcast to {wanted}") from e
    s.end(s.expand(x, shape))


def depth_to_space(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, b = s.operand(0), int(s.attribute("blocksize"))
    n, c, h, w = _image(s, x)
    if b < 1 or c % (b * b):
        node.damaged(f"blocks of {b} do not divide {c} channels")
    by_column = str(s.attribute("mode", "DCR")) == "CRD"
    split = (n, c // b // b, b, b, h, w) if by_column else (n, b, b, c // b // b, h, w)
    turned = s.transpose(s.reshape(x, split), (0, 1, 4, 2, 5, 3) if by_column else (0, 3, 4, 1, 5, 2))
    s.end(s.reshape(turned, (n, c // b // b, h * b, w * b)))


def space_to_depth(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, b = s.operand(0), int(s.attribute("blocksize"))
    n, c, h, w = _image(s, x)
    if b < 1 or h % b or w % b:
        node.damaged(f"blocks of {b} do not divide {(h, w)}")
    by_column = str(s.attribute("mode", "DCR")) == "CRD"
    order = (0, 1, 3, 5, 2, 4) if by_column else (0, 3, 5, 1, 2, 4)
    turned = s.transpose(s.reshape(x, (n, c, h // b, b, w // b, b)), order)
    s.end(s.reshape(turned, (n, c * b * b, h // b, w // b)))


def _image(s: Steps, x: str) -> tuple[int, ...]:
    if len(s.shape(x)) != 4:
        s.node.damaged(f"input {x!r} has shape {s.shape(x)}; expected (N, C, H, W)")
    return s.shape(x)


def reverse_sequence(node: OnnxNode, to: Context) -> None:
    """First steps of rows in reverse order, as many as lengths say; a computed length of more steps counts as all."""
    s = Steps(node, to)
    x, given = s.operand(0), s.operand(1)
    shape, lengths = s.shape(x), s.shape(given)
    time, batch = int(s.attribute("time_axis", 0)), int(s.attribute("batch_axis", 1))
    if {time, batch} != {0, 1} or len(shape) < 2 or lengths != (shape[batch],):
        node.damaged(f"lengths of shape {lengths} and axes {time}, {batch} do not fit {shape}")
    known, places = s.value(given), list(np.indices(shape[:2]))
    if known is not None:
        length = known[places[batch]]
        places[time] = np.where(places[time] < length, length - 1 - places[time], places[time])
        rows: str | AnyArray = element_numbers(shape[:2])[tuple(places)]
        s.end(s.reshape(s.pick(_rows(s, x), 0, np.reshape(rows, -1)), shape))
        return
    s.places(prod(shape[:2]))
    steps, own = (shape[1], 1) if batch == 0 else (1, shape[1])
    first = ("min", "a", float(shape[time]))
    step = ("select", ("less", "b", first), ("sub", ("sub", first, 1.0), "b"), "b")
    across = s.reshape(given, (shape[batch], 1) if batch == 0 else (1, shape[batch]))
    rows = s.map(("add", ("mul", step, float(own)), "c"), across, places[time], places[batch] * steps)
    s.end(s.reshape(s.gather(_rows(s, x), s.reshape(rows, (prod(shape[:2]),)), 0), shape))


def _rows(s: Steps, x: str) -> str:
    """The first two axes as one."""
    shape = s.shape(x)
    return s.reshape(x, (prod(shape[:2]), prod(shape[2:])))


def _rows_padded(r: Rows) -> None:
    """Pad: other axes than those of which some elements are valid."""
    rank = len(r.shape(r.operand(0)))
    axes, pads = r.whole_numbers(3), r.whole_numbers(1, "pads") or []
    named = range(rank) if axes is None else r.node.distinct_axes(axes, rank)
    zero = [axis for k, axis in enumerate(named) if not any(pads[k :: len(named)])]
    r.only(0, [axis for axis in range(rank) if axis in zero or axis not in named], "gets a border")
    r.import_from()
    r.tell(r.counts(0))


def _expanded(_: OnnxNode, values: Values) -> AnyArray:
    return np.broadcast_to(values[0], np.broadcast_shapes(values[0].shape, tuple(int(extent) for extent in values[1])))


OPERATORS = (
    Operator("DepthToSpace", import_=depth_to_space, rows=passed, choices={"mode": ("DCR", "CRD")}),
    Operator(
        "Expand", operands=AXES, import_=expand, sizes=(1,), counts_from=1, rows=shaping.expanded, fold=_expanded,
        fold_bytes=lambda node, values: _expanded(node, values).size * int(values[0].itemsize),
    ),
    Operator(
        "Pad", operands=("...", "p", "scalar", "k"), may_be_infinite=True, import_=pad,
        rows=_rows_padded, choices={"mode": ("constant", "reflect", "edge", "wrap")},
    ),
    Operator("ReverseSequence", import_=reverse_sequence),
    Operator("SpaceToDepth", import_=space_to_depth, rows=passed),
    Operator("Tile", import_=tile, rows=shaping.repeated),
)  # fmt: skip
