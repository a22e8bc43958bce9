"""Convolutions by weights that the network computes: products of them and columns of windows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from kernels.frontend.onnx.steps import Steps

from . import padded, windows_of


def by_columns(s: Steps, x: str, weight: str, strides: Sequence[int], dilations: Sequence[int], groups: int) -> str:
    """(n, m, counts...) by computed weights (m, c / groups, kernel...): rows of them times columns of windows."""
    n, c, *extents = s.shape(x)
    m, each, *kernel = s.shape(weight)
    if each * groups != c or m % groups:
        s.node.damaged(f"weights {s.shape(weight)} of {groups} groups do not fit {c} channels")
    along = zip(extents, kernel, strides, dilations, strict=True)
    counts = [(extent - dilation * (size - 1) - 1) // stride + 1 for extent, size, stride, dilation in along]
    if min(counts) < 1:
        s.node.damaged(f"a window of {kernel} does not fit into {extents}")
    s.check_size((n * c, *kernel, *counts))
    columns = windows_of(s, s.reshape(x, (n * c, *extents)), kernel, counts, dilations, strides)
    lead, depth = (n, groups) if n > 1 else (groups,), each * prod(kernel)
    product = s.matmul(
        s.reshape(weight, (groups, m // groups, depth)), s.reshape(columns, (*lead, depth, prod(counts)))
    )
    return s.reshape(product, (n, m, *counts))


def spread_columns(
    s: Steps, x: str, weight: str, strides: Sequence[int], dilations: Sequence[int], groups: int,
    cuts: Sequence[tuple[int, int]],
) -> str:  # fmt: skip
    """A transposed convolution by computed weights (c, m / groups, kernel...): by the same ones mirrored, of the input
    with zeros between its elements."""
    c, each, *kernel = s.shape(weight)
    taps = prod(kernel)
    turned = s.transpose(s.reshape(weight, (groups, c // groups, each, taps)), (0, 2, 1, 3))
    mirrored = s.pick(turned, 3, np.arange(taps)[::-1])
    pads = []
    for extent, size, stride, dilation, (begin, count) in zip(
        s.shape(x)[2:], kernel, strides, dilations, cuts, strict=True
    ):
        reach = dilation * (size - 1)
        pads.append((reach - begin, count + begin - stride * (extent - 1) - 1))
    x = padded(s, x, pads, 0.0, strides)
    weight = s.reshape(mirrored, (groups * each, c // groups, *kernel))
    return by_columns(s, x, weight, (1,) * len(kernel), dilations, groups)
