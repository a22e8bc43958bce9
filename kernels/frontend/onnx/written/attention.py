"""Layers of transformers that onnxruntime's optimiser joins: attention with its projections, and embeddings."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx

from .nodes import Nodes

_TOO_MUCH = -10000.0
"""What onnxruntime adds where nothing may be looked at."""


def attention(n: Nodes) -> None:
    """Of one tensor with itself. Its mask: (batch, steps), 1 where a step may be seen, or (batch,), how many may."""
    x, weight, bias, mask, *more = n.node.inputs + ("",) * 4
    further = [key for key in ("qkv_hidden_sizes", "do_rotary", "past_present_share_buffer") if n.attribute(key, 0)]
    if any(more) or further or n.wants(1):
        n.node.reject(
            f"only attention without a past, added scores, {', '.join(further) or 'and further outputs'} is known"
        )
    (batch, steps, _), heads = n.shape(x), int(n.attribute("num_heads", 0))
    hidden = n.shape(weight)[1] // 3
    if mask and n.shape(mask) not in ((batch, steps), (batch,)):
        n.node.reject(f"its mask has shape {n.shape(mask)}; only {(batch, steps)} and {(batch,)} are supported")
    every = n.add("MatMul", x, weight)
    every = n.add("Add", every, bias) if bias else every
    parts = []
    for index in range(3):
        ends = (n.store([index * hidden]), n.store([(index + 1) * hidden]), n.store([2]))
        split = n.add("Reshape", n.add("Slice", every, *ends), n.store([batch, steps, heads, hidden // heads]))
        parts.append(n.add("Transpose", split, perm=[0, 2, 3, 1] if index == 1 else [0, 2, 1, 3]))
    scale = float(n.attribute("scale", 0.0)) or 1 / sqrt(hidden // heads)
    scores = n.add("Mul", n.add("MatMul", parts[0], parts[1]), n.store(scale, np.float32))
    too_much = float(n.attribute("mask_filter_value", _TOO_MUCH))
    if mask:
        seen = n.add("Reshape", n.add("Cast", mask, to=onnx.TensorProto.FLOAT), n.store([batch, 1, 1, -1]))
        if n.shape(mask) == (batch,):
            less = n.add("Less", n.store(np.arange(steps), np.float32), seen)
            seen = n.add("Cast", less, to=onnx.TensorProto.FLOAT)
        away = n.add("Mul", n.add("Sub", n.store(1, np.float32), seen), n.store(too_much, np.float32))
        scores = n.add("Add", scores, away)
    if n.attribute("unidirectional", 0):
        scores = n.add("Add", scores, n.store(np.triu(np.full((steps, steps), too_much), 1), np.float32))
    mixed = n.add("Transpose", n.add("MatMul", n.add("Softmax", scores, axis=-1), parts[2]), perm=[0, 2, 1, 3])
    n.end(n.add("Reshape", mixed, n.store([batch, steps, hidden])))


def embedding(n: Nodes) -> None:
    """EmbedLayerNormalization: the sum of words, places and segments, normalised."""
    ids, segments, words, places, kinds, gamma, beta, mask, at = (*n.node.inputs, "", "", "")[:9]
    if n.wants(1):  # how many steps are no padding
        seen = mask or n.store(np.zeros(n.shape(ids)), np.int32)
        n.end(n.add("ReduceSum", seen, n.store([1]), keepdims=0), 1)
    steps = n.shape(ids)[1]
    found = n.add("Gather", places, at or n.store(np.arange(steps)), axis=0)
    total = n.add("Add", n.add("Gather", words, ids, axis=0), found)
    if segments:
        total = n.add("Add", total, n.add("Gather", kinds, segments, axis=0))
    n.end(n.add("LayerNormalization", total, gamma, beta, axis=-1, epsilon=n.attribute("epsilon", 1e-12)))
    n.end(total, 2)
