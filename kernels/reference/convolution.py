"""Convolution as a matrix product over gathered patches; depthwise as a sum over the kernel's positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[np.floating[Any]]


def convolve(
    x: AnyArray,
    weight: AnyArray,
    *,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> AnyArray:
    """Cross-correlate x (N,C,H,W) with weight (K,C/groups,kh,kw), zero pads (t,l,b,r) -> (N,K,OH,OW).

    out[n,k,y,x] = sum over c,i,j of weight[k,c,i,j] * padded[n, group(k)*C/groups + c, y*sh + i*dh, x*sw + j*dw]
    """
    patches = _patches(pad(x, pads), weight.shape[2:], strides, dilations)
    n, c, kh, kw, oh, ow = patches.shape
    k = weight.shape[0]
    if groups == c == k:
        return _depthwise(patches, weight[:, 0])
    columns = np.ascontiguousarray(patches).reshape(n, groups, c // groups * kh * kw, oh * ow)
    matrix = weight.reshape(groups, k // groups, c // groups * kh * kw)
    return times(matrix, columns).reshape(n, k, oh, ow)


def times(a: AnyArray, b: AnyArray) -> AnyArray:
    """Return a @ b; of whole numbers whose sums fp64 holds by a product in fp64, which is many times as quick."""
    if a.dtype.kind == "i" and a.size and b.size:
        x, y = a.astype(np.float64), b.astype(np.float64)
        if np.abs(x).max() * np.abs(y).max() * a.shape[-1] < 2.0**53:
            return np.asarray((x @ y).astype(np.int64).astype(a.dtype))
    return np.asarray(a @ b)


def im2col(
    x: AnyArray, kernel: Sequence[int], *, strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int]
) -> AnyArray:
    """Return the elements that each window of x (N,C,H,W) reads, zero pads (t,l,b,r) -> (N,C*kh*kw,OH,OW)."""
    patches = _patches(pad(x, pads), kernel, strides, dilations)
    n, c, kh, kw, oh, ow = patches.shape
    return patches.reshape(n, c * kh * kw, oh, ow)


def pad(x: AnyArray, pads: Sequence[int], value: float = 0.0) -> AnyArray:
    """Surround the last two axes with `value`; pads are (t, l, b, r)."""
    top, left, bottom, right = pads
    if not any(pads):
        return x
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def _patches(x: AnyArray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> AnyArray:
    """View x (N,C,H,W) as (N,C,kh,kw,OH,OW) without a copy."""
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))
    picked = views[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    return picked.transpose(0, 1, 4, 5, 2, 3)


def _depthwise(patches: AnyArray, weight: AnyArray) -> AnyArray:
    n, c, kh, kw, oh, ow = patches.shape
    out: AnyArray = np.zeros((n, c, oh, ow), patches.dtype)
    for i in range(kh):
        for j in range(kw):
            out += patches[:, :, i, j] * weight[None, :, i, j, None, None]
    return out
