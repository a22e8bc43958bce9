"""Convolutions as the two steps of im2col, which may be on different sides (study C)."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.shapes import output_shape


def with_windows(graph: Graph) -> Graph:
    """The graph with each convolution as an `im2col` and a 1x1 convolution, which is a matrix product.

    One that is 1x1 already stays as it is, and so does one in groups, with mirrored edges, or with computed weights.
    """
    shapes, constants, nodes = dict(graph.shapes), dict(graph.constants), []
    for node in graph.nodes:
        if not _parts(graph, node):
            nodes.append(node)
            continue
        source, weight, *others = node.inputs
        k, c, kh, kw = shapes[weight]
        matrix, windows = f"{weight}:matrix", f"{node.name}:windows"
        constants[matrix] = constants[weight].reshape(k, c * kh * kw, 1, 1)
        how = {name: node.attributes[name] for name in ("strides", "pads", "dilations")}
        first = Node(f"{node.name}:im2col", "im2col", (source,), (windows,), {"kernel": (kh, kw), **how})
        shapes |= {matrix: constants[matrix].shape, windows: output_shape(first, shapes)}
        product = {**node.attributes, "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
        nodes += [first, replace(node, inputs=(windows, matrix, *others), attributes=product)]
    return replace(graph, nodes=nodes, shapes=shapes, constants=constants)


def _parts(graph: Graph, node: Node) -> bool:
    if node.op != "conv" or node.inputs[1] not in graph.constants:
        return False
    a = node.attributes
    same = graph.shapes[node.inputs[1]][2:] == (1, 1) and tuple(a["strides"]) == (1, 1) and not any(a["pads"])
    return a["groups"] == 1 and not a.get("pad_mode") and not same
