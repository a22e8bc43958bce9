"""One copy of a chain of moves that leave rows whole: what rolls a picture, cuts it into windows or joins pixels."""

from __future__ import annotations

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import joined

from .prune import prune
from .rewrite import fresh, producers, rebuilt
from .row_moves import MOVES, Moved, Rows, moved

_ROW_MAJOR = frozenset({"dense", "row_norm", "attention", "matmul"})
"""Operations whose results lie row-major on a GPU: stacks of channels would have to be unpacked first."""
_BY_ELEMENT = frozenset({"add", "mul", "map"})


def compose_moves(graph: Graph) -> Graph:
    """reshapes, transpositions, slices, concats and pads of rows of one tensor -> take, where two of them copy."""
    writers, rows = producers(graph), _row_major(graph)
    found: dict[str, list[Node]] = {}
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        if node.op not in MOVES or node.output not in rows or not _is_last(graph, node):
            continue
        chain = moved(graph, node.output, writers)
        if chain is not None and chain.root in rows and chain.moves > 1:
            found[node.output] = _copied(graph, node, chain, constants, shapes)
    nodes = [each for node in graph.nodes for each in found.get(node.outputs[0] if node.outputs else "", [node])]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if found else graph


def _row_major(graph: Graph) -> set[str]:
    """Tensors that such operations wrote, and what is moved of them or computed of each of their elements."""
    found: set[str] = set()
    for node in graph.nodes:
        passed = node.op in MOVES or node.op in _BY_ELEMENT
        if node.op in _ROW_MAJOR or (passed and any(name in found for name in node.inputs)):
            found |= set(node.outputs)
    return found


def _is_last(graph: Graph, node: Node) -> bool:
    readers = graph.consumers(node.output)
    return node.output in graph.outputs or any(reader.op not in MOVES for reader in readers)


def _copied(
    graph: Graph, node: Node, chain: Moved, constants: dict[str, Array], shapes: dict[str, Shape]
) -> list[Node]:
    """A take of whole rows and a reshape; the reshape alone where all rows stay in their order."""
    reshaped = {"shape": graph.shapes[node.output]}
    source_rows = int(np.prod(graph.shapes[chain.root])) // chain.unit
    if np.array_equal(chain.rows, np.arange(source_rows)):
        return [Node(node.name, "reshape", (chain.root,), node.outputs, reshaped)]
    blocks, step, rows = in_blocks(chain.rows)
    taken, table = (fresh(graph, f"{node.output}.{word}") for word in ("taken", "table"))
    shapes[taken] = (blocks, len(rows), chain.unit)
    constants[table] = joined(part.astype(np.float32) for part in (np.arange(blocks), rows, np.arange(chain.unit)))
    attributes = {"shape": shapes[taken], "strides": (step * chain.unit, chain.unit, 1), "value": 0.0}
    return [
        Node(node.name, "take", (chain.root, table), (taken,), attributes),
        Node(node.name, "reshape", (taken,), node.outputs, reshaped),
    ]


def in_blocks(rows: Rows, *, of: int = 1) -> tuple[int, int, Rows]:
    """How often a list of rows says the same, how many rows further each time, and the list of once: `of` or more."""
    for blocks in range(len(rows) // of, 1, -1):
        if len(rows) % (blocks * of):
            continue
        table = rows.reshape(blocks, -1)
        step = int(table[1].max() - table[0].max())
        further = np.where(table[0] < 0, -1, table[0] + step * np.arange(blocks)[:, None])
        if step >= 0 and np.array_equal(table, further):
            return blocks, step, table[0]
    return 1, 0, rows
