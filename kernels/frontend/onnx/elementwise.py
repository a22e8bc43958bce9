"""Activations, softmax, concatenation, and what does nothing at inference."""

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


def leaky_relu(node: OnnxNode, to: Context) -> None:
    slope = float(node.attributes.get("alpha", 0.01))
    if not 0 <= slope <= 1:
        node.reject(f"alpha {slope}; supported: 0 to 1")
    to.emit(node, "leaky_relu", (to.activation(node),), {"slope": slope})


def hard_sigmoid(node: OnnxNode, to: Context) -> None:
    slope = {"alpha": float(node.attributes.get("alpha", 0.2)), "beta": float(node.attributes.get("beta", 0.5))}
    to.emit(node, "hard_sigmoid", (to.activation(node),), slope)


def hard_swish(node: OnnxNode, to: Context) -> None:
    to.emit(node, "hard_swish", (to.activation(node),))


def clip(node: OnnxNode, to: Context) -> None:
    """Clip, leaving a bound out that is infinite; one that is absent is fp32's largest number, as ONNX says."""
    x = to.activation(node)
    low, high = _bound(node, to, 1, "min", -FLOAT32_MAX), _bound(node, to, 2, "max", FLOAT32_MAX)
    if low > -inf and high < inf:
        to.emit(node, "clip", (x,), {"min": min(low, FLOAT32_MAX), "max": max(high, -FLOAT32_MAX)})
    elif low == -inf and high == inf:
        to.reshape(node, x, to.shapes[x])
    elif low == 0:
        to.emit(node, "relu", (x,))
    else:
        to.emit(node, "map", (x,), {"expression": ("max", "a", low) if high == inf else ("min", "a", high)})


def _bound(node: OnnxNode, to: Context, index: int, name: str, default: float) -> float:
    """A bound from an attribute (opset < 11) or an input."""
    given = to.optional_constant(node, index)
    value = float(node.attributes.get(name, default)) if given is None else number_of(np.asarray(given))
    if np.isnan(value):
        node.reject(f"bound {name} is NaN")
    return value


def concat(node: OnnxNode, to: Context) -> None:
    names = tuple(to.activation(node, i) for i in range(len(node.inputs)))
    axis = node.axis(node.attributes["axis"], len(to.shapes[names[0]]))
    to.emit(node, "concat", names, {"axis": axis})


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


def identity(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    to.reshape(node, x, to.shapes[x])


def dropout(node: OnnxNode, to: Context) -> None:
    check_keeps_all(node, to)
    identity(node, to)


def check_keeps_all(node: OnnxNode, to: Context) -> None:
    """Raise UnsupportedNode for a Dropout that drops something."""
    training, ratio = to.optional_constant(node, 2), to.optional_constant(node, 1)
    if training is not None and np.any(training) and (ratio is None or np.any(ratio)):
        node.reject("training mode is not supported; export the model for inference (model.eval())")


def cast_like(node: OnnxNode, to: Context) -> None:
    """Cast like `cast`; a constant takes the type of the tensor that it is to be like."""
    name, like = node.input(0), node.input(1)
    to.require(node, like, "input 1")
    wanted = to.type_of(like)
    if name in to.constants:
        with np.errstate(invalid="ignore", over="ignore"):
            to.constants[node.outputs[0]] = to.constants[name].astype(wanted)
        return
    if wanted != np.float32:
        node.reject("an activation can only be cast to FLOAT")
    identity(node, to)


def cast(node: OnnxNode, to: Context) -> None:
    """Cast an activation, which is fp32, to fp32 alone."""
    if node.attributes.get("to") != 1:
        node.reject("an activation can only be cast to FLOAT")
    identity(node, to)
