"""Resize in every mode: along each axis a product with a matrix of weights, or a choice of elements.

In such a product an infinite pixel makes NaN of those that have 0 of it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isclose

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows import resizing
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.counted_rows.rules import passed
from kernels.frontend.onnx.operator import AXES, Operator
from kernels.frontend.onnx.operators.windows.images import image
from kernels.frontend.onnx.steps import Steps


def resize(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    axes = node.distinct_axes(s.attribute("axes", range(len(shape))), len(shape))
    sizes, scales = _sizes(s, [shape[axis] for axis in axes])
    way = "asymmetric" if node.op == "Upsample" or node.opset < 11 else s.attribute(
        "coordinate_transformation_mode", "half_pixel"
    )  # fmt: skip
    roi = to.optional_constant(node, 1) if node.opset >= 11 and way == "tf_crop_and_resize" else None
    if roi is not None and roi.size != 2 * len(axes):
        node.damaged(f"roi has {roi.size} numbers; expected {2 * len(axes)}")
    if _is_direct(s, str(way), dict(zip(axes, scales, strict=True))):
        return
    outside: list[tuple[int, AnyArray]] = []
    for k, axis in enumerate(axes):
        part = (0.0, 1.0) if roi is None else (float(roi[k]), float(roi[len(axes) + k]))
        coordinates = _coordinates(s, str(way), shape[axis], sizes[k], scales[k], part)
        if sizes[k] == shape[axis] and np.allclose(coordinates, np.arange(sizes[k])):
            continue
        x = _along(s, x, axis, coordinates, scales[k])
        if way == "tf_crop_and_resize":
            outside.append((axis, (coordinates < 0) | (coordinates > shape[axis] - 1)))
    for axis, beyond in outside:
        ones = [-1 if k == axis else 1 for k in range(len(shape))]
        value = float(s.attribute("extrapolation_value", 0.0))
        x = s.map(("select", "b", value, "a"), x, beyond.astype(np.float32).reshape(ones))
    s.end(s.tensor(x))


def _is_direct(s: Steps, way: str, scales: dict[int, float]) -> bool:
    """Emit one operation of images, if that is all: height and width by scales that make whole numbers of pixels."""
    node, x, mode = s.node, image(s.node, s.to), str(s.attribute("mode", "nearest"))
    usual = {"exclude_outside": 0, "antialias": 0, "keep_aspect_ratio_policy": "stretch"}
    plain = all(s.attribute(name, value) == value for name, value in usual.items())
    if x is None or not plain or mode not in ("nearest", "linear") or {scales.get(0, 1.0), scales.get(1, 1.0)} != {1.0}:
        return False
    extents = s.shape(x)[2:]
    exact = [extent * scales.get(2 + i, 1.0) for i, extent in enumerate(extents)]
    size = tuple(int(pixels + 1e-4) for pixels in exact)
    rounding = nearest_mode(node, shrinks=any(new < old for new, old in zip(size, extents, strict=True)))
    if mode == "nearest" and _KNOWN.get(way) != rounding:
        return False
    way = "half_pixel" if way == "pytorch_half_pixel" and min(size) > 1 else way
    whole = all(isclose(pixels, n, rel_tol=1e-5) for pixels, n in zip(exact, size, strict=True))
    if not whole or way not in ("half_pixel", "asymmetric", "align_corners"):
        return False
    s.to.emit(node, "resize", (x,), {"size": size, "mode": mode, "coordinates": way})
    return True


def _sizes(s: Steps, extents: list[int]) -> tuple[list[int], list[float]]:
    """Extents of the result, and scales, of the axes that are named."""
    node = s.node
    place = 1 if node.op == "Upsample" or node.opset < 11 else 2
    given = s.attribute("scales") if node.op == "Upsample" and node.opset < 9 else s.to.optional_constant(node, place)
    if given is not None and np.size(given):
        scales = [float(scale) for scale in np.reshape(given, -1)]
        if not all(np.isfinite(scale) and scale > 0 for scale in scales):
            node.damaged(f"scales {scales}; expected positive numbers")
        _require_whole(s, extents, scales)
        sizes = [_resized(extent, scale) for extent, scale in zip(extents, scales, strict=False)]
    elif not (sizes := s.whole_numbers(3) or []):
        node.damaged("neither scales nor sizes; the model is damaged")
    else:
        policy = s.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch" and len(sizes) == len(extents):
            choose = min if policy == "not_larger" else max
            one = choose(size / extent for size, extent in zip(sizes, extents, strict=True))
            sizes = [floor(one * extent + 0.5) for extent in extents]
            scales = [one] * len(extents)
        else:
            scales = [size / extent for size, extent in zip(sizes, extents, strict=False)]
    if len(scales) != len(extents) or min(sizes) < 1:
        node.damaged(f"sizes {sizes} or scales {scales} do not fit {extents}")
    return sizes, scales


def _resized(extent: int, scale: float) -> int:
    """Pixels of so many by a scale: as onnxruntime and ONNX's reference count, in the scale's own precision, in which
    10 * 1.3 is 13."""
    return floor(np.float32(scale) * np.float32(extent))


def _require_whole(s: Steps, extents: list[int], scales: list[float]) -> None:
    """Refuse scales for which ONNX's text leaves open whether corners are those of the scale or of the rounded size."""
    for extent, scale in zip(extents, scales, strict=False):
        pixels = extent * scale
        if s.attribute("coordinate_transformation_mode") == "align_corners" and not isclose(
            pixels, round(pixels), rel_tol=1e-5
        ):
            s.node.reject(f"scale {scale} makes no whole number of {extent} pixels; give the size instead")


def _coordinates(s: Steps, way: str, extent: int, size: int, scale: float, part: tuple[float, float]) -> AnyArray:
    """Return the place in the source of each element of the result."""
    at = np.arange(size, dtype=np.float64)
    start, end = part
    ways: dict[str, Callable[[], AnyArray]] = {
        "half_pixel": lambda: (at + 0.5) / scale - 0.5,
        "half_pixel_symmetric": lambda: extent / 2 * (1 - size / (extent * scale)) + (at + 0.5) / scale - 0.5,
        "pytorch_half_pixel": lambda: (at + 0.5) / scale - 0.5 if size > 1 else np.zeros(1),
        "align_corners": lambda: at * (extent - 1) / (extent * scale - 1) if extent * scale != 1 else np.zeros(size),
        "asymmetric": lambda: at / scale,
        # ONNX had it in opset 11 alone; tf2onnx writes it in every opset, and onnxruntime takes it in every one
        "tf_half_pixel_for_nn": lambda: (at + 0.5) / scale if size != extent else at,
        "tf_crop_and_resize": lambda: (
            start * (extent - 1) + at * (end - start) * (extent - 1) / (size - 1)
            if size > 1
            else np.full(1, 0.5 * (start + end) * (extent - 1))
        ),
    }
    if way not in ways:
        s.node.reject(f"coordinates {way!r}; supported: {', '.join(ways)}")
    return ways[way]()


def _along(s: Steps, x: str, axis: int, coordinates: AnyArray, scale: float) -> str:
    mode, extent = str(s.attribute("mode", "nearest")), s.shape(x)[axis]
    if mode == "nearest":
        return s.pick(x, axis, _nearest(s, coordinates, extent, scale))
    if mode not in ("linear", "bilinear", "cubic"):
        s.node.reject(f"mode {mode!r}; supported: nearest, linear, cubic")
    weights = _weights(s, mode, coordinates, extent, scale if s.attribute("antialias", 0) else 1.0)
    rank = len(s.shape(x))
    perm = [k for k in range(rank) if k != axis] + [axis]
    last = s.transpose(x, perm)
    lead = s.shape(last)[:-1]
    product = s.matmul(s.reshape(last, (int(np.prod(lead)), extent)), s.constant(weights.T))
    return s.transpose(s.reshape(product, (*lead, len(coordinates))), np.argsort(perm).tolist())


def _nearest(s: Steps, coordinates: AnyArray, extent: int, scale: float) -> AnyArray:
    rounding = nearest_mode(s.node, shrinks=scale < 1)
    ways: dict[str, Callable[[AnyArray], AnyArray]] = {
        "round_prefer_floor": lambda c: np.ceil(c - 0.5),
        "round_prefer_ceil": lambda c: np.floor(c + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if rounding not in ways:
        s.node.reject(f"nearest_mode {rounding!r}; supported: {', '.join(ways)}")
    exact = np.round(coordinates, 7)  # of what is a half but for rounding
    return np.clip(ways[rounding](exact), 0, extent - 1).astype(np.int64)


def _weights(s: Steps, mode: str, coordinates: AnyArray, extent: int, scale: float) -> AnyArray:
    """(size, extent): of what each element of the result is mixed. A scale below 1 widens what is mixed."""
    shrink = min(1.0, scale)
    reach = (2.0 if mode == "cubic" else 1.0) / shrink
    a = float(s.attribute("cubic_coeff_a", -0.75))

    def cubic(d: AnyArray) -> AnyArray:
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        return np.where(d < 1, near, np.where(d < 2, a * (d**3 - 5 * d**2 + 8 * d - 4), 0.0))

    first = np.floor(coordinates - reach).astype(np.int64)
    places = first[:, None] + np.arange(int(2 * reach) + 3)
    distance = np.abs(places - coordinates[:, None]) * shrink
    parts = cubic(distance) if mode == "cubic" else np.maximum(0.0, 1.0 - distance)
    if s.attribute("exclude_outside", 0):
        parts = np.where((places < 0) | (places >= extent), 0.0, parts)
    parts = parts / parts.sum(axis=1, keepdims=True)
    found = np.zeros((len(coordinates), extent))
    rows = np.broadcast_to(np.arange(len(coordinates))[:, None], places.shape)
    np.add.at(found, (rows, np.clip(places, 0, extent - 1)), parts)
    return found


def nearest_mode(node: OnnxNode, *, shrinks: bool) -> str:
    """Return how places are rounded. Before opset 11, whose text leaves it open, it is as in onnxruntime:
    up where a picture shrinks, else down."""
    older = "ceil" if shrinks else "floor"
    usual = older if node.op == "Upsample" or node.opset < 11 else "round_prefer_floor"
    return str(node.attributes.get("nearest_mode", usual))


_KNOWN = {"asymmetric": "floor", "half_pixel": "round_prefer_floor", "pytorch_half_pixel": "round_prefer_floor"}
"""Coordinates of nearest resizing with the rounding that is supported for them."""


def _rows_resized(r: Rows) -> None:
    if r.node.input(3) in r.to.extents:
        r.only(0, (0, 1), "is looked along")
        resizing.resize(r)
    else:
        passed(r)


_MODES = ("nearest", "linear", "cubic")
_WAYS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip


OPERATORS = (
    Operator(
        "Resize", operands=("...", "r", "s", "z"), import_=resize, sizes=(3,), counts_from=3,
        rows=_rows_resized, choices={"mode": _MODES, "coordinate_transformation_mode": _WAYS},
    ),
    Operator(
        "Upsample", operands=AXES, import_=resize, rows=passed, choices={"mode": _MODES}
    ),
)  # fmt: skip
