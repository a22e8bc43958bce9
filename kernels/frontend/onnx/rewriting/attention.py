"""Layers of transformers that onnxruntime's optimiser joins: attention with its projections, and embeddings."""

from __future__ import annotations

from math import sqrt

import numpy as np

from kernels.frontend.onnx.nodes import Nodes

from .heads import join, later, padding, part, scores, split

TOO_MUCH = -10000.0
"""Onnxruntime adds it where a mask hides a key. A query whose keys are all hidden looks at them by rounded scores."""
NEVER = float(np.finfo(np.float32).min)
"""Onnxruntime has it where a key comes later: less, so that such a query never looks at later ones."""


def attention(n: Nodes) -> None:
    """Attend from one tensor to itself, and to what came before it: (2, batch, heads, older steps, size)."""
    x, weight, bias, mask, past, added, *more = [*n.node.inputs, *[""] * 6]
    further = [key for key in ("qkv_hidden_sizes", "do_rotary", "past_present_share_buffer") if n.attribute(key, 0)]
    if any(more) or further:
        n.node.reject(f"{', '.join(further) or 'a buffer of older steps with room for more'} is not supported")
    hidden, heads = n.shape(weight)[1] // 3, int(n.attribute("num_heads", 0))
    every = n.matmul(x, weight)
    every = n.add(every, bias) if bias else every
    query, key, value = (split(n, part(n, every, index * hidden, (index + 1) * hidden), heads) for index in range(3))
    if past:
        old = [n.gather(past, n.store(index), axis=0) for index in (0, 1)]
        key, value = (n.concat(*pair, axis=2) for pair in zip(old, (key, value), strict=True))
    if n.wants(1):
        n.end(n.concat(*(n.unsqueeze(each, n.store([0])) for each in (key, value)), axis=0), 1)
    _attend(n, query, key, value, mask, added)


def multi_head(n: Nodes) -> None:
    """MultiHeadAttention: queries, keys and values that are projected already, the older keys and values before them.

    Keys and values of another sequence may come in heads.
    """
    query, key, value, bias, mask, added, past_key, past_value, *more = [*n.node.inputs, *[""] * 9]
    if any(more) or n.wants(3) or not key or not value or len(n.shape(key)) not in (3, 4):
        n.node.reject("only queries, keys and values of their own are known, without beams and further outputs")
    heads = int(n.attribute("num_heads", 0))
    in_heads = len(n.shape(key)) == 4
    if bias:
        query, key, value = _biased(n, (query, key, value), bias, 1 if in_heads else 3)
    query = split(n, query, heads)
    if not in_heads:
        key, value = split(n, key, heads), split(n, value, heads)
    if past_key:
        key, value = n.concat(past_key, key, axis=2), n.concat(past_value, value, axis=2)
    n.end(key, 1)
    n.end(value, 2)
    _attend(n, query, key, value, mask, added)


def _attend(n: Nodes, query: str, key: str, value: str, mask: str, added: str) -> None:
    """The node's first output, of parts in heads; the last query's own key is the last one."""
    (_, _, steps, size), keys = n.shape(query), n.shape(key)[2]
    found = scores(n, query, key, float(n.attribute("scale", 0.0)) or 1 / sqrt(size))
    too_much = float(n.attribute("mask_filter_value", TOO_MUCH))
    if mask:
        found = n.add(found, padding(n, mask, keys, too_much))
    if n.attribute("unidirectional", 0):
        found = n.add(found, later(n, steps, keys, NEVER))
    found = n.add(found, added) if added else found
    n.end(join(n, n.matmul(n.softmax(found, axis=-1), value)))


def _biased(n: Nodes, parts: tuple[str, str, str], bias: str, count: int) -> list[str]:
    """Each of the first parts with its share of a bias that holds one behind the other."""
    found, begin = list(parts), 0
    for index, name in enumerate(parts[:count]):
        end = begin + n.shape(name)[-1]
        found[index], begin = n.add(name, part(n, bias, begin, end, 0)), end
    return found


def embedding(n: Nodes) -> None:
    """EmbedLayerNormalization: the sum of words, places and segments, normalised."""
    ids, segments, words, places, kinds, gamma, beta, mask, at = (*n.node.inputs, "", "", "")[:9]
    if n.wants(1):  # how many steps are no padding
        seen = mask or n.store(np.zeros(n.shape(ids)), np.int32)
        n.end(n.reduce_sum(seen, n.store([1]), keepdims=0), 1)
    steps = n.shape(ids)[1]
    found = n.gather(places, at or n.store(np.arange(steps)), axis=0)
    total = n.add(n.gather(words, ids, axis=0), found)
    if segments:
        total = n.add(total, n.gather(kinds, segments, axis=0))
    n.end(n.layer_normalization(total, gamma, beta, axis=-1, epsilon=n.attribute("epsilon", 1e-12)))
    n.end(total, 2)
