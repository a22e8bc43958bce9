"""One function per canonical operation: (node, inputs, shape of the output) -> output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.activations import ACTIVATIONS, activation_of
from kernels.ir.graph import Node
from kernels.ir.taking import NOTHING, split_table

from . import cache, pooling, regions, resampling
from .convolution import convolve, im2col, times
from .expressions import compute, number_as

AnyArray = npt.NDArray[np.floating[Any]]
Inputs = Sequence[Any]
"""Arrays in the node's order; None for an absent optional input."""
Shape = tuple[int, ...]


def activate(x: AnyArray, activation: tuple[Any, ...] | None) -> AnyArray:
    """Apply a fused activation, e.g. ("clip", min, max), or nothing."""
    if activation is None:
        return x
    kind, *bounds = activation
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "clip":
        out: AnyArray = np.minimum(np.maximum(x, number_as(bounds[0], x.dtype)), number_as(bounds[1], x.dtype))
        return out
    if kind == "leaky_relu":
        return np.maximum(x, x * x.dtype.type(bounds[0]))
    if kind == "hard_sigmoid":
        alpha, beta = (x.dtype.type(bound) for bound in bounds)
        return np.clip(alpha * x + beta, x.dtype.type(0), x.dtype.type(1))
    if kind == "hard_swish":
        return x * activate(x, ("hard_sigmoid", 1 / 6, 0.5))
    if kind == "sigmoid":
        half = x.dtype.type(0.5)
        return half * (np.tanh(half * x) + 1)
    raise ValueError(f"unknown activation {activation}")


def _conv(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    x, weight, bias, residual = (*inputs, None, None)[:4]
    geometry = {key: node.attributes[key] for key in ("strides", "pads", "dilations", "groups")}
    if node.attributes.get("pad_mode") == "reflect":
        x, geometry["pads"] = resampling.pad(x, geometry["pads"], "reflect", 0.0), (0, 0, 0, 0)
    out = convolve(x, weight, **geometry)
    if bias is not None:
        out = out + bias[:, None, None]
    if residual is not None:
        out = out + residual
    return activate(out, node.attributes.get("activation"))


def _im2col(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    a = node.attributes
    return im2col(inputs[0], a["kernel"], strides=a["strides"], pads=a["pads"], dilations=a["dilations"])


def _dense(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    x, weight, bias = (*inputs, None)[:3]
    out = times(x, weight)
    return activate(out if bias is None else out + bias, node.attributes.get("activation"))


def _max_pool(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    a = node.attributes
    return pooling.max_pool(inputs[0], shape, a["kernel"], a["strides"], a["pads"])


def _average_pool(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    a = node.attributes
    include_pad = bool(a["count_include_pad"])
    return pooling.average_pool(inputs[0], shape, a["kernel"], a["strides"], a["pads"], count_include_pad=include_pad)


def _global_average_pool(_: Node, inputs: Inputs, __: Shape) -> AnyArray:
    out: AnyArray = inputs[0].mean(axis=(2, 3), keepdims=True)
    return out


def _affine(node: Node, inputs: Inputs, __: Shape) -> AnyArray:
    x, scale, shift = inputs
    per_channel = (-1,) + (1,) * (x.ndim - 2)
    return activate(x * scale.reshape(per_channel) + shift.reshape(per_channel), node.attributes.get("activation"))


def _instance_norm(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift, mean and variance over each image's own group."""
    x, scale, shift = inputs
    rows = x.reshape(x.shape[0], node.attributes.get("groups", x.shape[1]), -1)
    centred = rows - rows.mean(axis=2, keepdims=True)
    variance = (centred * centred).mean(axis=2, keepdims=True)
    normalised = (centred / np.sqrt(variance + x.dtype.type(node.attributes["epsilon"]))).reshape(x.shape)
    out: AnyArray = normalised * scale[:, None, None] + shift[:, None, None]
    return activate(out, node.attributes.get("activation"))


def _softmax(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    axis = node.attributes["axis"]
    exponentials = np.exp(inputs[0] - inputs[0].max(axis=axis, keepdims=True))
    out: AnyArray = exponentials / exponentials.sum(axis=axis, keepdims=True)
    return out


def _lrn(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    """x / (bias + alpha/size * sum of squares over `size` neighbouring channels) ** beta, as ONNX's LRN."""
    x, a = inputs[0], node.attributes
    size, channels = a["size"], inputs[0].shape[1]
    before = (size - 1) // 2
    squares = np.pad(x * x, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    total = sum(squares[:, i : i + channels] for i in range(size))
    out: AnyArray = x / (a["bias"] + a["alpha"] / size * total) ** a["beta"]
    return out


def _reshape(_: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    out: AnyArray = inputs[0].reshape(shape)
    return out


def _slice(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    a = node.attributes
    return np.take(inputs[0], range(a["start"], a["stop"]), a["axis"])


def _pad(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    a = node.attributes
    return resampling.pad(inputs[0], a["pads"], a["mode"], a["value"])


def _resize(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    a = node.attributes
    return resampling.resize(inputs[0], a["size"], a["mode"], a["coordinates"])


def _take(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    a, (x, table) = node.attributes, inputs
    places, empty = np.zeros((), np.int64), np.zeros((), bool)
    for axis, part in enumerate(split_table(table, shape)):
        along = part.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + np.where(along == NOTHING, 0, along).astype(np.int64) * a["strides"][axis]
        empty = empty | (along == NOTHING)
    out: AnyArray = np.where(empty, number_as(a["value"], x.dtype), x.reshape(-1)[places])
    return out.reshape(shape)


def _gather(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    x, axis, whole = inputs[0], node.attributes["axis"], inputs[1].dtype.kind in "iu"
    known = np.ones(inputs[1].shape, bool) if whole else np.abs(inputs[1]) <= 2**24
    indices, extent = np.where(known, inputs[1], 0).astype(np.int64), x.shape[axis]
    out: AnyArray = np.take(x, np.clip(np.where(indices < 0, indices + extent, indices), 0, extent - 1), axis)
    if known.all():
        return out
    return np.where(known.reshape(known.shape + (1,) * (x.ndim - axis - 1)), out, np.nan)


def _put_rows(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    out: AnyArray = inputs[0].copy()
    rows, axis = inputs[1], node.attributes["axis"]
    first = int(np.clip(inputs[2][0], 0, out.shape[axis] - rows.shape[axis]))
    out[(slice(None),) * axis + (slice(first, first + rows.shape[axis]),)] = rows
    return out


def _reduce(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    a, x = node.attributes, inputs[0]
    x = x * x if a.get("squared") else x
    kind, axes = a["kind"], tuple(range(a["start"], a["stop"]))
    if kind not in _ARGUMENTS:
        out: AnyArray = getattr(np, kind)(x, axis=axes, keepdims=True)
        return out
    rows = x.reshape(*x.shape[: axes[0]], -1, *x.shape[axes[-1] + 1 :])
    last, least = kind.startswith("last"), kind.endswith("min")
    rows = np.flip(rows, axes[0]) if last else rows
    found = np.argmin(rows, axes[0]) if least else np.argmax(rows, axes[0])
    return np.asarray(rows.shape[axes[0]] - 1 - found if last else found, x.dtype).reshape(shape)


_ARGUMENTS = ("argmax", "argmin", "last_argmax", "last_argmin")


def _sort(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    a, (x,) = node.attributes, inputs
    if x.dtype.kind == "f":
        keys = np.nan_to_num(-x if a["largest"] else x, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    else:
        keys = ~x if a["largest"] else x  # of the least number there is no negative
    places = np.argsort(keys, axis=1, kind="stable")[:, : a["k"]]
    out: AnyArray = np.take_along_axis(x, places, 1) if a["gives"] == "values" else places.astype(x.dtype)
    return out


def _suppress(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    boxes, order, valid = inputs
    out = np.full(shape, -1, boxes.dtype)
    for row in range(shape[0]):
        own, taken = boxes[row * len(boxes) // shape[0]], np.zeros(0, np.int64)
        for place in order[row, : int(valid[row, 0])].astype(np.int64):
            if len(taken) < shape[1] and not _overlaps(own[place], own[taken], node.attributes["overlap"]).any():
                taken = np.append(taken, place)
        out[row, : len(taken)] = taken
    return out


def _overlaps(box: AnyArray, others: AnyArray, most: float) -> AnyArray:
    sides = np.minimum(box[2:4], others[:, 2:4]) - np.maximum(box[:2], others[:, :2])
    common = np.maximum(sides, 0).prod(1)
    both = np.maximum(box[4] + others[:, 4] - common, np.finfo(np.float32).tiny)
    out: AnyArray = common / both > most
    return out


def _roi_align(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    x, boxes, pictures, valid = inputs
    return regions.roi_align(x, boxes, pictures, valid, node.attributes)


OPERATIONS: dict[str, Callable[[Node, Inputs, Shape], AnyArray]] = {
    "conv": _conv,
    "im2col": _im2col,
    "dense": _dense,
    "matmul": lambda _, inputs, __: times(inputs[0], inputs[1]),
    **dict.fromkeys(ACTIVATIONS, lambda node, inputs, _: activate(inputs[0], activation_of(node))),
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
    "concat": lambda node, inputs, _: np.concatenate(inputs, axis=node.attributes["axis"]),
    "add": lambda node, inputs, _: activate(inputs[0] + inputs[1], node.attributes.get("activation")),
    "mul": lambda node, inputs, _: activate(inputs[0] * inputs[1], node.attributes.get("activation")),
    "affine": _affine,
    "instance_norm": _instance_norm,
    "softmax": _softmax,
    "lrn": _lrn,
    "reshape": _reshape,
    "transpose": lambda node, inputs, _: np.transpose(inputs[0], node.attributes["perm"]),
    "slice": _slice,
    "pad": _pad,
    "resize": _resize,
    "map": lambda node, inputs, shape: compute(node.attributes["expression"], inputs, shape),
    "take": _take,
    "gather": _gather,
    "put_rows": _put_rows,
    "reduce": _reduce,
    "sort": _sort,
    "suppress": _suppress,
    "roi_align": _roi_align,
    "append": cache.append,
    "attend": cache.attend,
}
"""Every canonical operation of `graph.py`."""
