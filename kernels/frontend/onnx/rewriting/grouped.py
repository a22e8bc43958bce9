"""Operators of builders of large language models: places turned into angles, and heads that share keys and values."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx

from kernels.frontend.onnx.counted_rows.counts import number
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.steps import Steps

from . import cached, heads


def rotary(n: Nodes) -> None:
    """RotaryEmbedding, of (batch, steps, width) or of heads. One place is where the first step is."""
    x, at, cosines, sines = n.node.inputs[:4]
    if n.attribute("is_packed_batching", 0):
        n.node.reject("is_packed_batching = 1 is not supported; export the model with a batch of its own")
    scale = float(n.attribute("scale", 1.0))
    if scale != 1:
        n.node.reject(f"scale = {scale:g} is not supported, only 1")
    flat, turns = len(n.shape(x)) == 3, n.shape(cosines)[-1]
    if flat:
        x = heads.split(n, x, int(n.attribute("num_heads", 0)) or n.shape(x)[-1] // (2 * turns))
    if n.shape(at) in ((), (1,)):
        at = n.add(n.reshape(at, n.store([1, 1])), n.store(np.arange(n.shape(x)[2])[None]))
    found = turned(n, x, at, cosines, sines, bool(n.attribute("interleaved", 0)))
    n.end(heads.join(n, found) if flat else found)


def turned(n: Nodes, x: str, at: str, cosines: str, sines: str, interleaved: bool) -> str:
    """Heads whose first numbers are turned by the angles of their places, (batch or 1, steps)."""
    half = n.shape(cosines)[-1]
    cos, sin = (n.unsqueeze(n.gather(table, at, axis=0), n.store([1])) for table in (cosines, sines))
    if interleaved:
        apart = n.reshape(heads.part(n, x, 0, 2 * half), n.store([*n.shape(x)[:3], half, 2]))
        a, b = (n.gather(apart, n.store(index), axis=4) for index in (0, 1))
    else:
        a, b = heads.part(n, x, 0, half), heads.part(n, x, half, 2 * half)
    first = n.sub(n.mul(a, cos), n.mul(b, sin))
    second = n.add(n.mul(b, cos), n.mul(a, sin))
    if interleaved:
        pairs = (n.unsqueeze(name, n.store([4])) for name in (first, second))
        found = [n.reshape(n.concat(*pairs, axis=4), n.store([*n.shape(x)[:3], 2 * half]))]
    else:
        found = [first, second]
    rest = n.shape(x)[3] - 2 * half
    found += [heads.part(n, x, 2 * half, 2 * half + rest)] if rest else []
    return n.concat(*found, axis=3) if len(found) > 1 else found[0]


def grouped(n: Nodes) -> None:
    """GroupQueryAttention. Each step sees the keys up to its own; how many are valid, an input says for each batch."""
    query, key, value, past_key, past_value, ends, total, cosines, sines, at, added, sink, *more = (
        *n.node.inputs,
        *("",) * 12,
    )
    count, kept = int(n.attribute("num_heads", 0)), int(n.attribute("kv_num_heads", 0))
    if any(more) or n.wants(3) or n.attribute("k_quant_type", "NONE") != "NONE":
        n.node.reject("keys and values in few bits, and the scores as an output, are not supported")
    held = n.to.counts.get(past_key, {}).get(2)
    known = n.to.constants.get(total) if held is None else np.array(n.shape(past_key)[2])
    if known is None:
        n.node.reject(
            "total_sequence_length is computed from the model's input; fix the sizes of all inputs "
            "(--size NAME=N), so that it follows from them"
        )
    keys, steps = int(known.reshape(())), n.shape(query)[1]
    plain = not (added or sink or n.attribute("smooth_softmax", 0) or n.attribute("rotary_interleaved", 0))
    vectors = all(n.shape(x)[-1] % 4 == 0 for x in (past_key, past_value, cosines) if x)
    if plain and vectors and past_key and n.shape(past_key)[2] == keys > steps:
        cached.attention(n, keys)
        return
    if not key:
        size = n.shape(query)[2] // (count + 2 * kept)
        bounds = np.cumsum([0, count, kept, kept]) * size
        query, key, value = (heads.part(n, query, int(bounds[i]), int(bounds[i + 1])) for i in range(3))
    query, key, value = heads.split(n, query, count), heads.split(n, key, kept), heads.split(n, value, kept)
    last = n.reshape(n.cast(ends, to=onnx.TensorProto.INT64), n.store([-1, 1]))
    before = n.add(last, n.store([[1 - steps]])) if keys > steps else n.store([[0]])
    if held is not None:  # the rows of a state, of which an axis is padded, seen by what `seen` says alone
        before = n.reshape(number(Steps(n.node, n.to), held), n.store([1, 1]))
        last = n.add(before, n.store([[steps - 1]]))
    places = n.add(before, n.store(np.arange(steps)[None]))
    if n.attribute("do_rotary", 0):
        turn = bool(n.attribute("rotary_interleaved", 0))
        query, key = (turned(n, x, at or places, cosines, sines, turn) for x in (query, key))
    if past_key:
        behind = _behind if held is None else _appended
        key, value = (behind(n, *pair, before, keys) for pair in ((past_key, key), (past_value, value)))
    n.end(key, 1)
    n.end(value, 2)
    key, value = (_repeated(n, heads.part(n, x, 0, keys, 2), count) for x in (key, value))
    seen = _seen(n, places, last, keys)
    n.end(heads.join(n, n.matmul(_weights(n, query, key, seen, added, sink), value)))


def _seen(n: Nodes, places: str, last: str, keys: int) -> str:
    """Return which keys each step sees: those up to its own, in a window if there is one.

    Steps behind the last, which are padding, see what that sees."""
    own, every = n.unsqueeze(places, n.store([1, 3])), n.store(np.arange(keys))
    seen = n.less_or_equal(every, n.min(own, n.unsqueeze(last, n.store([1, 3]))))
    window = int(n.attribute("local_window_size", -1))
    return n.and_(seen, n.greater(every, n.sub(own, n.store(window)))) if 0 < window < keys else seen


def _behind(n: Nodes, past: str, new: str, before: str, keys: int) -> str:
    """Older rows, of which so many of each batch are valid, and the new ones right behind these."""
    old, steps = n.shape(past)[2], n.shape(new)[2]
    every = n.concat(past, new, axis=2)
    known = n.to.constants.get(before)
    if keys == old + steps and known is not None and (known == old).all():
        return every
    place = n.store(np.arange(max(keys, old))[None])
    moved = n.sub(place, before)
    fresh = n.add(n.clip(moved, n.store(0), n.store(steps - 1)), n.store(old))
    at = n.where(n.less(moved, n.store(0)), n.min(place, n.store(old - 1)), fresh)
    if n.shape(at)[0] == 1:
        rows = n.gather(every, n.reshape(at, n.store([-1])), axis=2)
    else:
        wide = n.store([*n.shape(every)[:2], max(keys, old), n.shape(every)[3]])
        rows = n.gather_elements(every, n.expand(n.unsqueeze(at, n.store([1, 3])), wide), axis=2)
    filled = n.unsqueeze(n.less(moved, n.store(steps)), n.store([1, 3]))
    return n.where(filled, rows, n.store(0, np.float32))


def _appended(n: Nodes, past: str, new: str, before: str, _: int) -> str:
    """A state with the new rows, all of whose rows are read."""
    return Steps(n.node, n.to).emit("put_rows", (past, new, n.reshape(before, n.store([1]))), {"axis": 2})


def _repeated(n: Nodes, x: str, count: int) -> str:
    """Each head as often as queries share it."""
    batch, kept, keys, size = n.shape(x)
    if count == kept:
        return x
    wide = n.expand(n.unsqueeze(x, n.store([2])), n.store([batch, kept, count // kept, keys, size]))
    return n.reshape(wide, n.store([batch, count, keys, size]))


def _weights(n: Nodes, query: str, key: str, seen: str, added: str, sink: str) -> str:
    """Return the weight of each key's value; a sink takes its share and gives nothing."""
    (batch, count, steps, size), keys = n.shape(query), n.shape(key)[2]
    found = heads.scores(n, query, key, float(n.attribute("scale", 0.0)) or 1 / sqrt(size))
    if cap := float(n.attribute("softcap", 0.0)):
        tamed = n.tanh(n.mul(found, n.store(1 / cap, np.float32)))
        found = n.mul(tamed, n.store(cap, np.float32))
    found = n.add(found, heads.part(n, added, 0, keys)) if added else found
    found = n.where(seen, found, n.store(heads.NOTHING, np.float32))
    if not sink and not n.attribute("smooth_softmax", 0):
        return n.softmax(found, axis=-1)
    sink = n.reshape(sink, n.store([1, count, 1, 1])) if sink else n.store(np.zeros((1, 1, 1, 1)), np.float32)
    sink = n.expand(sink, n.store([batch, count, steps, 1]))
    return heads.part(n, n.softmax(n.concat(found, sink, axis=-1), axis=-1), 0, keys)
