"""Padding, resizing and instance normalisation of images."""

from __future__ import annotations

from math import isclose, isfinite

import numpy as np

from kernels.errors import ModelError
from kernels.ir.expressions import number_of
from kernels.ir.resampling import PAD_MODES
from kernels.ir.shapes import Shape

from .context import Context, OnnxNode
from .windows import image

_NEAREST = {"asymmetric": "floor", "half_pixel": "round_prefer_floor", "pytorch_half_pixel": "round_prefer_floor"}
"""Coordinates of nearest resizing with the rounding that is supported for them."""


def instance_normalization(node: OnnxNode, to: Context) -> None:
    x = image(node, to)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    to.emit(node, "instance_norm", (x, to.weight(node, 1), to.weight(node, 2)), {"epsilon": epsilon})


def pad(node: OnnxNode, to: Context) -> None:
    """Pad height and width only, by no less than nothing."""
    x = image(node, to)
    mode = str(node.attributes.get("mode", "constant"))
    if mode not in PAD_MODES:
        node.reject(f"mode {mode!r}; supported: {', '.join(PAD_MODES)}")
    begins, ends = _pads(node, to)
    if any(begins[:2]) or any(ends[:2]) or min(*begins, *ends) < 0:
        node.reject(f"pads {begins} before and {ends} after; only height and width can be padded, and not cropped")
    attributes = {"pads": (*begins[2:], *ends[2:]), "mode": mode, "value": _pad_value(node, to)}
    to.emit(node, "pad", (x,), attributes)


def _pads(node: OnnxNode, to: Context) -> tuple[list[int], list[int]]:
    """Pads before and after each of the four axes."""
    stored = node.attributes["pads"] if node.opset < 11 else to.constant(node, 1)
    pads = [int(extent) for extent in np.reshape(stored, -1)]
    chosen = to.optional_constant(node, 3)
    axes = range(4) if chosen is None else node.distinct_axes(chosen, 4)
    if len(pads) != 2 * len(axes):
        raise ModelError(f"node {node.name!r} (Pad): {len(pads)} pads for {len(axes)} axes; the model is damaged")
    begins, ends = [0] * 4, [0] * 4
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[len(axes) + i]
    return begins, ends


def _pad_value(node: OnnxNode, to: Context) -> float:
    value = float(node.attributes.get("value", 0.0))
    if node.opset >= 11:
        value = number_of(to.constant(node, 2)) if node.input(2) else 0.0
    if not isfinite(value):
        node.reject(f"padding with {value} is not supported")
    return value


def resize(node: OnnxNode, to: Context) -> None:
    """Resize by scales or to a size; opset 10 has scales only and counts coordinates as `asymmetric`."""
    for name, usual in (("exclude_outside", 0), ("antialias", 0), ("keep_aspect_ratio_policy", "stretch")):
        if node.attributes.get(name, usual) != usual:
            node.reject(f"{name} {node.attributes[name]!r} is not supported")
    way = "asymmetric" if node.opset < 11 else str(node.attributes.get("coordinate_transformation_mode", "half_pixel"))
    scales = to.optional_constant(node, 1 if node.opset < 11 else 2)
    sizes = None if node.opset < 11 else to.optional_constant(node, 3)
    given = sizes if scales is None or scales.size == 0 else scales
    if given is None:
        raise ModelError(f"node {node.name!r} (Resize): neither scales nor sizes; the model is damaged")
    _resize(node, to, way, given, in_pixels=given is sizes)


def upsample(node: OnnxNode, to: Context) -> None:
    """Resize's forerunner (opset 7 and 9)."""
    scales = node.attributes["scales"] if node.opset < 9 else to.constant(node, 1)
    _resize(node, to, "asymmetric", np.asarray(scales), in_pixels=False)


def _resize(node: OnnxNode, to: Context, way: str, given: np.ndarray, *, in_pixels: bool) -> None:
    x = image(node, to)
    shape = to.shapes[x]
    values = _by_axis(node, given.reshape(-1).tolist(), shape, in_pixels=in_pixels)
    if not all(isfinite(value) and value > 0 for value in values):
        raise ModelError(f"node {node.name!r} ({node.op}): scales or sizes {values}; expected positive numbers")
    size = tuple(int(v) if in_pixels else int(shape[2 + i] * v + 1e-4) for i, v in enumerate(values))
    mode = str(node.attributes.get("mode", "nearest"))
    if mode not in ("nearest", "linear"):
        node.reject(f"mode {mode!r}; supported: nearest, linear")
    if not in_pixels:
        _require_whole(node, shape[2:], size, values)
    coordinates = _coordinates(node, mode, way, size, shape[2:])
    to.emit(node, "resize", (x,), {"size": size, "mode": mode, "coordinates": coordinates})


def _by_axis(node: OnnxNode, given: list[float], shape: Shape, *, in_pixels: bool) -> list[float]:
    """Scale or size of height and width; batch and channels stay."""
    axes = node.distinct_axes(node.attributes.get("axes", range(4)), 4)
    if len(given) != len(axes):
        raise ModelError(f"node {node.name!r} ({node.op}): {len(given)} scales or sizes for {len(axes)} axes")
    whole = [float(extent) if in_pixels else 1.0 for extent in shape]
    for axis, value in zip(axes, given, strict=True):
        if axis < 2 and value != whole[axis]:
            node.reject(f"{given}: only height and width can be resized")
        whole[axis] = value
    return whole[2:]


def _require_whole(node: OnnxNode, extents: Shape, size: Shape, scales: list[float]) -> None:
    for extent, pixels, scale in zip(extents, size, scales, strict=True):
        if not isclose(extent * scale, pixels, rel_tol=1e-5):
            node.reject(f"scale {scale} makes no whole number of {extent} pixels; give the size instead")


def nearest_mode(node: OnnxNode, *, shrinks: bool) -> str:
    """Return how places are rounded. Before opset 11, whose text leaves it open, it is as in onnxruntime:
    up where a picture shrinks, else down."""
    older = "ceil" if shrinks else "floor"
    usual = older if node.op == "Upsample" or node.opset < 11 else "round_prefer_floor"
    return str(node.attributes.get("nearest_mode", usual))


def _coordinates(node: OnnxNode, mode: str, way: str, size: Shape, extents: Shape) -> str:
    if mode == "nearest":
        rounding = nearest_mode(node, shrinks=any(new < old for new, old in zip(size, extents, strict=True)))
        if _NEAREST.get(way) != rounding:
            known = ", ".join(f"{key} with {value}" for key, value in _NEAREST.items())
            node.reject(f"nearest by {way} with {rounding}; supported: {known}")
    if way == "pytorch_half_pixel" and min(size) > 1:
        way = "half_pixel"
    if way not in ("half_pixel", "asymmetric", "align_corners"):
        node.reject(f"coordinates {way!r}; supported: half_pixel, asymmetric, align_corners")
    return way
