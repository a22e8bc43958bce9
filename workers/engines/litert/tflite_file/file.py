"""Graph -> a .tflite file."""

from __future__ import annotations

from pathlib import Path

from kernels.ir.graph import Graph

from .operations import OPERATIONS
from .writer import Unsupported, Writer


def write_tflite(graph: Graph, path: Path) -> None:
    """Write the file; inputs and outputs keep their order. Raises Unsupported. `graph`: simplified."""
    writer = Writer(graph)
    inputs = [writer.activation(name) for name in graph.inputs]
    for node in graph.nodes:
        if node.op not in OPERATIONS:
            raise Unsupported(f"{node.name}: no counterpart of {node.op} in this writer")
        OPERATIONS[node.op](writer, node)
    path.write_bytes(writer.finish(inputs, [writer.activation(name) for name in graph.outputs]))
