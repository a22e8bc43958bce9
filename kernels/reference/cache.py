"""Attention over a cache (`kernels/ir/cache.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Node

AnyArray = npt.NDArray[np.floating[Any]]
Inputs = Sequence[Any]
Shape = tuple[int, ...]


def append(node: Node, inputs: Inputs, _: Shape) -> AnyArray:
    past, new, ends, cosines, sines, scale = (*inputs, *(None,) * 3)[:6]
    places, out = _places(node, ends), past.copy()
    rows = _rows(node.attributes, new, past.shape, places, (cosines, sines, scale))
    for batch, row in np.argwhere((places >= 0) & (places < past.shape[2])):
        out[batch, :, places[batch, row]] = rows[batch, :, row]
    return np.asarray(out)


def attend(node: Node, inputs: Inputs, shape: Shape) -> AnyArray:
    q, keys, values, ends, cosines, sines, scale = (*inputs, *(None,) * 3)[:7]
    a, (batch, shared, capacity, depth) = node.attributes, keys.shape
    places = _places(node, ends)
    rows = _rows(a, q, (batch, a["heads"], capacity, depth), places, (cosines, sines, scale))
    grouped = rows.reshape(batch, shared, -1, a["rows"], depth)
    scores = np.einsum("bhgrd,bhcd->bhgrc", grouped, keys) * keys.dtype.type(a["scale"])
    if cap := keys.dtype.type(a["softcap"]):
        scores = cap * np.tanh(scores / cap)
    own, every = np.clip(places, 0, capacity - 1)[:, None, None, :, None], np.arange(capacity)
    seen = (every <= own) & (every > own - (a["window"] or capacity))
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    read = [np.where(seen[:, :, 0, row, :, None], values, 0) for row in range(a["rows"])]  # a row looks at no more
    found = [np.einsum("bhgc,bhce->bhge", weights[:, :, :, row], each) for row, each in enumerate(read)]
    return np.stack(found, 1).reshape(shape)


def _places(node: Node, ends: Any) -> npt.NDArray[np.int64]:
    """Return the place of each row: (batch, rows)."""
    rows = node.attributes["rows"]
    return np.asarray(ends.astype(np.int64)[:, None] + np.arange(1 - rows, 1))


def _rows(a: Mapping[str, Any], x: Any, shape: Shape, places: npt.NDArray[np.int64], beside: Inputs) -> AnyArray:
    """Return rows (batch, heads, rows, depth) where they lie, normalised and turned."""
    batch, heads, _, depth = shape
    first, *steps = a["place"]
    axes = [np.arange(n) * step for n, step in zip((batch, heads, a["rows"], depth), (*steps, 1), strict=True)]
    found = x.reshape(-1)[first + sum(np.ix_(*axes), start=np.zeros((1,) * 4, np.int64))]
    cosines, sines, scale = beside
    if a["normed"]:
        found = found / np.sqrt((found**2).mean(-1, keepdims=True) + x.dtype.type(a["epsilon"])) * scale
    if not a["turned"]:
        return np.asarray(found)
    half, last = a["turned"] // 2, len(cosines) - 1
    at = (np.clip(places, 0, last) if a["by_place"] else np.arange(batch) % len(cosines),)
    cos, sin = (table[at][:, None] for table in (cosines, sines))
    left, right = found[..., :half], found[..., half : 2 * half]
    return np.concatenate((left * cos - right * sin, right * cos + left * sin, found[..., 2 * half :]), -1)
