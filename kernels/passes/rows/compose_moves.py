"""One copy of a chain of moves that leave rows whole: what rolls a picture, cuts it into windows or joins pixels."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import joined
from kernels.passes.rewrite import prune, rebuilt

from .row_moves import MOVES, ROW_MAJOR, RowMoves, Rows


def compose_moves(graph: Graph) -> Graph:
    """reshapes, transpositions, slices, concats and pads of rows of one tensor -> take, where two of them copy."""
    if not of_rows(graph):
        return graph
    found: dict[str, list[Node]] = {}
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    moves = RowMoves(graph)
    for node in graph.nodes:
        if node.op not in MOVES or node.output not in moves.row_major or not _is_last(graph, node):
            continue
        chain = moves.of(node.output)
        if chain is not None and not chain.is_picture and chain.axis is None and chain.moves > 1:
            source = (chain.root, prod(graph.shapes[chain.root]) // chain.width, chain.width)
            flat = replace(node, attributes={"shape": graph.shapes[node.output]})
            found[node.output] = copied(flat, source, chain.flat, constants, shapes)
    nodes = [each for node in graph.nodes for each in found.get(node.outputs[0] if node.outputs else "", [node])]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if found else graph


def of_rows(graph: Graph) -> bool:
    """Return whether a graph works on rows, so that it pays to look at what is moved."""
    return any(node.op in ROW_MAJOR - {"dense"} for node in graph.nodes)


def _is_last(graph: Graph, node: Node) -> bool:
    readers = graph.consumers(node.output)
    return node.output in graph.outputs or any(reader.op not in MOVES for reader in readers)


def copied(
    node: Node, source: tuple[str, int, int], rows: Rows, constants: dict[str, Array], shapes: dict[str, Shape]
) -> list[Node]:
    """Return the nodes that write a reshape's result of rows of a source (name, rows, width) instead: a take before it,
    or nothing more where all rows stay in their order."""
    root, count, width = source
    node = replace(node, op="reshape", inputs=(root,))
    if np.array_equal(rows, np.arange(count)):
        return [node]
    blocks, step, table = in_blocks(rows)
    taken, listed = f"{node.output}.taken", f"{node.output}.table"
    shapes[taken] = (blocks, len(table), width)
    constants[listed] = joined(part.astype(np.float32) for part in (np.arange(blocks), table, np.arange(width)))
    attributes = {"shape": shapes[taken], "strides": (step * width, width, 1), "value": 0.0}
    take = Node(node.name, "take", (root, listed), (taken,), attributes)
    return [take, replace(node, inputs=(taken,))]


def in_blocks(rows: Rows, *, of: int = 1) -> tuple[int, int, Rows]:
    """Tell how often a list of rows repeats, how many rows further each time, and the list of once: `of` or more."""
    for blocks in range(len(rows) // of, 1, -1):
        if len(rows) % (blocks * of):
            continue
        table = rows.reshape(blocks, -1)
        step = int(table[1].max() - table[0].max())
        further = np.where(table[0] < 0, -1, table[0] + step * np.arange(blocks)[:, None])
        if step >= 0 and np.array_equal(table, further):
            return blocks, step, table[0]
    return 1, 0, rows
