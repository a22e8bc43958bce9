"""Compulsory traffic: how many elements of its operands and its result a node touches, each once."""

from __future__ import annotations

from math import prod

from kernels.ir.cache import CACHED
from kernels.ir.graph import Graph, Node


def touched(graph: Graph, node: Node) -> dict[str, int]:
    """Return the elements of each tensor that a node touches: rows only where it takes or puts such, or looks at them
    where they lie in wider ones. What was in a cache before is not touched; how much of it is valid is not known."""
    found = {name: prod(graph.shapes[name]) for name in (*node.inputs, *node.outputs) if name}
    a, past = node.attributes, node.inputs[0] if node.inputs else ""
    if node.op == "gather":
        found[past] = found[node.output]
    elif node.op == "put_rows":
        found |= {past: 0, node.output: found[node.inputs[1]]}
    elif node.op == "append":
        batch, heads, _, depth = graph.shapes[past]
        found |= {past: 0, **dict.fromkeys((node.inputs[1], node.output), batch * heads * a["rows"] * depth)}
    elif node.op == "attend":
        batch, _, _, depth = graph.shapes[node.inputs[1]]
        found[past] = batch * a["heads"] * a["rows"] * depth
    if node.op in CACHED and a["turned"]:
        angles = node.inputs[3 + (node.op == "attend") :][:2]
        found |= dict.fromkeys(angles, batch * a["rows"] * a["turned"] // 2)
    return found
