"""Operations of a transformer on rows: attention and normalisation (`kernels/passes/rows/fuse_attention.py`,
`row_norms.py`)."""

from __future__ import annotations

from math import prod

from kernels.ir.graph import Node

from .context import CpuContext


def lower_attention(context: CpuContext, node: Node) -> None:
    a = node.attributes
    images, heads, rows, keys, depth, columns = a["sizes"]
    ints = {"images": images, "heads": heads, "rows": rows, "keys": keys, "depth": depth, "columns": columns}
    for name, word in (("q", "q"), ("k", "k"), ("v", "v"), ("dst", "out")):
        parts = zip(("start", "image", "head", "row"), a[word], strict=True)
        ints |= {f"{name}_{part}": number for part, number in parts}
    buffers = {name: context.read(tensor) for name, tensor in zip("qkv", node.inputs, strict=True)}
    buffers["dst"] = context.write(node.output)
    flops = 2 * images * heads * rows * keys * (depth + columns)
    context.call("attention", node, buffers, ints, {"scale": float(a["scale"])}, flops)


def lower_row_norm(context: CpuContext, node: Node) -> None:
    shape = context.graph.shapes[node.output]
    src, scale, shift = (context.read(name) for name in node.inputs)
    buffers = {"src": src, "scale": scale, "shift": shift, "dst": context.write(node.output)}
    a = node.attributes
    ints = {"rows": prod(shape[:-1]), "columns": shape[-1], "centred": int(a.get("centred", True))}
    floats = {"epsilon": float(a["epsilon"]), "least": float(a.get("least", 0.0))}
    context.call("row_norm", node, buffers, ints, floats, 8 * prod(shape))
