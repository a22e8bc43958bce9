"""Activations, and what looks along an axis to choose or weigh: softmax and its like."""

from __future__ import annotations

from functools import partial
from math import inf, prod

import numpy as np

from kernels.frontend.onnx.axes import softmax_axes
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.counted_rows.rules import elementwise
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import number_of

FLOAT32_MAX = float(np.finfo(np.float32).max)


def same(op: str, node: OnnxNode, to: Context) -> None:
    """Emit the graph's operation that is called so, without attributes."""
    to.emit(node, op, (to.activation(node),))


def leaky_relu(node: OnnxNode, to: Context) -> None:
    slope = float(node.attributes.get("alpha", 0.01))
    if 0 <= slope <= 1:
        to.emit(node, "leaky_relu", (to.activation(node),), {"slope": slope})
    else:
        s = Steps(node, to)
        s.end(s.map(c.leaky_relu("a", slope), s.operand(0)))


def hard_sigmoid(node: OnnxNode, to: Context) -> None:
    slope = {"alpha": float(node.attributes.get("alpha", 0.2)), "beta": float(node.attributes.get("beta", 0.5))}
    to.emit(node, "hard_sigmoid", (to.activation(node),), slope)


def clip_directly(node: OnnxNode, to: Context) -> bool:
    """Clip by constants, leaving a bound out that is infinite; one that is absent is fp32's largest number, as ONNX
    says."""
    x, low, high = node.input(0), _bound(node, to, 1, "min", -FLOAT32_MAX), _bound(node, to, 2, "max", FLOAT32_MAX)
    if not to.is_activation(x) or low is None or high is None or np.isnan(low) or np.isnan(high):
        return False
    if low > -inf and high < inf:
        to.emit(node, "clip", (x,), {"min": min(low, FLOAT32_MAX), "max": max(high, -FLOAT32_MAX)})
    elif low == -inf and high == inf:
        to.reshape(node, x, to.shapes[x])
    elif low == 0:
        to.emit(node, "relu", (x,))
    else:
        to.emit(node, "map", (x,), {"expression": ("max", "a", low) if high == inf else ("min", "a", high)})
    return True


def _bound(node: OnnxNode, to: Context, index: int, name: str, default: float) -> float | None:
    """A bound from an attribute (opset < 11) or an input; None where it is computed."""
    if not node.input(index):
        return float(node.attributes.get(name, default))
    given = to.constants.get(node.input(index))
    return None if given is None else number_of(np.asarray(given))


def softmax(node: OnnxNode, to: Context) -> None:
    """Emit a softmax: before opset 13 over all axes from `axis` on, taken together; since then over one axis."""
    x = to.activation(node)
    shape = to.shapes[x]
    axis = node.axis(node.attributes.get("axis", -1 if node.opset >= 13 else 1), len(shape))
    if node.opset >= 13 or prod(shape[axis + 1 :]) == 1:
        to.emit(node, "softmax", (x,), {"axis": axis})
        return
    rows = (prod(shape[:axis]), prod(shape[axis:]))
    flat = to.reshape(node, x, rows, output=to.fresh(f"{node.outputs[0]}.rows"))
    result = to.emit(node, "softmax", (flat,), {"axis": 1}, output=to.fresh(f"{node.outputs[0]}.flat"))
    to.reshape(node, result, shape)


def clip(node: OnnxNode, to: Context) -> None:
    """Clip with bounds that are computed."""
    s = Steps(node, to)
    found = s.operand(0)
    for index, function in ((1, "max"), (2, "min")):
        if s.has(index):
            found = s.map((function, "a", "b"), found, s.operand(index))
    s.end(found)


def log_softmax(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    axes = softmax_axes(s, len(s.shape(x)))
    less = s.map(("sub", "a", "b"), x, s.reduce(x, axes, "max"))
    total = s.reduce(s.map(("exp", "a"), less), axes, "sum")
    s.end(s.map(("sub", "a", ("log", "b")), less, total))


def hardmax(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    shape, axes = s.shape(x), softmax_axes(s, len(s.shape(x)))
    first = s.reduce(x, axes, "argmax")
    count = int(np.prod([shape[axis] for axis in axes]))
    s.places(count)
    numbers = np.arange(count, dtype=np.int32).reshape([n if k in axes else 1 for k, n in enumerate(shape)])
    s.end(s.map(("equal", "a", "b"), first, numbers))


def _along(r: Rows) -> None:
    """Look along one axis, before opset 13 along all from it on; the padding counts for nothing there."""
    axes = softmax_axes(r, len(r.shape(r.operand(0))))
    r.import_from(r.masked(0, -np.inf, axes))
    r.tell(r.counts(0))


OPERATORS = (
    Operator(
        "Clip", operands=("...", "scalar", "scalar"), may_be_infinite=True, import_=clip, direct=clip_directly,
        rows=elementwise,
    ),
    Operator("HardSigmoid", import_=hard_sigmoid, rows=elementwise),
    Operator("HardSwish", import_=partial(same, "hard_swish"), rows=elementwise),
    Operator("Hardmax", import_=hardmax, rows=_along),
    Operator("LeakyRelu", import_=leaky_relu, rows=elementwise),
    Operator("LogSoftmax", import_=log_softmax, rows=_along),
    Operator("Relu", import_=partial(same, "relu"), rows=elementwise),
    Operator("Sigmoid", import_=partial(same, "sigmoid"), rows=elementwise),
    Operator("Softmax", import_=softmax, rows=_along),
)  # fmt: skip
