"""Padding, resizing and instance normalisation of images."""

from __future__ import annotations

from math import isclose, isfinite

import numpy as np

from kernels.ir.resampling import PAD_MODES
from kernels.ir.shapes import Shape

from .context import AnyArray, Context, OnnxNode
from .windows import image

_NEAREST = {"asymmetric": "floor", "half_pixel": "round_prefer_floor", "pytorch_half_pixel": "round_prefer_floor"}
"""Coordinates of nearest resizing with the rounding that is supported for them."""


def instance_normalization(node: OnnxNode, to: Context) -> bool:
    x, constants = image(node, to), [to.known_finite(node, index) for index in (1, 2)]
    if x is None or any(value is None for value in constants):
        return False
    weights = (to.weight(node, index) for index in (1, 2))
    to.emit(node, "instance_norm", (x, *weights), {"epsilon": float(node.attributes.get("epsilon", 1e-5))})
    return True


def pad(node: OnnxNode, to: Context) -> bool:
    """Pad height and width only, by no less than nothing, with a finite number."""
    x, mode = image(node, to), str(node.attributes.get("mode", "constant"))
    pads = node.attributes["pads"] if node.opset < 11 else to.constants.get(node.input(1))
    chosen = to.constants.get(node.input(3)) if node.input(3) else range(4)
    value = to.constants.get(node.input(2)) if node.input(2) else node.attributes.get("value", 0.0)
    if x is None or mode not in PAD_MODES or pads is None or chosen is None or value is None:
        return False
    axes, pads, number = node.distinct_axes(chosen, 4), [int(p) for p in np.reshape(pads, -1)], np.asarray(value)
    if len(pads) != 2 * len(axes) or number.size != 1 or not isfinite(number.item()):
        return False
    begins, ends = [0] * 4, [0] * 4
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[len(axes) + i]
    if any(begins[:2]) or any(ends[:2]) or min(*begins, *ends) < 0:
        return False
    to.emit(node, "pad", (x,), {"pads": (*begins[2:], *ends[2:]), "mode": mode, "value": float(number.item())})
    return True


def resize(node: OnnxNode, to: Context) -> bool:
    """Resize by scales or to a size; opset 10 has scales only and counts coordinates as `asymmetric`."""
    usual = {"exclude_outside": 0, "antialias": 0, "keep_aspect_ratio_policy": "stretch"}
    if any(node.attributes.get(name, value) != value for name, value in usual.items()):
        return False
    way = "asymmetric" if node.opset < 11 else str(node.attributes.get("coordinate_transformation_mode", "half_pixel"))
    names = [node.input(1)] if node.opset < 11 else [node.input(2), node.input(3)]
    if any(name and name not in to.constants for name in names):
        return False
    scales, *sizes = (to.constants.get(name) for name in names)
    return _resize(node, to, way, scales, sizes[0] if sizes else None)


def upsample(node: OnnxNode, to: Context) -> bool:
    """Resize's forerunner (opset 7 and 9)."""
    scales = node.attributes["scales"] if node.opset < 9 else to.constants.get(node.input(1))
    return _resize(node, to, "asymmetric", None if scales is None else np.asarray(scales), None)


def _resize(node: OnnxNode, to: Context, way: str, scales: AnyArray | None, sizes: AnyArray | None) -> bool:
    """Resize height and width; scales are to make whole numbers of pixels."""
    x, mode = image(node, to), str(node.attributes.get("mode", "nearest"))
    in_pixels = scales is None or not scales.size
    given = sizes if in_pixels else scales
    if x is None or given is None or mode not in ("nearest", "linear"):
        return False
    shape, axes = to.shapes[x], node.distinct_axes(node.attributes.get("axes", range(4)), 4)
    whole = [float(extent) if in_pixels else 1.0 for extent in shape]
    values = dict(zip(axes, given.reshape(-1).tolist(), strict=False))
    if given.size != len(axes) or not all(isfinite(value) and value > 0 for value in values.values()):
        return False
    if any(axis < 2 and value != whole[axis] for axis, value in values.items()):
        return False
    asked = [values.get(axis, whole[axis]) for axis in (2, 3)]
    size = tuple(int(v) if in_pixels else int(shape[2 + i] * v + 1e-4) for i, v in enumerate(asked))
    exact = all(isclose(shape[2 + i] * asked[i], size[i], rel_tol=1e-5) for i in range(2))
    coordinates = _coordinates(node, mode, way, size, shape[2:])
    if coordinates is None or not (in_pixels or exact):
        return False
    to.emit(node, "resize", (x,), {"size": size, "mode": mode, "coordinates": coordinates})
    return True


def nearest_mode(node: OnnxNode, *, shrinks: bool) -> str:
    """Return how places are rounded. Before opset 11, whose text leaves it open, it is as in onnxruntime:
    up where a picture shrinks, else down."""
    older = "ceil" if shrinks else "floor"
    usual = older if node.op == "Upsample" or node.opset < 11 else "round_prefer_floor"
    return str(node.attributes.get("nearest_mode", usual))


def _coordinates(node: OnnxNode, mode: str, way: str, size: Shape, extents: Shape) -> str | None:
    """The kernels' name of the coordinates; None of others than they know."""
    shrinks = any(new < old for new, old in zip(size, extents, strict=True))
    if mode == "nearest" and _NEAREST.get(way) != nearest_mode(node, shrinks=shrinks):
        return None
    if way == "pytorch_half_pixel" and min(size) > 1:
        way = "half_pixel"
    return way if way in ("half_pixel", "asymmetric", "align_corners") else None
