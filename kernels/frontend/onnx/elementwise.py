"""Activations, softmax, concatenation and copies."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from kernels.ir.expressions import number_of

from .context import Context, OnnxNode

FLOAT32_MAX = float(np.finfo(np.float32).max)


def relu(node: OnnxNode, to: Context) -> None:
    to.emit(node, "relu", (to.activation(node),))


def sigmoid(node: OnnxNode, to: Context) -> None:
    to.emit(node, "sigmoid", (to.activation(node),))


def leaky_relu(node: OnnxNode, to: Context) -> bool:
    slope = float(node.attributes.get("alpha", 0.01))
    if not 0 <= slope <= 1:
        return False
    to.emit(node, "leaky_relu", (to.activation(node),), {"slope": slope})
    return True


def hard_sigmoid(node: OnnxNode, to: Context) -> None:
    slope = {"alpha": float(node.attributes.get("alpha", 0.2)), "beta": float(node.attributes.get("beta", 0.5))}
    to.emit(node, "hard_sigmoid", (to.activation(node),), slope)


def hard_swish(node: OnnxNode, to: Context) -> None:
    to.emit(node, "hard_swish", (to.activation(node),))


def clip(node: OnnxNode, to: Context) -> bool:
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


def concat(node: OnnxNode, to: Context) -> bool:
    if not all(map(to.is_activation, node.inputs)):
        return False
    axis = node.axis(node.attributes["axis"], len(to.shapes[node.input(0)]))
    to.emit(node, "concat", node.inputs, {"axis": axis})
    return True


def softmax(node: OnnxNode, to: Context) -> None:
    """Before opset 13 over all axes from `axis` on, taken together; since then over one axis."""
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


def identity(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    to.reshape(node, x, to.shapes[x])
