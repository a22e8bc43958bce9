"""DeformConv: a convolution whose taps lie between pixels where the network says (Dai et al. 2017, Zhu et al. 2019)."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c

from . import numbers

Corner = tuple[str, str]
"""Places along an axis, and their weights."""


def deform_conv(node: OnnxNode, to: Context) -> None:
    """Each tap is gathered at the four pixels around it; rows of weights times columns of taps are the result."""
    s = Steps(node, to)
    x, weight, offset = (s.operand(index) for index in range(3))
    if len(s.shape(x)) != 4 or len(s.shape(weight)) != 4:
        node.reject(f"a weight of shape {s.shape(weight)} for an input of shape {s.shape(x)}; expected two dimensions")
    (n, channels, *extents), (m, each, *kernel) = s.shape(x), s.shape(weight)
    if [*(said := s.attribute("kernel_shape", kernel))] != kernel:
        node.damaged(f"kernel_shape {said}, and weights of {tuple(kernel)}")
    groups, parts = int(s.attribute("group", 1)), int(s.attribute("offset_group", 1))
    taps, pixels, counts = prod(kernel), prod(extents), s.shape(offset)[2:]
    starts, wanted = _starts(s, extents, kernel)
    if each * groups != channels or m % groups or channels % parts or (n, 2 * parts * taps, *wanted) != s.shape(offset):
        node.damaged(
            f"weights {s.shape(weight)} of {groups} groups and offsets "
            f"{s.shape(offset)} of {parts} groups do not fit {s.shape(x)}"
        )
    points, wide = taps * prod(counts), channels // parts
    s.places(n * parts * pixels)
    s.check_size((n * parts, points, wide))
    moved = s.reshape(offset, (n * parts, taps, 2, prod(counts)))
    down, across = (_corners(s, s.slice(moved, 2, k, k + 1), starts[k], extents[k]) for k in (0, 1))
    rows = s.transpose(s.reshape(x, (n * parts, wide, pixels)), (0, 2, 1))
    rows = s.reshape(rows, (n * parts * pixels, wide))
    first, found = (np.arange(n * parts) * pixels).reshape(-1, 1, 1, 1), ""
    for (y, above), (column, left) in product(down, across):
        place = s.map(("add", ("add", ("mul", "a", float(extents[1])), "b"), "c"), y, column, first)
        share = s.reshape(s.map(("mul", "a", "b"), above, left), (n * parts, points, 1))
        part = s.map(("mul", "a", "b"), s.gather(rows, s.reshape(place, (n * parts, points)), 0), share)
        found = s.map(("add", "a", "b"), found, part) if found else part
    if s.has(4):
        found = s.map(("mul", "a", "b"), found, s.reshape(s.operand(4), (n * parts, points, 1)))
    found = s.transpose(s.reshape(found, (n * parts, taps, prod(counts), wide)), (0, 3, 1, 2))
    depth, lead = each * taps, (n, groups) if n > 1 else (groups,)
    rows_of_weights = s.reshape(weight, (groups, m // groups, depth))
    made = s.matmul(rows_of_weights, s.reshape(found, (*lead, depth, prod(counts))))
    made = s.reshape(made, (n, m, *counts))
    s.end(s.map(("add", "a", "b"), made, s.reshape(s.operand(3), (m, 1, 1))) if s.has(3) else made)


def _starts(s: Steps, extents: list[int], kernel: list[int]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Return along each axis the places of the taps of each window that is not moved, and how many windows there
    are."""
    strides, dilations, pads = numbers(s, "strides", 2, 1), numbers(s, "dilations", 2, 1), numbers(s, "pads", 4, 0)
    counts = [
        (extents[k] + pads[k] + pads[2 + k] - dilations[k] * (kernel[k] - 1) - 1) // strides[k] + 1 for k in (0, 1)
    ]
    if min(counts) < 1:
        s.node.damaged(f"a window of {kernel} does not fit into {extents}")
    taps, windows = np.indices(kernel).reshape(2, -1, 1), np.indices(counts).reshape(2, 1, -1)
    starts = [(taps[k] * dilations[k] + windows[k] * strides[k] - pads[k])[:, None] for k in (0, 1)]
    return starts, tuple(counts)


def _corners(s: Steps, moved: str, start: np.ndarray, extent: int) -> list[Corner]:
    """Both pixels beside each tap along an axis; those outside of the picture weigh nothing."""
    at = s.map(("add", "a", "b"), moved, start)
    low = s.map(("floor", "a"), at)
    last = extent - 1.0
    found = []
    for step, weight in ((0.0, ("sub", 1.0, ("sub", "b", "a"))), (1.0, ("sub", "b", "a"))):
        beside = ("add", "a", step)
        inside = c.both(c.less_or_equal(0.0, beside), c.less_or_equal(beside, last))
        found.append((s.map(c.clip(beside, 0.0, last), low), s.map(("mul", inside, weight), low, at)))
    return found
