"""Products and convolutions of whole numbers of 8 bits: their sums are exact, or rounded to fp32 once.

fp32 adds whole numbers exactly as long as the terms' sizes stay below 2^24 together. Where they may not, the terms are
divided into parts that do, and the parts' sums are added as two digits of 12 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf, prod

import numpy as np

from kernels.frontend.onnx import folding
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.operators import products
from kernels.frontend.onnx.operators.windows import convolutions
from kernels.frontend.onnx.steps import MAX_PLACES, Steps

_DIGIT = 4096.0
"""Base of the two digits in which parts are added: each digit's sum is exact for as many parts."""


def matmul(s: Steps, a: str, b: str, most: tuple[float, float]) -> tuple[str, float]:
    """a @ b, and what its size is at most. `most`: the largest size of an element of each."""
    axes = len(s.shape(a)) - 1, max(len(s.shape(b)) - 2, 0)
    extent, sizes = s.shape(b)[axes[1]], s.value(b)
    if sizes is not None:
        sizes = np.moveaxis(np.abs(sizes), axes[1], 0).reshape(extent, -1)
    ends, limit = _ends(s, extent, sizes, most)
    parts = [[_slice(s, name, axis, *part) for name, axis in zip((a, b), axes, strict=True)] for part in ends]
    return added(s, [_emit(s, "MatMul", products.matmul, *part) for part in parts]), limit


def conv(s: Steps, x: str, weight: str, bias: str, most: tuple[float, float]) -> tuple[str, float]:
    """Convolve like `matmul`, bias ('': none) included; parts are some channels of each group."""
    n, _, *extents = s.shape(x)
    filters, channels, *window = s.shape(weight)
    groups, sizes = int(s.attribute("group", 1)), s.value(weight)
    if sizes is not None:
        sizes = np.abs(sizes).reshape(filters, channels, -1).sum(2).T
    ends, limit = _ends(s, channels, sizes, (most[0], most[1] * (prod(window) if sizes is None else 1)))
    given = s.value(bias) if bias else None
    largest = float(np.abs(given).max(initial=0)) if given is not None else 0.0
    if len(ends) == 1 and limit + largest < MAX_PLACES and (not bias or given is not None):
        return _emit(s, "Conv", convolutions.conv, x, weight, *filter(None, [bias])), limit + largest
    parts = []
    for first, last in ends:
        own = _slice(s, s.reshape(x, (n, groups, channels, *extents)), 2, first, last)
        own = s.reshape(own, (n, groups * (last - first), *extents))
        parts.append(_emit(s, "Conv", convolutions.conv, own, _slice(s, weight, 1, first, last)))
    along = (filters, *(1 for _ in window))
    if given is not None:
        high = np.floor(given.astype(np.float64) / _DIGIT) * _DIGIT if largest >= MAX_PLACES else np.zeros_like(given)
        digits = [high, given - high] if high.any() else [given]
        parts += [s.constant(digit.reshape(along)) for digit in digits]
    elif bias:
        parts.append(s.reshape(bias, along))
    return added(s, parts), limit + largest if given is not None or not bias else inf


def added(s: Steps, parts: list[str]) -> str:
    """The sum of whole numbers below 2^24, rounded to fp32 once, however many they are."""
    if len(parts) < 3:
        return parts[0] if len(parts) == 1 else s.map(("add", "a", "b"), *parts)
    high = [s.map(("floor", ("mul", "a", 1 / _DIGIT)), part) for part in parts]
    low = [s.map(("sub", "a", ("mul", "b", _DIGIT)), *pair) for pair in zip(parts, high, strict=True)]
    while len(high) > 1:
        high[:2], low[:2] = [s.map(("add", "a", "b"), *high[:2])], [s.map(("add", "a", "b"), *low[:2])]
    return s.map(("add", ("mul", "a", _DIGIT), "b"), high[0], low[0])


def _ends(
    s: Steps, extent: int, sizes: AnyArray | None, most: tuple[float, float]
) -> tuple[list[tuple[int, int]], float]:
    """The parts of `extent` terms, and what the size of all is at most. `sizes`: of known factors, terms x results;
    else each factor is at most `most[1]`."""
    each = np.full((extent, 1), most[1]) if sizes is None else sizes.astype(np.float64)
    sums = np.concatenate([np.zeros((1, each.shape[1])), np.cumsum(each * most[0], axis=0)])
    limit = float(sums[-1].max(initial=0))
    s.to.sums = max(s.to.sums, int(limit))
    ends = [0, extent]
    while np.diff(sums[ends], axis=0).max(initial=0) >= MAX_PLACES:
        if len(ends) > extent:
            s.node.reject("the sum of a single window may pass 2^24, which fp32 does not hold: use a smaller one")
        ends = [int(end) for end in np.linspace(0, extent, len(ends) + 1).round()]
    return list(pairwise(ends)), limit


def _slice(s: Steps, name: str, axis: int, first: int, last: int) -> str:
    known = s.value(name)
    if known is None:
        return s.slice(name, axis, first, last)
    if (first, last) == (0, known.shape[axis]):
        return name
    part = s.to.fresh(f"{name}.{first}")
    s.to.constants[part] = known.take(range(first, last), axis)
    return part


def _emit(s: Steps, op: str, emit: Callable[[OnnxNode, Context], None], *inputs: str) -> str:
    """Another operator of the node's attributes; of constants its value."""
    result = s.to.fresh(f"{s.node.outputs[0]}.{op}.{len(s.to.nodes)}")
    node = replace(s.node, op=op, inputs=inputs, outputs=(result,))
    if all(name in s.to.constants for name in inputs):
        folding.compute(node, s.to)
    else:
        emit(node, s.to)
    return result
