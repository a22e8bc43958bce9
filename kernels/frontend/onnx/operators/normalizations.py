"""Normalisations: by channels, groups, layers, and by what lies near."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.counted_rows.rules import passed
from kernels.frontend.onnx.operator import CHANNELS, Operator
from kernels.frontend.onnx.steps import Operand, Steps
from kernels.ir.expressions import Expression


def batch_normalization_directly(node: OnnxNode, to: Context) -> bool:
    """Compute x * scale + shift per channel, as at inference, by constants."""
    given = [to.known_finite(node, index) for index in range(1, 5)]
    constants = [value.astype(np.float64) for value in given if value is not None]
    plain = node.attributes.get("spatial", 1) and not node.attributes.get("training_mode", 0)
    if not plain or not to.is_activation(node.input(0)) or len(constants) < 4:
        return False
    gamma, beta, mean, variance = constants
    base = variance + node.attributes.get("epsilon", 1e-5)
    if np.any(base <= 0):
        raise ModelError(
            f"tensor {node.input(4)!r} (node {node.name!r}) holds a variance of {base.min():g} with epsilon added; "
            "expected more than 0: export the model again from intact weights"
        )
    scale = gamma / np.sqrt(base)
    weights = (
        to.add_weight(f"{node.outputs[0]}.scale", scale),
        to.add_weight(f"{node.outputs[0]}.shift", beta - mean * scale),
    )
    to.emit(node, "affine", (node.input(0), *weights))
    return True


_LRN_DEFAULTS = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}


def lrn(node: OnnxNode, to: Context) -> None:
    if "size" not in node.attributes:
        node.damaged("attribute size is missing")
    numbers = {key: float(node.attributes.get(key, default)) for key, default in _LRN_DEFAULTS.items()}
    x = to.activation(node)
    if len(to.shapes[x]) != 4:
        node.reject(f"input {x!r} has shape {to.shapes[x]}; only images (N, C, H, W) are supported")
    size, widest = int(node.attributes["size"]), 2 * to.shapes[x][1] - 1
    if size > widest:  # reaches every channel from each, and only their mean changes
        size, numbers["alpha"] = widest, numbers["alpha"] / size * widest
    to.emit(node, "lrn", (x,), {"size": size, **numbers})


def lp_normalization(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    axis, p = node.axis(s.attribute("axis", -1), len(s.shape(x))), s.attribute("p", 2)
    before: Expression = ("abs", "a") if p == 1 else ("mul", "a", "a")
    norm = s.reduce(s.map(before, x), [axis], "sum")
    size: Expression = "b" if p == 1 else ("sqrt", "b")
    s.end(s.map(("select", "b", ("div", "a", size), 0.0), x, norm))


def normalised(s: Steps, x: str, axes: list[int], epsilon: float) -> tuple[str, str, str]:
    """(x - mean) / sqrt(variance + epsilon), the mean, and the inverse of the root."""
    mean = s.reduce(x, axes, "mean")
    centred = s.map(("sub", "a", "b"), x, mean)
    variance = s.reduce(s.map(("mul", "a", "a"), centred), axes, "mean")
    inverse = s.map(("div", 1.0, ("sqrt", ("add", "a", epsilon))), variance)
    return s.map(("mul", "a", "b"), centred, inverse), mean, inverse


def scaled(s: Steps, x: str, first: int, shape: Callable[[int], tuple[int, ...]] | None = None) -> str:
    """x times input `first`, plus the input after it, where they are there; each in a shape of `shape`'s making. Raises
    ModelError where they are larger than x."""
    whole = s.shape(x)
    for index, function in ((first, "mul"), (first + 1, "add")):
        if s.has(index):
            operand = s.operand(index)
            if shape is not None:
                value = s.value(operand)
                wanted = shape(int(np.prod(s.shape(operand))))
                x = s.map(
                    (function, "a", "b"), x, s.reshape(operand, wanted) if value is None else value.reshape(wanted)
                )
            else:
                x = s.map((function, "a", "b"), x, operand)
            if s.shape(x) != whole:
                given = s.shape(operand)
                s.node.damaged(f"input {index}, {given}, does not fit {whole}")
    return x


def layer_normalization(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    rank = len(s.shape(x))
    axes = list(range(node.axis(s.attribute("axis", -1), rank), rank))
    found, mean, inverse = normalised(s, x, axes, float(s.attribute("epsilon", 1e-5)))
    s.end(scaled(s, found, 1))
    s.end(mean, 1)
    s.end(inverse, 2)


def rms_normalization(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    rank = len(s.shape(x))
    axes = list(range(node.axis(s.attribute("axis", -1), rank), rank))
    mean = s.reduce(s.map(("mul", "a", "a"), x), axes, "mean")
    root = ("sqrt", ("add", "b", float(s.attribute("epsilon", 1e-5))))
    s.end(scaled(s, s.map(("div", "a", root), x, mean), 1))


def group_normalization(node: OnnxNode, to: Context) -> None:
    """Normalise groups; of InstanceNormalization each channel is one. Scale and shift are of groups before opset 21."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    n, c, *rest = shape
    groups = c if node.op == "InstanceNormalization" else int(s.attribute("num_groups"))
    if groups < 1 or c % groups:
        node.reject(f"{groups} groups do not divide {c} channels")
    by_group = node.op == "GroupNormalization" and node.opset < 21
    given = [to.known_finite(node, index) for index in (1, 2)]
    vectors = [np.repeat(v, c // groups if by_group else 1) for v in given if v is not None]
    known = all(v.shape == (c,) for v in vectors) and len(vectors) == 2
    picture = x if len(rest) == 2 else s.reshape(x, (n, c, 1, int(np.prod(rest))))
    weights = [s.constant(v) for v in (vectors if known else (np.ones(c), np.zeros(c)))]
    attributes = {"epsilon": float(s.attribute("epsilon", 1e-5))} | ({"groups": groups} if groups < c else {})
    found = s.emit("instance_norm", (s.tensor(picture), *weights), attributes)
    if not known:
        ones = (1,) if by_group else (1,) * len(rest)
        lead = (n, groups, c // groups * int(np.prod(rest))) if by_group else shape
        found = scaled(s, s.reshape(found, lead), 1, lambda k: (1, k, *ones))
    s.end(s.reshape(found, shape))


def batch_normalization(node: OnnxNode, to: Context) -> None:
    """Normalise with numbers that are computed; in training mode with those of the batch itself."""
    s = Steps(node, to)
    x = s.operand(0)
    ones = (1, -1, *(1 for _ in s.shape(x)[2:]))
    scale, shift, mean, variance = (_shaped(s, s.operand(index), ones) for index in range(1, 5))
    if s.attribute("training_mode", 0):
        mean, variance = _of_batch(s, x, mean, variance)
    elif len(node.outputs) > 1:
        node.reject(f"{node.outputs[1]!r} is of training; only in training_mode (opset 14 or newer) is it supported")
    root = ("sqrt", ("add", "c", float(s.attribute("epsilon", 1e-5))))
    centred = s.map(("div", ("mul", ("sub", "a", "b"), "d"), root), x, mean, variance, scale)
    s.end(s.map(("add", "a", "b"), centred, shift))


def _of_batch(s: Steps, x: str, kept_mean: Operand, kept_variance: Operand) -> tuple[str, str]:
    """Mean and variance of each channel; the node's further outputs mix them with those that are kept."""
    if s.to.counts.get(x):
        s.node.reject("a batch of which the model's input decides how large it is has no statistics here")
    axes = [axis for axis in range(len(s.shape(x))) if axis != 1]
    mean = s.reduce(x, axes, "mean")
    centred = s.map(("sub", "a", "b"), x, mean)
    variance = s.reduce(s.map(("mul", "a", "a"), centred), axes, "mean")
    momentum = float(s.attribute("momentum", 0.9))
    mixed = ("add", ("mul", "a", momentum), ("mul", "b", 1 - momentum))
    for index, (kept, new) in enumerate(((kept_mean, mean), (kept_variance, variance)), 1):
        s.end(s.reshape(s.map(mixed, kept, new), (s.shape(x)[1],)), index)
    return mean, variance


def _shaped(s: Steps, name: str, ones: tuple[int, ...]) -> str | np.ndarray:
    value = s.value(name)
    shape = tuple(int(np.prod(s.shape(name))) if extent == -1 else extent for extent in ones)
    return s.reshape(name, shape) if value is None else value.reshape(shape)


def _rows_normalised(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    r.only(0, range(r.node.axis(r.attribute("axis", -1), rank)), "is looked along")
    r.import_from()
    r.tell(r.counts(0))


OPERATORS = (
    Operator(
        "BatchNormalization", operands=("N C ...", "C", "C", "C", "C"), import_=batch_normalization,
        direct=batch_normalization_directly, rows=passed,
    ),
    Operator("GroupNormalization", import_=group_normalization),
    Operator(
        "InstanceNormalization", operands=("N C ...", "C", "C"), import_=group_normalization, rows=passed,
    ),
    Operator("LRN", operands=CHANNELS, import_=lrn, rows=passed),
    Operator("LayerNormalization", import_=layer_normalization, rows=_rows_normalised),
    Operator("LpNormalization", import_=lp_normalization, choices={"p": (1, 2)}),
    Operator("RMSNormalization", import_=rms_normalization, rows=_rows_normalised),
)  # fmt: skip
