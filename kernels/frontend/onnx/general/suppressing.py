"""NonMaxSuppression: the best box left is chosen, and those that overlap it go, as often as the model says. NonZero.

How many boxes are chosen, or elements are not 0, depends on the input, and shapes are static: the places behind the
last one hold -1 (`PADDING`). Which operators may read such a result is in `READERS`: those that treat each row by
itself, or copy it.
"""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode

from . import ordering
from .steps import Steps

PADDING = -1.0
MOST_ROUNDS = 512
"""Boxes of one class that are chosen one after the other: each takes some eight steps of the plan."""
MOST_ELEMENTS = 1 << 16
"""Of which NonZero sorts out those that are not 0."""
READERS = frozenset(
    ("Add", "Cast", "Div", "Gather", "GatherND", "Identity", "Mul", "Sigmoid", "Slice", "Split", "Squeeze", "Sub")
) | {"RoiAlign", "Transpose", "Unsqueeze"}
"""What may read rows of which the last ones may be padding."""

_GONE = float(np.finfo(np.float32).min)
"""Score of a box that is chosen already, overlaps one that is, or scores too little."""


def check_reader(node: OnnxNode, to: Context) -> None:
    """Raise UnsupportedNode for a node whose result would depend on how many rows are padding."""
    padded = [name for name in node.inputs if name in to.padded]
    if not padded:
        return
    from_end = node.op == "Slice" and _counts_from_end(node, to)
    if node.op not in READERS or from_end:
        what = "a slice that counts from the end" if from_end else node.op
        node.reject(
            f"input {padded[0]!r} comes from a NonMaxSuppression or NonZero, whose result is padded with -1 because "
            f"shapes are static: {what} would count these too. Cut the "
            f"model there (onnx.utils.extract_model, outputs {padded[0]}) and do this step afterwards"
        )
    to.padded.update(filter(None, node.outputs))


def _counts_from_end(node: OnnxNode, to: Context) -> bool:
    bounds = [node.attributes.get("starts", ()), node.attributes.get("ends", ())]
    bounds += [to.constants.get(name, ()) for name in node.inputs[1:3]]
    return any(np.any(np.asarray(bound) < 0) for bound in bounds)


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
    s.end(_rows(s, best, places, (batch, classes, rounds)))
    to.padded.add(node.outputs[0])


def _number(s: Steps, index: int) -> float | None:
    given = s.to.optional_constant(s.node, index)
    return None if given is None else float(np.float32(given.reshape(-1)[0]))


def _chosen(s: Steps, boxes: str, scores: str, rounds: int) -> tuple[str, str]:
    """Score and place of the box of each round, [batch * classes, rounds]; where none was left the score is `_GONE`.

    Of equal scores the first box is the better one. All classes of all pictures take their rounds together."""
    (batch, count, _), classes = s.shape(boxes), s.shape(scores)[1]
    most, least = _number(s, 3) or 0.0, _number(s, 4)
    low, high, area = _corners(s, boxes)
    every = s.reshape(s.concat([low, high, area], 2), (batch * count, 5))
    sides = [s.reshape(s.transpose(part, (0, 2, 1)), (batch, 1, 2, count)) for part in (low, high)]
    own = s.reshape(area, (batch, 1, count))
    left, known = scores, s.value(scores)
    if least is not None:
        enough = ("select", ("less", least, "a"), "a", _GONE)
        left = s.map(enough, scores) if known is None else s.tensor(np.where(known > least, known, _GONE))
    first = np.repeat(np.arange(batch) * count, classes).reshape(batch, classes, 1)
    numbers = np.arange(count, dtype=np.float32)
    found, places = [], []
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
        left = s.map(("select", overlaps, _GONE, "d"), common, own, s.reshape(parts[2], (batch, classes, 1)), left)
        left = s.map(("select", ("equal", "a", "b"), _GONE, "c"), places[-1], numbers, left)
    rows = batch * classes, rounds
    return s.reshape(s.concat(found, 2), rows), s.reshape(s.concat(places, 2), rows)


def _corners(s: Steps, boxes: str) -> tuple[str, str, str]:
    """Both corners, [batch, boxes, 2], the lower first, and areas, [batch, boxes, 1]."""
    one, two = (s.slice(boxes, 2, start, start + 2) for start in (0, 2))
    if s.attribute("center_point_box", 0):
        low, high = (s.map((to, "a", ("mul", "b", 0.5)), one, two) for to in ("sub", "add"))
    else:
        low, high = (s.map((of, "a", "b"), one, two) for of in ("min", "max"))
    return low, high, s.reduce(s.map(("sub", "a", "b"), high, low), [2], "prod")


def _rows(s: Steps, best: str, places: str, shape: tuple[int, int, int]) -> str:
    """Those that were chosen, in their order, before the padding."""
    batch, classes, rounds = shape
    total = batch * classes * rounds
    chosen = s.reshape(s.map(("less", _GONE, "a"), best), (1, total))
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
    total = prod(shape)
    if not shape or total > MOST_ELEMENTS:
        node.reject(
            f"its input of shape {shape} is computed; only of 1 to {MOST_ELEMENTS} elements along axes are supported"
        )
    s.places(total)
    other = s.reshape(s.map(("sub", 1.0, ("equal", "a", 0.0)), x), (1, total))
    kept, order = ordering.by_size(s, other, total)
    table = s.constant(np.indices(shape).reshape(len(shape), total))
    places = s.gather(table, s.reshape(order, (total,)), 1)
    s.end(s.map(("select", "a", "b", PADDING), s.reshape(kept, (1, total)), places))
    to.padded.add(node.outputs[0])
