"""Turns between rows of channels and images, however they are written, over the image's four axes.

PVT and SegFormer turn (N, pixels, C) and give an image its rows and columns afterwards. Over four axes the passes of
channels know a turn, and vectors of channels change places in one step.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ir.dims import TO_IMAGE, TO_ROWS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.shapes import Shape
from kernels.passes.moves.transposes import Look, look, merged, whole
from kernels.passes.rewrite import fresh, prune, rebuilt
from kernels.passes.rows.strided_looks import Axis


def image_turns(graph: Graph, *, to_rows: bool = False) -> Graph:
    """moves of rows that end in an image -> reshape, transpose.

    `to_rows`: moves of an image that end in rows -> transpose, reshape, too, after which `late_turns` finds no more.
    """
    counts = use_counts(graph)
    looks: dict[str, Look] = {}
    alone: set[str] = set()
    shapes: dict[str, Shape] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        root, axes, turns = looks[node.output] = look(graph, node, looks)
        if root != node.output and (
            node.inputs[0] == root or (node.inputs[0] in alone and counts[node.inputs[0]] == 1)
        ):
            alone.add(node.output)
        shape, middle = graph.shapes[node.output], fresh(graph, f"{node.output}.turned")
        perm = node.attributes.get("perm")
        if node.output not in alone or (perm == TO_ROWS and node.inputs[0] == root):
            nodes.append(node)
        elif to_rows and node.op == "transpose" and _are_rows(graph, root, axes):
            shapes[middle] = _rows(graph.shapes[root])
            nodes.append(Node(node.name, "transpose", (root,), (middle,), {"perm": TO_ROWS}))
            nodes.append(Node(node.name, "reshape", (middle,), node.outputs, {"shape": shape}))
        elif turns and len(shape) == 4 and perm != TO_IMAGE and _is_whole(axes, TO_ROWS):
            shapes[middle] = _rows(shape)
            nodes.append(Node(node.name, "reshape", (root,), (middle,), {"shape": shapes[middle]}))
            nodes.append(Node(node.name, "transpose", (middle,), node.outputs, {"perm": TO_IMAGE}))
        else:
            nodes.append(node)
    return prune(rebuilt(graph, nodes, shapes=shapes)) if shapes else graph


def _rows(image: Shape) -> Shape:
    n, c, h, w = image
    return n, h, w, c


def _is_whole(axes: Sequence[Axis], perm: Sequence[int]) -> bool:
    """Return whether only in this order its elements are those of the other tensor, one after the other."""
    return len(merged(axes)) > 1 == len(merged([axes[axis] for axis in perm]))


def _are_rows(graph: Graph, root: str, axes: Sequence[Axis]) -> bool:
    """Return whether another tensor is an image, and its elements are here in the order of its rows."""
    (_, image, _) = whole(graph, root)
    return len(image) == 4 and len(merged(axes)) > 1 and merged(axes) == merged([image[axis] for axis in TO_ROWS])
