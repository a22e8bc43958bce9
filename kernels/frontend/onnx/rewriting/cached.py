"""Heads over a cache that has room for new keys and values: operations of their own (`kernels/ir/cache.py`)."""

from __future__ import annotations

from typing import Any

import onnx

from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.steps import Steps


def attention(n: Nodes, capacity: int) -> None:
    """GroupQueryAttention over a cache of this capacity, whose new rows end at the places that an input says."""
    query, key, value, past_key, past_value, ends, _, cosines, sines, at = (*n.node.inputs, *("",) * 10)[:10]
    count, shared = int(n.attribute("num_heads", 0)), int(n.attribute("kv_num_heads", 0))
    s, rows, size = Steps(n.node, n.to), n.shape(query)[1], n.shape(past_key)[3]
    firsts = (0, 0, 0) if key else (0, count * size, (count + shared) * size)
    sources = (query, key or query, value or query)
    places = [
        (first, rows * n.shape(source)[2], size, n.shape(source)[2])
        for first, source in zip(firsts, sources, strict=True)
    ]
    turned = 2 * n.shape(cosines)[-1] if n.attribute("do_rotary", 0) else 0
    if turned and at:
        cosines, sines = (n.gather(table, at, axis=0) for table in (cosines, sines))
    angles = [s.tensor(table) for table in (cosines, sines)] if turned else []
    last = s.tensor(n.reshape(n.cast(ends, to=onnx.TensorProto.INT64), n.store([-1])))
    usual: dict[str, Any] = {"rows": rows, "turned": turned, "by_place": not at, "normed": False, "epsilon": 0.0}
    found = []
    for index, past, beside in ((1, past_key, angles), (2, past_value, [])):
        attributes = {**usual, "place": places[index], "turned": turned if beside else 0}
        operands = (s.tensor(past), s.tensor(sources[index]), last, *beside)
        found.append(s.emit("append", operands, attributes, n.node.outputs[index] if n.wants(index) else ""))
    window = int(n.attribute("local_window_size", -1))
    attributes = {**usual, "place": places[0], "heads": count, "window": max(0, window) if window < capacity else 0}
    attributes |= {
        "scale": float(n.attribute("scale", 0.0)) or size**-0.5,
        "softcap": float(n.attribute("softcap", 0.0)),
    }
    s.emit("attend", (s.tensor(query), *found, last, *angles), attributes, n.node.outputs[0])
