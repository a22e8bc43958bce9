"""Matrix products, and the normalisations with weights per channel."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError

from .binary import spread_to, with_constant
from .context import AnyArray, Context, OnnxNode

_LRN_DEFAULTS = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}


def gemm(node: OnnxNode, to: Context) -> bool:
    """alpha * A' * B' + beta * C with constant B: a dense layer; alpha, beta and transB go into its constants."""
    a, weight = node.input(0), to.known_finite(node, 1)
    if not to.is_activation(a) or weight is None or len(to.shapes[a]) != 2:
        return False
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    term = to.known_finite(node, 2) if beta else None
    if term is None and node.input(2) and beta:
        return False
    weight = weight.astype(np.float64) * alpha if alpha != 1 else weight
    weight = weight.T if node.attributes.get("transB", 0) else weight
    rows, columns = to.shapes[a][1 if node.attributes.get("transA", 0) else 0], weight.shape[-1]
    term = None if term is None else np.asarray(term.astype(np.float64) * beta)
    is_bias = term is not None and term.ndim <= 2 and term.size in (1, columns) and term.shape[:-1] in ((), (1,))
    if term is not None and not is_bias and spread_to((rows, columns), term) is None:
        return False
    if node.attributes.get("transA", 0):
        a = to.emit(node, "transpose", (a,), {"perm": (1, 0)}, output=to.fresh(f"{node.outputs[0]}.a"))
    w = to.add_weight(_derived(node.input(1), to, weight), weight)
    if term is None:
        to.emit(node, "dense", (a, w))
    elif is_bias:
        bias = np.broadcast_to(term.reshape(-1), (columns,))
        to.emit(node, "dense", (a, w, to.add_weight(_derived(node.input(2), to, bias), bias)))
    else:
        product = to.emit(node, "dense", (a, w), output=to.fresh(f"{node.outputs[0]}.product"))
        with_constant(node, to, "add", product, term)
    return True


def matmul(node: OnnxNode, to: Context) -> bool:
    """Multiply: with a constant matrix a dense layer over the last axis, otherwise the product of two activations."""
    a, b = node.inputs
    if not to.is_activation(a):
        return False
    shape = to.shapes[a]
    if b not in to.constants:
        fits = min(len(shape), len(to.shapes[b])) > 1 and shape[:-2] == to.shapes[b][:-2]
        return fits and bool(to.emit(node, "matmul", (a, b)))
    weight = to.known_finite(node, 1)
    if weight is None or weight.ndim != 2:
        return False
    w = to.add_weight(b, weight)
    if len(shape) == 2:
        to.emit(node, "dense", (a, w))
        return True
    rows = (prod(shape[:-1]), shape[-1])
    flat = to.reshape(node, a, rows, output=to.fresh(f"{node.outputs[0]}.rows"))
    product = to.emit(node, "dense", (flat, w), output=to.fresh(f"{node.outputs[0]}.product"))
    to.reshape(node, product, (*shape[:-1], weight.shape[1]))
    return True


def batch_normalization(node: OnnxNode, to: Context) -> bool:
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


def lrn(node: OnnxNode, to: Context) -> None:
    if "size" not in node.attributes:
        raise ModelError(f"node {node.name!r} (LRN): attribute size is missing")
    numbers = {key: float(node.attributes.get(key, default)) for key, default in _LRN_DEFAULTS.items()}
    x = to.activation(node)
    if len(to.shapes[x]) != 4:
        node.reject(f"input {x!r} has shape {to.shapes[x]}; only images (N, C, H, W) are supported")
    size, widest = int(node.attributes["size"]), 2 * to.shapes[x][1] - 1
    if size > widest:  # reaches every channel from each, and only their mean changes
        size, numbers["alpha"] = widest, numbers["alpha"] / size * widest
    to.emit(node, "lrn", (x,), {"size": size, **numbers})


def _derived(name: str, to: Context, value: AnyArray) -> str:
    """The constant's own name where it is used as it is, otherwise one beside it."""
    return name if np.array_equal(to.constants[name], value) else f"{name}.dense"
