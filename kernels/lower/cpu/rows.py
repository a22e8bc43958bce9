"""Operations of a transformer on rows: attention and normalisation (`kernels/passes/rows/fuse_attention.py`,
`row_norms.py`), and what goes over a cache (`kernels/ir/cache.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kernels.ir.graph import Node
from kernels.ir.links import dense_readers, is_root_mean_square

from .algorithms import in_int8, reads_panels
from .context import CpuContext
from .general import grown


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
    """Products of stored weights normalise the rows that they read by the root of their mean square."""
    if is_root_mean_square(context.graph, node) and _are_products(context, dense_readers(context.graph, node.output)):
        context.norms[node.output], context.buffers[node.output] = node, context.read(node.inputs[0])
        return
    shape = context.graph.shapes[node.output]
    given = [context.read(name) for name in node.inputs]
    dst = context.write(node.output)
    buffers = dict(zip(("src", "scale", "shift", "beside", "dst"), (*given, *(dst,) * (5 - len(given))), strict=True))
    a = node.attributes
    ints = {"rows": prod(shape[:-1]), "columns": shape[-1], "centred": int(a.get("centred", True))}
    ints |= {"added": int(len(given) > 3)}
    floats = {"epsilon": float(a["epsilon"]), "least": float(a.get("least", 0.0))}
    context.call("row_norm", node, buffers, ints, floats, 8 * prod(shape))


def _are_products(context: CpuContext, readers: Sequence[Node] | None) -> bool:
    graph, options = context.graph, context.options
    return bool(readers) and all(
        reads_panels(options, graph, node) and not in_int8(options, graph, node) for node in readers or ()
    )


def lower_cached(context: CpuContext, node: Node) -> None:
    """`append` and `attend`."""
    a, shapes, attends = node.attributes, context.graph.shapes, node.op == "attend"
    names, operands = (("q", "k", "v"), node.inputs) if attends else (("src",), node.inputs[1:])
    given = dict(zip((*names, "ends", "cosines", "sines", "norm"), operands, strict=False))
    images, shared, capacity, depth = shapes[node.inputs[1 if attends else 0]]
    angles = shapes[given["cosines"]] if a["turned"] else (1,)
    ints = {"images": images, "heads": a.get("heads", shared), "rows": a["rows"], "capacity": capacity, "depth": depth}
    ints |= dict(zip(("start", "image", "head", "row"), a["place"], strict=True))
    ints |= {"turned": a["turned"], "by_place": int(a["by_place"]), "places": angles[0], "batches": angles[0]}
    ints |= {"normed": int(a["normed"])}
    floats = {"epsilon": float(a["epsilon"])}
    if attends:
        ints |= {"shared": shared, "columns": shapes[given["v"]][3], "window": a["window"]}
        floats |= {"scale": float(a["scale"]), "softcap": float(a["softcap"])}
    dst = context.write(node.output) if attends else grown(context, node)
    buffers = {name: context.read(tensor) for name, tensor in given.items() if tensor}
    buffers |= {name: dst for name in ("cosines", "sines", "norm") if name not in buffers}
    order = (*names, "ends", "cosines", "sines", "norm")
    flops = 4 * images * ints["heads"] * a["rows"] * capacity * depth if attends else 0
    context.call(node.op, node, {**{name: buffers[name] for name in order}, "dst": dst}, ints, floats, flops)
