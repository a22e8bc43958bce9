"""Resize to sizes that the model computes from its input: what each element is mixed of, is computed as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from kernels.frontend.onnx.extent import Count, Extent, most
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

from .counts import number, whole_numbers
from .rows import Rows


def _half_pixel(extent: int) -> Expression:
    return ("sub", ("div", ("add", "a", 0.5), ("div", "b", float(extent))), 0.5)


_COORDINATES: Mapping[str, Callable[[int], Expression]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda extent: ("select", ("less", 1.0, "b"), _half_pixel(extent), 0.0),
    "asymmetric": lambda extent: ("div", "a", ("div", "b", float(extent))),
    "align_corners": lambda extent: ("div", ("mul", "a", extent - 1.0), ("max", ("sub", "b", 1.0), 1.0)),
}
"""The place in the source of element `a` of `b`."""
_NEAREST: Mapping[str, Expression] = {
    "round_prefer_floor": c.ceil(("sub", "a", 0.5)),
    "round_prefer_ceil": ("floor", ("add", "a", 0.5)),
    "floor": ("floor", "a"),
    "ceil": c.ceil("a"),
}


def resize(r: Rows) -> None:
    """`sizes` (input 3) are numbers and counts. The result is padded to the largest sizes."""
    x, node = r.operand(0), r.node
    way = str(r.attribute("coordinate_transformation_mode", "half_pixel"))
    asked = {
        "coordinate_transformation_mode": (way, _COORDINATES),
        "mode": (r.attribute("mode", "nearest"), ("nearest", "linear", "cubic")),
        "nearest_mode": (r.attribute("nearest_mode", "round_prefer_floor"), _NEAREST),
        "antialias": (r.attribute("antialias", 0), (0,)),
        "exclude_outside": (r.attribute("exclude_outside", 0), (0,)),
        "keep_aspect_ratio_policy": (r.attribute("keep_aspect_ratio_policy", "stretch"), ("stretch",)),
    }
    for name, (value, known) in asked.items():
        if value not in known:
            node.reject(f"{name} is {value!r}, and its sizes are computed; with such only {', '.join(map(str, known))}")
    rank = len(r.shape(x))
    axes = node.distinct_axes(r.attribute("axes", range(rank)), rank)
    sizes: list[Extent] = whole_numbers(r.to, node.input(3)) or []
    found = {axis: count for axis, count in r.counts(0).items() if axis not in axes}
    for axis, size in zip(axes, sizes, strict=True):
        if axis in r.counts(0) and size != r.counts(0)[axis]:
            r.refuse("their number is changed")
        if isinstance(size, Count):
            found[axis] = size
        if size != r.extents(0)[axis]:
            x = _along(r, x, axis, size, _COORDINATES[way](r.shape(x)[axis]))
    r.end(r.tensor(x))
    r.tell(found)


def _along(r: Rows, x: str, axis: int, size: Extent, coordinate: Expression) -> str:
    """One axis resized."""
    shape, mode = r.shape(x), str(r.attribute("mode", "nearest"))
    extent, width = shape[axis], most(size)
    r.check_size((*shape[:axis], width, *shape[axis + 1 :]))
    at = r.map(coordinate, np.arange(width, dtype=np.float32).reshape(1, width), r.reshape(number(r, size), (1, 1)))
    if mode == "nearest":
        places = r.map(c.clip(_NEAREST[r.attribute("nearest_mode", "round_prefer_floor")], 0.0, extent - 1.0), at)
        r.places(extent)
        return r.gather(x, r.reshape(places, (width,)), axis)
    reach = 2 if mode == "cubic" else 1
    sources = np.arange(-reach, extent + reach)
    x = r.pick(x, axis, np.clip(sources, 0, extent - 1))
    distance: Expression = ("abs", ("sub", "a", "b"))
    parts = _cubic(distance, float(r.attribute("cubic_coeff_a", -0.75))) if mode == "cubic" else (
        "max", ("sub", 1.0, distance), 0.0
    )  # fmt: skip
    weights = r.map(parts, at, sources.astype(np.float32).reshape(-1, 1))
    perm = [k for k in range(len(shape)) if k != axis] + [axis]
    last = r.transpose(x, perm)
    lead = r.shape(last)[:-1]
    product = r.matmul(r.reshape(last, (prod(lead), len(sources))), weights)
    return r.transpose(r.reshape(product, (*lead, width)), np.argsort(perm).tolist())


def _cubic(d: Expression, a: float) -> Expression:
    """Keys, Cubic Convolution Interpolation, 1981."""
    square = ("mul", d, d)
    near = ("add", ("mul", square, ("sub", ("mul", a + 2, d), a + 3)), 1.0)
    far = ("mul", a, ("sub", ("mul", d, ("add", ("mul", d, ("sub", d, 5.0)), 8.0)), 4.0))
    return ("select", ("less", d, 1.0), near, ("select", ("less", d, 2.0), far, 0.0))
