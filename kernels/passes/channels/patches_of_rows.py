"""A convolution of rows of channels, whose windows lie side by side, is a dense layer of patches of these rows.

So a ConvNeXt makes its images smaller, and so is a 1x1 convolution of what a transposition made an image.
"""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.ir.dims import TO_IMAGE, is_turn
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape
from kernels.ir.taking import joined
from kernels.passes.rewrite import fresh, prune, rebuilt


def patches_of_rows(graph: Graph) -> Graph:
    """transpose, conv -> [take,] dense, transpose, where nobody else reads the image."""
    counts, writers = use_counts(graph), producers(graph)
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    nodes: list[Node] = []
    for conv in graph.nodes:
        turn = writers.get(conv.inputs[0]) if conv.op == "conv" else None
        if turn is None or counts[turn.output] > 1 or not is_turn(turn, TO_IMAGE) or not _is_whole(graph, conv):
            nodes.append(conv)
            continue
        (n, h, w, c), (m, _, kh, kw) = graph.shapes[turn.inputs[0]], graph.shapes[conv.inputs[1]]
        extents, strides = (n, h // kh, w // kw, kh, kw, c), (c * h * w, kh * w * c, kw * c, w * c, c, 1)
        taken, flat, sums, rows, table, weight = (
            fresh(graph, f"{conv.output}.{word}") for word in ("patches", "flat", "sums", "rows", "table", "weight")
        )
        count, depth = prod(extents[:3]), prod(extents[3:])
        shapes |= {taken: extents, flat: (count, depth), sums: (count, m), rows: (n, h // kh, w // kw, m)}
        constants[table] = joined(np.arange(extent, dtype=np.float32) for extent in extents)
        ordered = graph.constants[conv.inputs[1]].transpose(2, 3, 1, 0)
        constants[weight] = np.ascontiguousarray(ordered.reshape(depth, m))
        if kh * kw > 1:
            places = {"shape": extents, "strides": strides, "value": 0.0}
            nodes.append(Node(f"{conv.name}.patches", "take", (turn.inputs[0], table), (taken,), places))
        source = taken if kh * kw > 1 else turn.inputs[0]
        nodes += [
            Node(f"{conv.name}.rows", "reshape", (source,), (flat,), {"shape": shapes[flat]}),
            Node(conv.name, "dense", (flat, weight, *conv.inputs[2:]), (sums,)),
            Node(f"{conv.name}.rows", "reshape", (sums,), (rows,), {"shape": shapes[rows]}),
            Node(f"{conv.name}.image", "transpose", (rows,), conv.outputs, {"perm": TO_IMAGE}),
        ]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if shapes else graph


def _is_whole(graph: Graph, conv: Node) -> bool:
    """Return whether its windows lie side by side and leave no pixel out, and its weights and bias are constants."""
    a = conv.attributes
    if not set(conv.inputs[1:]) <= set(graph.constants) or len(conv.inputs) > 3 or a["groups"] != 1:
        return False
    kernel, extents = graph.shapes[conv.inputs[1]][2:], graph.shapes[conv.inputs[0]][2:]
    side_by_side = tuple(a["strides"]) == tuple(kernel) and tuple(a["dilations"]) == (1, 1) and not any(a["pads"])
    return side_by_side and not any(extent % size for extent, size in zip(extents, kernel, strict=True))
