"""RoiAlign: each box of a picture brought to one size, by points between pixels (He et al., Mask R-CNN, 2017)."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.ir import compositions as c

from .steps import Steps


def roi_align(node: OnnxNode, to: Context) -> None:
    """x (N, C, H, W), boxes (R, 4), the number of each one's picture (R) -> (R, C, rows, columns)."""
    s = Steps(node, to)
    x, boxes, pictures = (s.operand(index) for index in range(3))
    if len(s.shape(x)) != 4 or s.shape(boxes)[1:] != (4,) or s.shape(pictures) != s.shape(boxes)[:1]:
        raise ModelError(
            f"node {node.name!r} (RoiAlign): a picture {s.shape(x)}, boxes {s.shape(boxes)} and numbers of pictures "
            f"{s.shape(pictures)} do not fit; expected (N, C, H, W), (R, 4) and (R)"
        )
    (n, channels, h, w), count = s.shape(x), s.shape(boxes)[0]
    size = int(s.attribute("output_height", 1)), int(s.attribute("output_width", 1))
    points, mode = int(s.attribute("sampling_ratio", 0)), str(s.attribute("mode", "avg"))
    if points < 1:
        node.reject("sampling_ratio is 0: how many points it takes depends on the boxes; export it with 1 or more")
    s.places(n * h * w)
    s.check_size((count, channels, *(extent * points for extent in size)))
    rows = s.reshape(s.transpose(x, (0, 2, 3, 1)), (n * h * w, channels))
    first = s.reshape(s.map(("mul", "a", float(h * w)), pictures), (count, 1, 1))
    down = _along(s, boxes, 1, size[0], points, h)
    across = _along(s, boxes, 0, size[1], points, w)
    total, found = prod(size) * points**2, ""
    for (y, above), (x_, left) in product(down, across):
        y, above = (s.reshape(each, (count, size[0] * points, 1)) for each in (y, above))
        x_, left = (s.reshape(each, (count, 1, size[1] * points)) for each in (x_, left))
        places = s.map(("add", ("add", "a", ("mul", "b", float(w))), "c"), first, y, x_)
        weight = s.reshape(s.map(("mul", "a", "b"), above, left), (count, total, 1))
        part = s.map(("mul", "a", "b"), s.gather(rows, s.reshape(places, (count, total)), 0), weight)
        found = s.map(("add" if mode == "avg" else "max", "a", "b"), found, part) if found else part
    found = s.reshape(found, (count, size[0], points, size[1], points, channels))
    kind = "mean" if mode == "avg" else "max"
    for axis in (2, 4):
        found = s.reduce(found, [axis], kind)
    s.end(s.transpose(s.reshape(found, (count, *size, channels)), (0, 3, 1, 2)))


def _along(s: Steps, boxes: str, column: int, parts: int, points: int, extent: int) -> list[tuple[str, str]]:
    """Both pixels beside each point along an axis, and their weights, (R, parts * points); none far outside."""
    usual = "half_pixel" if s.node.opset >= 16 else "output_half_pixel"
    half = s.attribute("coordinate_transformation_mode", usual) == "half_pixel"
    scale, shift = float(s.attribute("spatial_scale", 1.0)), 0.5 if half else 0.0
    corners = [s.slice(boxes, 1, place, place + 1) for place in (column, column + 2)]
    start, end = (s.map(("sub", ("mul", "a", scale), shift), corner) for corner in corners)
    length = s.map(("sub", "b", "a") if half else ("max", ("sub", "b", "a"), 1.0), start, end)
    steps = (np.arange(parts * points, dtype=np.float64) + 0.5) / (parts * points)
    at = s.map(("add", "a", ("mul", "b", "c")), start, length, steps.reshape(1, -1))
    inside = s.map(c.both(c.less_or_equal(-1.0, "a"), c.less_or_equal("a", float(extent))), at)
    at = s.map(c.clip("a", 0.0, extent - 1.0), at)
    low = s.map(("floor", "a"), at)
    high = s.map(("min", ("add", "a", 1.0), extent - 1.0), low)
    weight = s.map(("mul", ("sub", "a", "b"), "c"), at, low, inside)
    return [(low, s.map(("sub", "a", "b"), inside, weight)), (high, weight)]
