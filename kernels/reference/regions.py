"""`roi_align` in NumPy (`kernels/ir/regions.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


def roi_align(x: Numbers, boxes: Numbers, pictures: Numbers, valid: Numbers, attributes: Mapping[str, Any]) -> Numbers:
    """Average or take the largest by the definition, in the precision of x."""
    (_, c, h, w), (rows, columns), points = x.shape, attributes["size"], attributes["points"]
    out = np.zeros((len(boxes), c, rows, columns), x.dtype)
    for row in range(min(len(boxes), int(valid[0]))):
        down = _along(boxes[row, 1], boxes[row, 3], h, rows, attributes)
        across = _along(boxes[row, 0], boxes[row, 2], w, columns, attributes)
        picture = x[min(max(int(pictures[row]), 0), len(x) - 1)]
        corners = [
            picture[:, y][:, :, x_] * (above[:, None] * left) for y, above in down for x_, left in across
        ]  # (c, rows * points, columns * points) each
        shape = (c, rows, points, columns, points)
        if attributes["kind"] == "max":
            out[row] = np.max(corners, axis=0).reshape(shape).max((2, 4))
        else:
            out[row] = np.sum(corners, axis=0).reshape(shape).mean((2, 4))
    return out


Pixels = tuple[Numbers, Numbers]


def _along(low: Any, high: Any, extent: int, parts: int, attributes: Mapping[str, Any]) -> list[Pixels]:
    """The pixels before and behind each point along an axis, and their shares."""
    count, half = parts * attributes["points"], attributes["half"]
    kind = type(low)
    start = low * kind(attributes["scale"]) - kind(0.5 if half else 0)
    length = high * kind(attributes["scale"]) - kind(0.5 if half else 0) - start
    at = start + (length if half else max(length, kind(1))) * ((np.arange(count) + 0.5) / count).astype(kind)
    inside = ((at >= -1) & (at <= extent)).astype(kind)
    at = np.where(inside > 0, np.clip(at, 0, extent - 1), 0)
    before = np.floor(at).astype(np.int64)
    share = (at - before).astype(kind)
    return [(before, inside * (1 - share)), (np.minimum(before + 1, extent - 1), inside * share)]
