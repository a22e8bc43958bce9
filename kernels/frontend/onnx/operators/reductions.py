"""Reductions over any axes, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, mul

import numpy as np

from kernels.frontend.onnx.axes import axes_of
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows import counts
from kernels.frontend.onnx.counted_rows.counts import number
from kernels.frontend.onnx.counted_rows.rows import Counts, Rows
from kernels.frontend.onnx.extent import larger, quotient, smaller
from kernels.frontend.onnx.operator import AXES, Operator
from kernels.frontend.onnx.operators.windows.images import image
from kernels.frontend.onnx.steps import Steps
from kernels.ir.compositions import trunc
from kernels.ir.expressions import Expression

REDUCTIONS: dict[str, tuple[Expression | None, str, Expression | None]] = {
    "ReduceL1": (("abs", "a"), "sum", None),
    "ReduceL2": (("mul", "a", "a"), "sum", ("sqrt", "a")),
    "ReduceLogSum": (None, "sum", ("log", "a")),
    "ReduceMax": (None, "max", None),
    "ReduceMean": (None, "mean", None),
    "ReduceMin": (None, "min", None),
    "ReduceProd": (None, "prod", None),
    "ReduceSum": (None, "sum", None),
    "ReduceSumSquare": (("mul", "a", "a"), "sum", None),
}
"""Expression that is reduced, the reduction, and what is computed of the result."""


def reduction(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    before, kind, after = REDUCTIONS[node.op]
    axes = axes_of(s, len(s.shape(x)))
    if np.issubdtype(to.type_of(x), np.integer):
        if after:
            node.reject("of whole numbers a root or logarithm is not supported; cast them to FLOAT")
        if kind == "mean":
            count = float(np.prod([s.shape(x)[axis] for axis in axes]))
            kind, after = "sum", trunc(("div", "a", count))
    found = s.map(before, x) if before else x
    found = s.reduce(found, axes, kind, keep=bool(s.attribute("keepdims", 1)))
    s.end(s.map(after, found) if after else found)


_FINITE: Expression = ("select", ("less", ("abs", "a"), 3e38), "a", 0.0)


def log_sum_exp(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    if np.issubdtype(to.type_of(x), np.integer):
        node.reject("of whole numbers a logarithm is not supported; cast them to FLOAT")
    axes, keep = axes_of(s, len(s.shape(x))), bool(s.attribute("keepdims", 1))
    most = s.map(_FINITE, s.reduce(x, axes, "max"))  # of nothing but infinite numbers it is infinite, and no NaN
    total = s.reduce(s.map(("exp", ("sub", "a", "b")), x, most), axes, "sum", keep=keep)
    s.end(s.map(("add", ("log", "a"), "b"), total, s.reshape(most, s.shape(total))))


def argument(node: OnnxNode, to: Context) -> None:
    """ArgMax and ArgMin."""
    s = Steps(node, to)
    x = s.operand(0)
    kind = ("last_" if s.attribute("select_last_index", 0) else "") + node.op.lower()
    axis = node.axis(s.attribute("axis", 0), len(s.shape(x)))
    s.places(s.shape(x)[axis])
    s.end(s.reduce(x, [axis], kind, keep=bool(s.attribute("keepdims", 1))))


def cumulated_sum(node: OnnxNode, to: Context) -> None:
    """Multiply by a triangle of ones, where an element that is not finite makes NaN also of those before it."""
    s = Steps(node, to)
    x, (axis,) = s.operand(0), s.whole_numbers(1) or [0]
    rank = len(s.shape(x))
    axis = node.axis(axis, rank)
    perm = [k for k in range(rank) if k != axis] + [axis]
    last = s.transpose(x, perm)
    triangle = np.triu(np.ones((s.shape(x)[axis],) * 2, np.int8), 1 if s.attribute("exclusive", 0) else 0)
    ones = s.constant(triangle.T if s.attribute("reverse", 0) else triangle, f"{node.op}.triangle")
    product = s.matmul(_rows(s, last), ones)
    s.end(s.transpose(s.reshape(product, s.shape(last)), np.argsort(perm).tolist()))


def cumulated_product(node: OnnxNode, to: Context) -> None:
    """Each element times the one before, then times the two before these, and so on by powers of two."""
    s = Steps(node, to)
    x, (axis,) = s.operand(0), s.whole_numbers(1) or [0]
    axis = node.axis(axis, len(s.shape(x)))
    count, reverse = s.shape(x)[axis], bool(s.attribute("reverse", 0))

    def shifted(by: int) -> str:
        places = np.arange(count) + by if reverse else np.arange(count) - by
        return s.pick(x, axis, np.where((places < 0) | (places >= count), -1, places), 1.0)

    if s.attribute("exclusive", 0):
        x = shifted(1)
    step = 1
    while step < count:
        x, step = s.map(("mul", "a", "b"), x, shifted(step)), 2 * step
    s.end(s.tensor(x))


def _rows(s: Steps, x: str) -> str:
    shape = s.shape(x)
    return s.reshape(x, (int(np.prod(shape[:-1])), shape[-1]))


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


def _kept(r: Rows, axes: Sequence[int], keep: bool) -> Counts:
    """Counts of the axes that are not reduced."""
    left = [axis for axis in range(len(r.shape(r.operand(0)))) if axis not in axes]
    return {axis if keep else left.index(axis): c for axis, c in r.counts(0).items() if axis not in axes}


def _reduced(r: Rows) -> None:
    axes = axes_of(r, len(r.shape(r.operand(0))))
    keep = bool(r.attribute("keepdims", 1))
    counts, kind = r.counts(0), REDUCTIONS.get(r.node.op, (None, "max", None))[1]
    along = [counts[axis] for axis in axes if axis in counts]
    value = _NEUTRAL[kind]
    found = r.masked(0, value, axes)
    if r.node.op == "ReduceMean" and along:
        if r.to.type_of(r.operand(0)).kind != "f":
            r.refuse("a mean of whole numbers is not supported")
        total = r.reduce(found, axes, "sum", keep=keep)
        valid = r.extents(0)
        share = number(r, quotient([valid[axis] for axis in axes], []))
        r.end(r.map(("div", "a", "b"), total, r.reshape(share, (1,) * len(r.shape(total)))))
    else:
        r.import_from(found)
    r.tell(_kept(r, axes, keep))


def _place(r: Rows) -> None:
    """ArgMax and ArgMin."""
    axis = r.node.axis(r.attribute("axis", 0), len(r.shape(r.operand(0))))
    r.import_from(r.masked(0, -np.inf if r.node.op == "ArgMax" else np.inf, [axis]))
    r.tell(_kept(r, [axis], bool(r.attribute("keepdims", 1))))


def _cumulated(r: Rows) -> None:
    r.import_from(r.masked(0, 0.0))
    r.tell(r.counts(0))


def mean_directly(node: OnnxNode, to: Context) -> bool:
    """Take only the mean over height and width, which is global average pooling; that of whole numbers is cut off."""
    x, stored = image(node, to), node.attributes.get("axes") or to.constants.get(node.input(1))
    if x is None or stored is None or np.issubdtype(to.type_of(x), np.integer):
        return False
    if sorted(node.axis(axis, 4) for axis in stored) != [2, 3]:
        return False
    if node.attributes.get("keepdims", 1):
        to.emit(node, "global_average_pool", (x,))
        return True
    pooled = to.emit(node, "global_average_pool", (x,), output=to.fresh(node.outputs[0] + ".mean"))
    to.reshape(node, pooled, to.shapes[x][:2])
    return True


OPERATORS = (
    *(
        Operator(name, operands=AXES, import_=reduction, rows=_reduced)
        for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")
    ),
    *(
        Operator(name, operands=AXES, import_=reduction, rows=_reduced, follow=counts.reduced(function))
        for name, function in (("ReduceMax", larger), ("ReduceMin", smaller), ("ReduceProd", mul), ("ReduceSum", add))
    ),
    *(Operator(name, import_=argument, rows=_place) for name in ("ArgMax", "ArgMin")),
    Operator("CumProd", import_=cumulated_product),
    Operator("CumSum", import_=cumulated_sum, rows=_cumulated),
    Operator("ReduceLogSumExp", operands=AXES, import_=log_sum_exp, rows=_reduced),
    Operator("ReduceMean", operands=AXES, import_=reduction, direct=mean_directly, rows=_reduced),
)
