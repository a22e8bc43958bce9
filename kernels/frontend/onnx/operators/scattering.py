"""Elements put into a tensor, or combined with those that are there."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows.counts import number
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps
from kernels.ir.compositions import less_or_equal, remainder
from kernels.ir.expressions import Expression

from .parts import along, element_numbers, inside, place
from .windows.maxima import followed, put_back

_MOST_ROUNDS = 64
_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -3.4028234663852886e38, "min": 3.4028234663852886e38}


def scatter_elements(node: OnnxNode, to: Context) -> None:
    """Scatter along an axis."""
    s = Steps(node, to)
    x, indices, updates = s.operand(0), s.operand(1), s.operand(2)
    shape, places = s.shape(x), s.value(indices)
    _require(s, updates, s.shape(indices))
    axis = node.axis(s.attribute("axis", 0), len(shape))
    if places is not None and _scattered(s, x, along(node, shape, places, axis), updates):
        return
    given = s.shape(indices)
    if axis == len(shape) - 1 and _reduction(s) == "none" and _by_windows(s, x, indices, updates, apart=True):
        return
    if any(k != axis and a != b for k, (a, b) in enumerate(zip(given, shape, strict=True))):
        node.reject(
            f"indices of shape {given} for {shape}: where they are computed, or name a place more than {_MOST_ROUNDS} "
            f"times, only axis {axis} may differ"
        )
    rest = [k for k in range(len(shape)) if k != axis]
    others, rows, count = prod(shape[k] for k in rest), shape[axis], given[axis]
    shared = _is_expanded(s, indices, rest)
    order = [axis, *rest] if shared else [*rest, axis]

    def turned(name: str, extent: int) -> str:
        return s.reshape(s.transpose(name, order), (1, extent, others) if shared else (others, extent, 1))

    chosen = turned(indices, count)
    chosen = s.slice(chosen, 2, 0, 1) if shared else chosen
    batch = 1 if shared else others
    found = combined(s, turned(x, rows), s.reshape(chosen, (batch, count)), turned(updates, count))
    back = s.reshape(found, [shape[k] for k in order])
    s.end(s.transpose(back, [order.index(k) for k in range(len(shape))]))


def _is_expanded(s: Steps, name: str, axes: list[int]) -> bool:
    """Return whether a tensor is the same all along these axes, because it was broadcast to them."""
    value = s.value(name)
    if value is not None:
        return bool(np.all(value == value[tuple(slice(1) if k in axes else slice(None) for k in range(value.ndim))]))
    made = {node.output: node for node in s.to.nodes}
    node = made.get(name)
    while node and node.op == "reshape" and s.shape(node.inputs[0]) == s.shape(name):
        node = made.get(node.inputs[0])
    return bool(node and node.op == "take" and not any(node.attributes["strides"][axis] for axis in axes))


def scatter_nd(node: OnnxNode, to: Context) -> None:
    """Rows of the first axes."""
    s = Steps(node, to)
    x, indices, updates = s.operand(0), s.operand(1), s.operand(2)
    shape, given, places = s.shape(x), s.shape(indices), s.value(indices)
    depth = given[-1]
    if depth > len(shape):
        node.damaged(f"indices of shape {given} do not fit {shape}")
    _require(s, updates, (*given[:-1], *shape[depth:]))
    if places is not None:
        coordinates = tuple(inside(node, places[..., k], shape[k]) for k in range(depth))
        if _scattered(s, x, np.asarray(element_numbers(shape)[coordinates]), updates):
            return
    if depth == len(shape) and _reduction(s) == "none" and _by_windows(s, x, indices, updates, apart=False):
        return
    count, rows, wide = prod(given[:-1]), prod(shape[:depth]), prod(shape[depth:])
    chosen: str | AnyArray = np.zeros((1, count))
    for k in range(depth):
        part = s.reshape(s.slice(indices, len(given) - 1, k, k + 1), (1, count))
        chosen = s.map(place(prod(shape[k + 1 : depth]), shape[k]), part, chosen)
    s.places(rows)
    found = combined(s, s.reshape(x, (1, rows, wide)), s.tensor(chosen), s.reshape(updates, (1, count, wide)))
    s.end(s.reshape(found, shape))


def tensor_scatter(node: OnnxNode, to: Context) -> None:
    """A cache with new rows one behind the other, from a computed row on; past the end, if it is a circle."""
    s = Steps(node, to)
    cache, update = s.operand(0), s.operand(1)
    shape, new = s.shape(cache), s.shape(update)
    axis = node.axis(s.attribute("axis", -2), len(shape))
    (batch, *_), count, length = shape, new[axis], shape[axis]
    if axis == 0 or count > length or any(a != b for k, (a, b) in enumerate(zip(shape, new, strict=True)) if k != axis):
        node.damaged(f"rows of shape {new} do not fit a cache of shape {shape}")
    lead, inner, both = prod(shape[:axis]), prod(shape[axis + 1 :]), length + count
    s.places(lead * both)
    begin = s.reshape(s.operand(2), (batch, 1, 1)) if s.has(2) else np.zeros((batch, 1, 1))
    past: Expression = ("sub", "b", "a")
    if str(s.attribute("mode", "linear")) == "circular":
        past = remainder(past, float(length))
    fresh = ("mul", less_or_equal(0.0, past), ("less", past, float(count)))
    number: Expression = ("add", "c", ("select", fresh, ("add", past, float(length)), "b"))
    own = (np.arange(lead) * both).reshape(batch, -1, 1)
    numbers = s.map(number, begin, np.arange(length, dtype=np.int32), own)
    rows = s.reshape(s.concat([cache, update], axis), (lead * both, inner))
    s.end(s.reshape(s.gather(rows, s.reshape(numbers, (lead * length,)), 0), shape))


def _by_windows(s: Steps, x: str, indices: str, updates: str, *, apart: bool) -> bool:
    """Scatter by places that a max pooling found, counted in each row (`apart`) or among all elements of x; False: of
    other places."""
    known = followed(s.to, indices)
    if known is None:
        return False
    of, added = known
    shape = s.shape(x)
    first = np.arange(of.rows) * of.plane
    begins = first * (not apart)
    if prod(shape) != of.rows * of.plane or (shape[-1] != of.plane if apart else len(shape) != 1):
        return False
    if s.shape(indices)[-1] != (prod(of.counts) if apart else 1) or np.any(added != (begins - first)[:, None]):
        return False
    into = s.reshape(x, (of.rows, *of.extents))
    s.end(s.reshape(put_back(s, of, begins, indices, updates, into), shape))
    return True


def combined(s: Steps, x: str, chosen: str, updates: str) -> str:
    """x (batch, rows, wide) with updates (batch, count, wide) at the rows that are chosen, computed (batch, count).

    Each row looks for its updates. What is added is multiplied by 0 and 1: an infinite one makes NaN of the
    others in its column.
    """
    how = _reduction(s)
    (batch, rows, wide), count = s.shape(x), s.shape(updates)[1]
    s.check_size((batch, rows, count))
    wanted = s.reshape(chosen, (batch, 1, count))
    every = np.arange(rows, dtype=np.int32)
    equal: Expression = ("equal", ("select", ("less", "a", 0.0), ("add", "a", float(rows)), "a"), "b")
    if how == "add":
        hits = s.map(("select", equal, 1.0, 0.0), wanted, every[:, None])
        return s.map(("add", "a", "b"), x, s.matmul(hits, updates))
    order = np.arange(1, count + 1, dtype=np.int32)
    last = s.reduce(s.map(("select", equal, "c", 0.0), wanted, every[:, None], order), [2], "max")
    if how == "none":
        s.places(batch * (rows + count))
        own = (np.arange(batch)[:, None] * (rows + count) + every)[..., None]
        new = ("select", ("less", 0.0, "a"), ("add", "a", float(rows - 1)), 0.0)
        start = (np.arange(batch) * (rows + count)).reshape(batch, 1, 1)
        taken = s.map(("select", ("less", 0.0, "a"), ("add", new, "c"), "b"), last, own, start)
        both = s.reshape(s.concat([x, updates], 1), (batch * (rows + count), wide))
        return s.reshape(s.gather(both, s.reshape(taken, (batch * rows,)), 0), (batch, rows, wide))
    s.check_size((batch, rows, count, wide))
    named = s.map(
        ("select", equal, "c", _NEUTRAL[how]), s.reshape(wanted, (batch, 1, count, 1)), every[:, None, None],
        s.reshape(updates, (batch, 1, count, wide)),
    )  # fmt: skip
    made = s.reduce(named, [2], _REDUCTIONS[how], keep=False)
    return s.map(("select", ("less", 0.0, "c"), (how, "a", "b"), "a"), x, made, last)


def _reduction(s: Steps) -> str:
    how = str(s.attribute("reduction", "none"))
    if how != "none" and how not in _REDUCTIONS:
        s.node.reject(f"reduction {how!r}; supported: none, {', '.join(_REDUCTIONS)}")
    return how


def _require(s: Steps, updates: str, wanted: tuple[int, ...]) -> None:
    """Raise ModelError where the updates do not have this shape."""
    if s.shape(updates) != wanted:
        s.node.damaged(f"updates of shape {s.shape(updates)}; its indices ask for {wanted}")


def _scattered(s: Steps, x: str, places: AnyArray, updates: str) -> bool:
    """x with the elements at these places replaced, or combined with others: with one each at a time. False where that
    would be too often."""
    how = _reduction(s)
    shape, flat = s.shape(x), places.reshape(-1)
    size = prod(shape)
    times = _times_before(flat) if how != "none" else np.zeros_like(flat)
    if times.max() >= _MOST_ROUNDS:
        return False
    for count in range(int(times.max()) + 1):
        chosen = np.flatnonzero(times == count)
        from_where = np.arange(size)
        from_where[flat[chosen]] = size + chosen
        both = s.concat([s.reshape(x, (size,)), s.reshape(updates, (flat.size,))], 0)
        new = s.elements(both, from_where.reshape(shape))
        touched = (from_where >= size).reshape(shape)
        x = new if how == "none" else s.map(("select", "c", (how, "a", "b"), "a"), x, new, touched)
    s.end(x)
    return True


def _times_before(flat: AnyArray) -> AnyArray:
    """Return how often each place was named before, of places in any order."""
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    found = np.empty_like(flat)
    found[order] = np.arange(flat.size) - np.repeat(starts, np.diff(np.r_[starts, flat.size]))
    return found


def _rows_scattered(r: Rows) -> None:
    """Updates that are padding go nowhere. ScatterND's numbers may be computed apart: ONNX asks for as many of both."""
    shape = r.shape(r.operand(0))
    elements = r.node.op != "ScatterND"
    axis = r.node.axis(r.attribute("axis", 0), len(shape)) if elements else 0
    named = [axis] if elements else range(r.shape(r.operand(1))[-1])
    if len(named) > 1 and any(k in r.counts(0) for k in named):
        r.refuse("several indices name such rows")
    r.only(1, (axis,), "is looked along")
    indices, updates = r.operand(1), r.operand(2)
    counted = r.counts(2).get(axis)
    if elements and counted != r.counts(1).get(axis):
        r.differ()
    source = r.to.spread.get(indices, "")
    shared = bool(source) and all(k == axis or extent == 1 for k, extent in enumerate(r.shape(source)))
    name = source if shared else indices
    if count := r.counts(0).get(axis):
        held = r.reshape(number(r, count), (1,) * len(r.shape(name)))
        name = r.map(("select", ("less", "a", 0.0), ("add", "a", "b"), "a"), r.tensor(name), held)
    for count in dict.fromkeys(filter(None, (r.counts(1).get(axis), counted))):
        name = r.covered(name, {axis: count}, float(max(shape[k] for k in named)))
    if shared:
        name = r.expand(name, r.shape(indices))
    if not elements:
        many = min(r.shape(indices)[0], r.shape(updates)[0])
        name, updates = r.slice(name, 0, 0, many), r.slice(updates, 0, 0, many)
    r.to.types[name] = np.dtype(np.int64)
    r.import_from(None, name, updates)
    r.tell(r.counts(0))


_WAYS = {"reduction": ("none", *_REDUCTIONS)}


OPERATORS = (
    Operator("Scatter", import_=scatter_elements, rows=_rows_scattered),
    Operator("ScatterElements", import_=scatter_elements, rows=_rows_scattered, choices=_WAYS),
    Operator("ScatterND", import_=scatter_nd, rows=_rows_scattered, choices=_WAYS),
    Operator("TensorScatter", import_=tensor_scatter, choices={"mode": ("linear", "circular")}),
)
