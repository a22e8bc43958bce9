"""Matrix products, and the normalisations with weights per channel."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError

from .binary import emit_with_constant
from .context import AnyArray, Context, OnnxNode
from .windows import image

_LRN_DEFAULTS = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}


def gemm(node: OnnxNode, to: Context) -> None:
    """alpha * A' * B' + beta * C with constant B: a dense layer; alpha, beta and transB go into its constants."""
    a = to.activation(node)
    if len(to.shapes[a]) != 2:
        node.reject(f"input {a!r} has shape {to.shapes[a]}; Gemm needs two dimensions")
    if node.attributes.get("transA", 0):
        a = to.emit(node, "transpose", (a,), {"perm": (1, 0)}, output=to.fresh(f"{node.outputs[0]}.a"))
    weight, alpha = to.finite(node, 1), node.attributes.get("alpha", 1.0)
    if alpha != 1:
        weight = weight.astype(np.float64) * alpha
    if node.attributes.get("transB", 0):
        weight = weight.T
    w = to.add_weight(_derived(node.input(1), to, weight), weight)
    columns = weight.shape[-1]
    term = _gemm_term(node, to)
    if term is None:
        to.emit(node, "dense", (a, w))
    elif term.ndim <= 2 and term.size in (1, columns) and (term.ndim < 2 or term.shape[0] == 1):
        bias = np.broadcast_to(term.reshape(-1), (columns,))
        to.emit(node, "dense", (a, w, to.add_weight(_derived(node.input(2), to, bias), bias)))
    else:
        product = to.emit(node, "dense", (a, w), output=to.fresh(f"{node.outputs[0]}.product"))
        emit_with_constant(node, to, "add", product, term)


def _gemm_term(node: OnnxNode, to: Context) -> AnyArray | None:
    """beta * C; None where it is absent."""
    if not node.input(2) or node.attributes.get("beta", 1.0) == 0:
        return None
    return np.asarray(to.finite(node, 2).astype(np.float64) * node.attributes.get("beta", 1.0))


def matmul(node: OnnxNode, to: Context) -> None:
    """Multiply: with a constant matrix a dense layer over the last axis, otherwise the product of two activations."""
    a = to.activation(node)
    if node.input(1) not in to.constants:
        _activations_product(node, to, a, to.activation(node, 1))
        return
    weight = to.finite(node, 1)
    if weight.ndim != 2:
        node.reject(f"a constant of shape {weight.shape}; only a matrix of two dimensions is supported")
    w = to.weight(node, 1)
    shape = to.shapes[a]
    if len(shape) == 2:
        to.emit(node, "dense", (a, w))
        return
    rows = (prod(shape[:-1]), shape[-1])
    flat = to.reshape(node, a, rows, output=to.fresh(f"{node.outputs[0]}.rows"))
    product = to.emit(node, "dense", (flat, w), output=to.fresh(f"{node.outputs[0]}.product"))
    to.reshape(node, product, (*shape[:-1], weight.shape[1]))


def _activations_product(node: OnnxNode, to: Context, a: str, b: str) -> None:
    if min(len(to.shapes[a]), len(to.shapes[b])) < 2 or to.shapes[a][:-2] != to.shapes[b][:-2]:
        node.reject(f"shapes {to.shapes[a]} and {to.shapes[b]}: a broadcast between activations is not supported")
    to.emit(node, "matmul", (a, b))


def batch_normalization(node: OnnxNode, to: Context) -> None:
    """Compute x * scale + shift per channel, as at inference."""
    if node.attributes.get("training_mode", 0):
        node.reject("statistics of the batch itself are no constants")
    if not node.attributes.get("spatial", 1):
        node.reject("spatial = 0 is not supported")
    x = to.activation(node)
    gamma, beta, mean, variance = (to.finite(node, i).astype(np.float64) for i in range(1, 5))
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
    to.emit(node, "affine", (x, *weights))


def lrn(node: OnnxNode, to: Context) -> None:
    if "size" not in node.attributes:
        raise ModelError(f"node {node.name!r} (LRN): attribute size is missing")
    numbers = {key: float(node.attributes.get(key, default)) for key, default in _LRN_DEFAULTS.items()}
    x = image(node, to)
    size, widest = int(node.attributes["size"]), 2 * to.shapes[x][1] - 1
    if size > widest:  # reaches every channel from each, and only their mean changes
        size, numbers["alpha"] = widest, numbers["alpha"] / size * widest
    to.emit(node, "lrn", (x,), {"size": size, **numbers})


def _derived(name: str, to: Context, value: AnyArray) -> str:
    """The constant's own name where it is used as it is, otherwise one beside it."""
    return name if np.array_equal(to.constants[name], value) else f"{name}.dense"
