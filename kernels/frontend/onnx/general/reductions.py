"""Reductions over any axes, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.ir.compositions import trunc
from kernels.ir.expressions import Expression

from .steps import Operand, Steps

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


def axes_of(s: Steps, rank: int) -> list[int]:
    """An input or attribute; all where it is absent, or none where the node says so."""
    given = s.whole_numbers(1, "axes")
    if given:
        return s.node.distinct_axes(given, rank)
    return [] if s.attribute("noop_with_empty_axes", 0) else list(range(rank))


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


def softmax_axes(s: Steps, rank: int) -> list[int]:
    """One axis since opset 13, before all from it on."""
    since = s.node.opset >= 13
    axis = s.node.axis(s.attribute("axis", -1 if since else 1), rank)
    return [axis] if since else list(range(axis, rank))


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
                raise ModelError(f"node {s.node.name!r} ({s.node.op}): input {index}, {given}, does not fit {whole}")
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
    picture = s.reshape(x, (n, groups, 1, c // groups * int(np.prod(rest))))
    ones, zeros = s.constant(np.ones(groups)), s.constant(np.zeros(groups))
    attributes = {"epsilon": float(s.attribute("epsilon", 1e-5))}
    found = s.emit("instance_norm", (s.tensor(picture), ones, zeros), attributes)
    if node.op == "GroupNormalization" and node.opset < 21:
        found = scaled(s, s.reshape(found, (n, groups, -(-c // groups) * int(np.prod(rest)))), 1, lambda k: (1, k, 1))
        s.end(s.reshape(found, shape))
        return
    s.end(scaled(s, s.reshape(found, shape), 1, lambda k: (1, k, *(1 for _ in rest))))


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
