"""Parts of attention in several heads: (batch, steps, heads x size) and (batch, heads, steps, size)."""

from __future__ import annotations

import numpy as np
import onnx

from kernels.frontend.onnx.nodes import Nodes

NOTHING = -60000.0
"""A score where nothing may be looked at: fp16 holds it."""


def split(n: Nodes, x: str, heads: int) -> str:
    """(batch, steps, heads x size) as (batch, heads, steps, size)."""
    batch, steps, wide = n.shape(x)
    apart = n.reshape(x, n.store([batch, steps, heads, wide // heads]))
    return n.transpose(apart, perm=[0, 2, 1, 3])


def join(n: Nodes, x: str) -> str:
    """The way back."""
    batch, heads, steps, size = n.shape(x)
    return n.reshape(n.transpose(x, perm=[0, 2, 1, 3]), n.store([batch, steps, heads * size]))


def part(n: Nodes, x: str, begin: int, end: int, axis: int = -1) -> str:
    """A slice along one axis."""
    return n.slice(x, n.store([begin]), n.store([end]), n.store([axis]))


def scores(n: Nodes, query: str, key: str, scale: float) -> str:
    """(batch, heads, steps, keys) of queries and keys in heads."""
    return n.mul(n.matmul(query, n.transpose(key, perm=[0, 1, 3, 2])), n.store(scale, np.float32))


def padding(n: Nodes, mask: str, keys: int, too_much: float) -> str:
    """Return what a mask adds to scores: (batch, keys) or (batch, steps, keys), 1 where a key may be seen, or (batch,),
    how many may."""
    batch, *rest = n.shape(mask)
    if (rest and rest[-1] != keys) or len(rest) > 2:
        n.node.reject(
            f"its mask has shape {n.shape(mask)}; only (batch,), (batch, {keys}) and one a step are supported"
        )
    seen = n.reshape(n.cast(mask, to=onnx.TensorProto.FLOAT), n.store([batch, 1, -1, rest[-1] if rest else 1]))
    if not rest:
        less = n.less(n.store(np.arange(keys), np.float32), seen)
        seen = n.cast(less, to=onnx.TensorProto.FLOAT)
    return n.mul(n.sub(n.store(1, np.float32), seen), n.store(too_much, np.float32))


def later(n: Nodes, steps: int, keys: int, too_much: float) -> str:
    """Return the addend of the scores of keys behind each step, whose own key is the last of those that it may see."""
    return n.store(np.triu(np.full((steps, keys), too_much), keys - steps + 1), np.float32)
