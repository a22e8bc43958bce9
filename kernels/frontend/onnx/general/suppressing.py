"""NonMaxSuppression: the best box left is chosen, and those that overlap it go, as often as the model says. NonZero.

How many boxes are chosen, or elements are not 0, depends on the input, and shapes are static: the places behind the
last one hold -1 (`PADDING`), and a count says how many are before (`counts.py`).
"""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode

from . import ordering
from .padded.extent import Count
from .padded.rows import PADDING
from .steps import Steps

MOST_ROUNDS = 1024
"""Boxes of one class that are chosen one after the other: each takes some eight steps of the plan."""
MOST_PAIRS = 1 << 24
"""Of boxes of which it is computed before whether they overlap."""
GONE = float(np.finfo(np.float32).min)
"""Score of a box that is chosen already, overlaps one that is, or scores too little."""


def non_max_suppression(node: OnnxNode, to: Context) -> None:
    """Rows (batch, class, box), by batch, class and the order in which the boxes were chosen."""
    s = Steps(node, to)
    boxes, scores = s.operand(0), s.operand(1)
    given, of = s.shape(boxes), s.shape(scores)
    if len(given) != 3 or len(of) != 3 or given[2] != 4 or (of[0], of[2]) != given[:2]:
        raise ModelError(
            f"node {node.name!r} ({node.op}): boxes have the shape {given}, scores {of}; expected "
            "(batch, boxes, 4) and (batch, classes, boxes)"
        )
    (batch, count, _), classes = given, of[1]
    rounds = min((s.whole_numbers(2) or [0])[0], count)
    if rounds < 1:
        raise ModelError(f"node {node.name!r} ({node.op}): max_output_boxes_per_class is 0 or absent: it chooses none")
    if rounds > MOST_ROUNDS:
        node.reject(
            f"it may choose {rounds} boxes of a class; at most {MOST_ROUNDS} are supported: export the model with a "
            "smaller max_output_boxes_per_class"
        )
    s.places(batch * max(count, classes * rounds))
    best, places = _chosen(s, boxes, scores, rounds)
    total = batch * classes * rounds
    chosen = s.reshape(s.map(("less", GONE, "a"), best), (1, total))
    s.end(_rows(s, chosen, places, (batch, classes, rounds)))
    to.counts[node.outputs[0]] = {0: Count(s.reshape(s.reduce(chosen, [1], "sum"), (1,)), 0, total)}


def _number(s: Steps, index: int) -> float | None:
    given = s.to.optional_constant(s.node, index)
    return None if given is None else float(np.float32(given.reshape(-1)[0]))


def _chosen(s: Steps, boxes: str, scores: str, rounds: int) -> tuple[str, str]:
    """Score and place of the box of each round, [batch * classes, rounds]; where none was left the score is `GONE`.

    Of equal scores the first box is the better one. All classes of all pictures take their rounds together."""
    (batch, count, _), classes = s.shape(boxes), s.shape(scores)[1]
    most, least = _number(s, 3) or 0.0, _number(s, 4)
    low, high, area = _corners(s, boxes)
    every = s.reshape(s.concat([low, high, area], 2), (batch * count, 5))
    sides = [s.reshape(s.transpose(part, (0, 2, 1)), (batch, 1, 2, count)) for part in (low, high)]
    own = s.reshape(area, (batch, 1, count))
    left, known = scores, s.value(scores)
    if least is not None:
        enough = ("select", ("less", least, "a"), "a", GONE)
        left = s.map(enough, scores) if known is None else s.tensor(np.where(known > least, known, GONE))
    first = np.repeat(np.arange(batch) * count, classes).reshape(batch, classes, 1)
    numbers = np.arange(count, dtype=np.float32)
    found, places = [], []
    if batch * classes == 1 and count * count <= MOST_PAIRS and rounds > 1:
        return _by_pairs(s, left, _overlaps(s, (low, high, area), most), rounds)
    for _ in range(rounds):
        found.append(s.reduce(left, [2], "max"))
        places.append(s.reduce(left, [2], "argmax"))
        if len(places) == rounds:
            break
        row = s.map(("add", "a", "b"), places[-1], first) if batch > 1 else places[-1]
        box = s.gather(every, s.reshape(row, (batch * classes,)), 0)
        parts = [s.slice(box, 1, start, stop) for start, stop in ((0, 2), (2, 4), (4, 5))]
        corners = [s.reshape(part, (batch, classes, 2, 1)) for part in parts[:2]]
        extents = s.map(("max", ("sub", ("min", "b", "d"), ("max", "a", "c")), 0.0), *sides, *corners)
        common = s.reduce(extents, [2], "prod", keep=False)
        union = ("max", ("sub", ("add", "b", "c"), "a"), float(np.finfo(np.float32).tiny))
        overlaps = ("less", most, ("div", "a", union))
        left = s.map(("select", overlaps, GONE, "d"), common, own, s.reshape(parts[2], (batch, classes, 1)), left)
        left = s.map(("select", ("equal", "a", "b"), GONE, "c"), places[-1], numbers, left)
    rows = batch * classes, rounds
    return s.reshape(s.concat(found, 2), rows), s.reshape(s.concat(places, 2), rows)


def _overlaps(s: Steps, corners: tuple[str, str, str], most: float) -> str:
    """Of each two boxes whether they overlap too much, [boxes, boxes]; each overlaps itself."""
    count = s.shape(corners[0])[1]
    sides = [s.reshape(s.transpose(part, (0, 2, 1)), (2, 1, count)) for part in corners[:2]]
    turned = [s.reshape(part, (2, count, 1)) for part in sides]
    extents = s.map(("max", ("sub", ("min", "b", "d"), ("max", "a", "c")), 0.0), *sides, *turned)
    common = s.reshape(s.reduce(extents, [0], "prod"), (count, count))
    own, other = s.reshape(corners[2], (1, count)), s.reshape(corners[2], (count, 1))
    union = ("max", ("sub", ("add", "b", "c"), "a"), float(np.finfo(np.float32).tiny))
    over = s.map(("less", most, ("div", "a", union)), common, own, other)
    numbers = np.arange(count, dtype=np.float32)
    return s.map(("max", "a", ("equal", "b", "c")), over, numbers, numbers[:, None])


def _by_pairs(s: Steps, left: str, overlaps: str, rounds: int) -> tuple[str, str]:
    """The rounds of one class of one picture."""
    count = s.shape(overlaps)[0]
    left, found, places = s.reshape(left, (1, count)), [], []
    for _ in range(rounds):
        found.append(s.reduce(left, [1], "max"))
        places.append(s.reduce(left, [1], "argmax"))
        if len(places) < rounds:
            row = s.gather(overlaps, s.reshape(places[-1], (1,)), 0)
            left = s.map(("select", "a", GONE, "b"), row, left)
    return s.concat(found, 1), s.concat(places, 1)


def _corners(s: Steps, boxes: str) -> tuple[str, str, str]:
    """Both corners, [batch, boxes, 2], the lower first, and areas, [batch, boxes, 1]."""
    one, two = (s.slice(boxes, 2, start, start + 2) for start in (0, 2))
    if s.attribute("center_point_box", 0):
        low, high = (s.map((to, "a", ("mul", "b", 0.5)), one, two) for to in ("sub", "add"))
    else:
        low, high = (s.map((of, "a", "b"), one, two) for of in ("min", "max"))
    return low, high, s.reduce(s.map(("sub", "a", "b"), high, low), [2], "prod")


def _rows(s: Steps, chosen: str, places: str, shape: tuple[int, int, int]) -> str:
    """Those that were chosen, in their order, before the padding."""
    batch, classes, rounds = shape
    total = batch * classes * rounds
    places = s.reshape(places, (total, 1))
    numbers = np.indices(shape).reshape(3, total)[:2].T
    if batch * classes == 1:  # they are in front already
        rows, kept = s.concat([s.constant(numbers), places], 1), s.reshape(chosen, (total, 1))
    else:
        kept, order = ordering.by_size(s, chosen, total)
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
    places, count = ordering.true_places(s, s.reshape(s.map(("sub", 1.0, ("equal", "a", 0.0)), x), (total,)))
    table = s.constant(np.indices(shape).reshape(len(shape), total))
    found = s.gather(table, places, 1) if len(shape) > 1 else s.reshape(places, (1, total))
    numbers = np.arange(total, dtype=np.float32)
    s.end(s.map(("select", ("less", "a", "b"), "c", PADDING), numbers, count, found))
    to.counts[node.outputs[0]] = {1: Count(count, 0, total)}
    to.made["NonZero", x] = node.outputs[0]
