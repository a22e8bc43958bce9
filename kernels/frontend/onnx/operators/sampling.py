"""GridSample: a picture, or a volume, at computed coordinates.

A step along each axis says which elements are mixed and with which weights; then each choice of one element an axis is
gathered and added. What lies beyond the border is clamped or reflected element by element, as PyTorch and onnxruntime
do; ONNX's reference implementation clamps the coordinate before, which differs where cubic weights reach over it.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows.counts import number
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names before opset 20."""
_SHARPNESS = -0.75
"""Keys' parameter, as ONNX says it."""


def affine_grid(node: OnnxNode, to: Context) -> None:
    """ONNX's own function for it drops the batch where it is one."""
    s = Steps(node, to)
    theta, size = s.operand(0), s.whole_numbers(1) or []
    count = len(size) - 2
    if count not in (2, 3) or min(size) < 1 or s.shape(theta) != (size[0], count, count + 1):
        node.damaged(f"theta of {s.shape(theta)} does not fit a size of {size}")
    s.check_size((size[0], *size[2:], count))
    to.reserve(node, 4 * prod(size[2:]) * (count + 1))
    ends = bool(s.attribute("align_corners", 0))
    if ends and min(size[2:]) == 1:
        node.reject(
            "align_corners with an axis of one element: runtimes disagree on its place (onnxruntime 1, ONNX's "
            "reference -1, PyTorch 0); leave align_corners out, or export without that axis"
        )
    along = [np.linspace(-1, 1, n) if ends else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
    places = [*reversed(np.meshgrid(*along, indexing="ij")), np.ones(size[2:])]
    flat = s.constant(np.stack(places, -1).reshape(1, -1, count + 1))
    s.end(s.reshape(s.matmul(flat, s.transpose(theta, (0, 2, 1))), (size[0], *size[2:], count)))


def grid_sample(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, grid = s.operand(0), s.operand(1)
    (n, channels, *extents), places = s.shape(x), s.shape(grid)
    rank = len(extents)
    if rank not in (1, 2, 3):
        node.reject(f"a picture of {rank} dimensions; 1 to 3 are supported")
    if len(places) != rank + 2 or places[0] != n or places[-1] != rank:
        node.damaged(f"a grid of shape {places} does not fit {s.shape(x)}")
    s.places(n * prod(extents))
    count = prod(places[1:-1])
    flat = s.reshape(grid, (n, count, rank))
    axes = [_Axis(s, s.slice(flat, 2, rank - 1 - k, rank - k), extent) for k, extent in enumerate(extents)]
    rows = s.reshape(s.transpose(x, (0, *range(2, rank + 2), 1)), (n * prod(extents), channels))
    first = s.constant((np.arange(n) * prod(extents)).reshape(n, 1, 1))
    found = ""
    for taps in product(*(axis.taps for axis in axes)):
        number = first
        for k, (place, _) in enumerate(taps):
            number = s.map(("add", "a", ("mul", "b", float(prod(extents[k + 1 :])))), number, place)
        part = s.gather(rows, s.reshape(number, (n, count)), 0)
        weights = [weight for _, weight in taps if weight]
        for weight in weights[1:]:
            weights[0] = s.map(("mul", "a", "b"), weights[0], weight)
        if weights:
            part = s.map(("mul", "a", "b"), part, weights[0])
        found = s.map(("add", "a", "b"), found, part) if found else part
    s.end(s.reshape(s.transpose(found, (0, 2, 1)), (n, channels, *places[1:-1])))


class _Axis:
    """The elements of an axis that are mixed: `taps` has places and weights ('': 1), each of shape (N, points, 1)."""

    def __init__(self, s: Steps, coordinate: str, extent: int) -> None:
        self.s, self.extent = s, extent
        aligned = bool(s.attribute("align_corners", 0))
        self.least, self.most = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
        self.padding = str(s.attribute("padding_mode", "zeros"))
        given = str(s.attribute("mode", "bilinear" if s.node.opset < 20 else "linear"))
        mode = _MODES.get(given, given)
        if self.padding not in ("zeros", "border", "reflection") or mode not in ("nearest", "linear", "cubic"):
            s.node.reject(f"mode {given!r} with padding {self.padding!r}")
        place: Expression = ("mul", ("add", "a", 1.0), 0.5 * (extent - 1))
        if not aligned:
            place = ("mul", ("sub", ("mul", ("add", "a", 1.0), float(extent)), 1.0), 0.5)
        at = s.map(("round", place) if mode == "nearest" else place, coordinate)
        if mode == "nearest":
            self.taps = [self._tap(at, "")]
            return
        low = s.map(("floor", "a"), at)
        part = s.map(("sub", "a", "b"), at, low)
        weights = (_LINEAR if mode == "linear" else _CUBIC).items()
        self.taps = [
            self._tap(s.map(("add", "a", float(offset)), low), s.map(weight, part)) for offset, weight in weights
        ]

    def _reflected(self, place: Expression) -> Expression:
        """A whole place between the borders, by reflections at them."""
        period = 2 * (self.most - self.least)
        if not period:
            return ("mul", place, 0.0)
        turned = c.remainder(("sub", place, self.least), period)
        return ("round", ("add", ("min", turned, ("sub", period, turned)), self.least))

    def _tap(self, place: str, weight: str) -> tuple[str, str]:
        s, last = self.s, self.extent - 1.0
        if self.padding == "zeros":
            inside = c.both(c.less_or_equal(0.0, "a"), c.less_or_equal("a", last))
            weight = s.map(("mul", inside, "b"), place, weight) if weight else s.map(inside, place)
        elif self.padding == "reflection":
            place = s.map(self._reflected("a"), place)
        return s.map(c.clip("a", 0.0, last), place), weight


def _cubic(distance: Expression, near: bool) -> Expression:
    """Keys, Cubic convolution interpolation for digital image processing, 1981, of a distance of at most 1, or of 2."""
    a = _SHARPNESS
    factors = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
    found: Expression = factors[0]
    for factor in factors[1:]:
        found = ("add", ("mul", found, distance), factor)
    return found


_LINEAR: dict[int, Expression] = {0: ("sub", 1.0, "a"), 1: ("add", "a", 0.0)}
_CUBIC: dict[int, Expression] = {
    -1: _cubic(("add", 1.0, "a"), False),
    0: _cubic("a", True),
    1: _cubic(("sub", 1.0, "a"), True),
    2: _cubic(("sub", 2.0, "a"), False),
}
"""Offsets of neighbours, and the weight of each by the distance from the first one to the left."""


def roi_align(node: OnnxNode, to: Context) -> None:
    """x (N, C, H, W), boxes (R, 4), the number of each one's picture (R) -> (R, C, rows, columns)."""
    s = Steps(node, to)
    x, boxes, pictures = (s.operand(index) for index in range(3))
    if len(s.shape(x)) != 4 or s.shape(boxes)[1:] != (4,) or s.shape(pictures) != s.shape(boxes)[:1]:
        node.damaged(
            f"a picture {s.shape(x)}, boxes {s.shape(boxes)} and numbers of pictures "
            f"{s.shape(pictures)} do not fit; expected (N, C, H, W), (R, 4) and (R)"
        )
    count, mode = s.shape(boxes)[0], str(s.attribute("mode", "avg"))
    size = int(s.attribute("output_height", 1)), int(s.attribute("output_width", 1))
    if (points := int(s.attribute("sampling_ratio", 0))) < 1:
        node.reject("sampling_ratio is 0: how many points it takes depends on the boxes; export it with 1 or more")
    s.check_size((count, s.shape(x)[1], *size))
    usual = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    counted = to.counts.get(boxes, {}).get(0)
    valid = s.constant(np.array([count])) if counted is None else number(s, counted)
    attributes = {
        "size": size, "points": points, "kind": "mean" if mode == "avg" else "max",
        "scale": float(s.attribute("spatial_scale", 1.0)),
        "half": s.attribute("coordinate_transformation_mode", usual) == "half_pixel",
    }  # fmt: skip
    s.end(s.emit("roi_align", [s.tensor(each) for each in (x, boxes, pictures, valid)], attributes))


def _aligned(r: Rows) -> None:
    """RoiAlign."""
    r.only(0, (), "is looked along")
    r.only(1, (0,), "is looked along")
    if r.counts(1) != r.counts(2):
        r.differ()
    r.import_from()
    r.tell(r.counts(1))


OPERATORS = (
    Operator("AffineGrid", import_=affine_grid),
    Operator(
        "GridSample", import_=grid_sample, choices={"mode": ("bilinear", "bicubic", "nearest", "linear", "cubic")}
    ),
    Operator(
        "RoiAlign", import_=roi_align, rows=_aligned,
        choices={"mode": ("avg", "max"), "coordinate_transformation_mode": ("half_pixel", "output_half_pixel")},
    ),
)  # fmt: skip
