"""Weights in the order in which kernels read them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array


def padded(array: Array, axis: int, multiple: int) -> Array:
    """Zeros appended on one axis up to a multiple."""
    missing = -array.shape[axis] % multiple
    widths = [(0, missing if i == axis else 0) for i in range(array.ndim)]
    return np.pad(array, widths) if missing else array


def pack_filters(weight: Array, vectors: int, lanes: int) -> Array:
    """(K, C, kh, kw) -> [K / (vectors lanes)][C / 4][kh][kw][vectors][4 inputs][lanes outputs], zero-padded."""
    full = padded(padded(weight, 0, vectors * lanes), 1, 4)
    k, c, kh, kw = full.shape
    split = full.reshape(k // (vectors * lanes), vectors, lanes, c // 4, 4, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 3, 5, 6, 1, 4, 2))


def pack_depthwise(weight: Array) -> Array:
    """(C, 1, kh, kw) -> [C / 4][kh][kw][4 channels], zero-padded."""
    full = padded(weight[:, 0], 0, 4)
    c, kh, kw = full.shape
    return np.ascontiguousarray(full.reshape(c // 4, 4, kh, kw).transpose(0, 2, 3, 1))


def ungroup(weight: Array, groups: int, channels: int, first: npt.NDArray[np.int64] | int = 0) -> Array:
    """Write a grouped convolution's weights as those of an ungrouped one that reads `channels` of the inputs, from
    `first` on (of all outputs, or of each), zero outside the groups."""
    k, per_group, kh, kw = weight.shape
    out, outputs = np.zeros((k, channels, kh, kw), np.float32), np.arange(k)
    place = outputs // (k // groups) * per_group - first
    out[outputs[:, None], place[:, None] + np.arange(per_group)] = weight
    return out


def pack_panels(weight: Array, panel: int) -> Array:
    """(C, M) -> [M / (4 panel)][C][4 panel], zero-padded, C to a multiple of four."""
    full = padded(padded(weight, 0, 4), 1, 4 * panel)
    c, m = full.shape
    return np.ascontiguousarray(full.reshape(c, m // (4 * panel), 4 * panel).transpose(1, 0, 2))


def pack_stages(weight: Array, vectors: int, depth: int) -> Array:
    """(matrices, K, C, taps) -> [matrices][K / (4 vectors)][stages of depth][4 inputs][vectors][4 outputs].

    A stage holds `depth` pairs of (tap, stack of four inputs), taps outermost; zero-padded.
    """
    full = padded(padded(weight, 1, 4 * vectors), 2, 4)
    m, k, c, taps = full.shape
    split = full.reshape(m, k // (4 * vectors), vectors, 4, c // 4, 4, taps)
    pairs = split.transpose(0, 1, 6, 4, 5, 2, 3).reshape(m, k // (4 * vectors), taps * c // 4, 4, vectors, 4)
    return np.ascontiguousarray(padded(pairs, 2, depth))


def pack_tiles(weight: Array, vectors: int) -> Array:
    """(K, C) -> [K / (4 vectors)][4 inputs][C / 4][vectors][4 outputs], zero-padded."""
    full = padded(padded(weight, 0, 4 * vectors), 1, 4)
    k, c = full.shape
    split = full.reshape(k // (4 * vectors), vectors, 4, c // 4, 4)
    return np.ascontiguousarray(split.transpose(0, 4, 3, 1, 2))
