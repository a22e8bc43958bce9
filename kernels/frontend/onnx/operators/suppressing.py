"""NonMaxSuppression: of boxes in the order of their scores those are chosen that overlap none before. NonZero.

How many boxes are chosen, or elements are not 0, depends on the input, and shapes are static: the places behind the
last one hold -1 (`PADDING`), and a count says how many are before (`counts.py`).
"""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows.rows import PADDING, Rows
from kernels.frontend.onnx.extent import Count
from kernels.frontend.onnx.operator import Operator, Values
from kernels.frontend.onnx.steps import Steps

MOST_ROUNDS = 1024
"""Boxes that a class chooses: a work-group keeps their places in local memory."""
GONE = float(np.finfo(np.float32).min)
"""Score of a box that is chosen already, overlaps one that is, or scores too little."""


def non_max_suppression(node: OnnxNode, to: Context) -> None:
    """Rows (batch, class, box), by batch, class and the order in which the boxes were chosen."""
    s = Steps(node, to)
    boxes, scores = s.operand(0), s.operand(1)
    given, of = s.shape(boxes), s.shape(scores)
    if len(given) != 3 or len(of) != 3 or given[2] != 4 or (of[0], of[2]) != given[:2]:
        node.damaged(
            f"boxes have the shape {given}, scores {of}; expected (batch, boxes, 4) and (batch, classes, boxes)"
        )
    (batch, count, _), classes = given, of[1]
    rounds = min((s.whole_numbers(2) or [0])[0], count)
    if rounds < 1:
        node.damaged("max_output_boxes_per_class is 0 or absent: it chooses none")
    if rounds > MOST_ROUNDS:
        node.reject(
            f"it may choose {rounds} boxes of a class; at most {MOST_ROUNDS} are supported: export the model with a "
            "smaller max_output_boxes_per_class"
        )
    s.places(batch * max(count, classes * rounds))
    places = _chosen(s, boxes, scores, rounds)
    total = batch * classes * rounds
    chosen = s.reshape(s.map(("less", -1.0, "a"), places), (1, total))
    s.end(_rows(s, chosen, places, (batch, classes, rounds)))
    to.counts[node.outputs[0]] = {0: Count(s.reshape(s.reduce(chosen, [1], "sum"), (1,)), 0, total)}


def _number(s: Steps, index: int) -> float | None:
    given = s.to.optional_constant(s.node, index)
    return None if given is None else float(np.float32(given.reshape(-1)[0]))


def _chosen(s: Steps, boxes: str, scores: str, rounds: int) -> str:
    """Places of the boxes that each class takes, in their order, then -1, [batch * classes, rounds]."""
    (batch, count, _), classes = s.shape(boxes), s.shape(scores)[1]
    left, known, least = scores, s.value(scores), _number(s, 4)
    if least is not None:
        enough = ("select", ("less", least, "a"), "a", GONE)
        left = s.map(enough, scores) if known is None else s.tensor(np.where(known > least, known, GONE))
    left = s.reshape(left, (batch * classes, count))
    valid = s.reduce(s.map(("less", GONE, "a"), left), [1], "sum")
    order = s.sort(left, count, "places")
    attributes = {"rounds": rounds, "overlap": _number(s, 3) or 0.0}
    return s.emit("suppress", (s.concat([*_corners(s, boxes)], 2), order, valid), attributes)


def _corners(s: Steps, boxes: str) -> tuple[str, str, str]:
    """Both corners, [batch, boxes, 2], the lower first, and areas, [batch, boxes, 1]."""
    one, two = (s.slice(boxes, 2, start, start + 2) for start in (0, 2))
    if s.attribute("center_point_box", 0):
        low, high = (s.map((to, "a", ("mul", "b", 0.5)), one, two) for to in ("sub", "add"))
    else:
        low, high = (s.map((of, "a", "b"), one, two) for of in ("min", "max"))
    return low, high, s.reduce(s.map(("sub", "a", "b"), high, low), [2], "prod")


def _rows(s: Steps, chosen: str, places: str, shape: tuple[int, int, int]) -> str:
    """Return the rows that were chosen, in their order, before the padding."""
    batch, classes, rounds = shape
    total = batch * classes * rounds
    places = s.reshape(places, (total, 1))
    numbers = np.indices(shape).reshape(3, total)[:2].T
    if batch * classes == 1:  # they are in front already
        rows, kept = s.concat([s.constant(numbers), places], 1), s.reshape(chosen, (total, 1))
    else:
        order, kept = (s.sort(chosen, total, gives) for gives in ("places", "values"))
        table = s.concat([s.constant(numbers), places], 1)
        rows, kept = s.gather(table, s.reshape(order, (total,)), 0), s.reshape(kept, (total, 1))
    return s.map(("select", "a", "b", PADDING), kept, rows)


def non_zero(node: OnnxNode, to: Context) -> None:
    """Places of what is not 0, (rank, elements), in their order."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    if not shape:
        node.reject("its input is a single number")
    total = prod(shape)
    if (before := to.made.get(("NonZero", x))) is not None:
        s.end(before)
        to.counts[node.outputs[0]] = dict(to.counts[before])
        return
    places, count = s.true_places(s.reshape(s.map(("sub", 1.0, ("equal", "a", 0.0)), x), (total,)))
    table = s.constant(np.indices(shape).reshape(len(shape), total))
    found = s.gather(table, places, 1) if len(shape) > 1 else s.reshape(places, (1, total))
    numbers = np.arange(total, dtype=np.int32)
    s.end(s.map(("select", ("less", "a", "b"), "c", PADDING), numbers, count, found))
    to.counts[node.outputs[0]] = {1: Count(count, 0, total)}
    to.made["NonZero", x] = node.outputs[0]


def _not_zero(r: Rows) -> None:
    r.import_from(r.masked(0, 0.0))


def _suppressed(r: Rows) -> None:
    r.only(0, (1,), "is looked along")
    r.only(1, (2,), "is looked along")
    if r.counts(0).get(1) != r.counts(1).get(2):
        r.differ()
    r.import_from(None, r.masked(1, GONE))


def _places(_: OnnxNode, values: Values) -> AnyArray:
    return np.asarray(np.nonzero(values[0]), np.int64)


def _places_bytes(_: OnnxNode, values: Values) -> int:
    return 8 * int(np.count_nonzero(values[0])) * int(values[0].ndim)


OPERATORS = (
    Operator("NonMaxSuppression", import_=non_max_suppression, rows=_suppressed),
    Operator("NonZero", import_=non_zero, rows=_not_zero, fold=_places, fold_bytes=_places_bytes),
)
