"""The tensors that the agent computes in blocks of sixteen channels (nc16hw16); the others are row-major."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.ir.programs import held
from kernels.ir.strides import along_channels
from kernels.options import Options

from .algorithms import algorithm_of
from .packing import BLOCK

_POOLS = frozenset({"max_pool", "average_pool", "global_average_pool"})


def in_blocks(graph: Graph, options: Options) -> frozenset[str]:
    """Tensors whose producer writes blocks: convolutions do, and what only hands their layout on."""
    found: set[str] = set()
    for node in graph.nodes:
        if len(graph.shapes[node.output]) == 4 and _writes_blocks(graph, node, options, found):
            found.add(node.output)
    return frozenset(found)


def _writes_blocks(graph: Graph, node: Node, options: Options, found: set[str]) -> bool:
    shape = graph.shapes[node.output]
    if node.op == "conv":
        return algorithm_of(options, graph, node).in_blocks
    if node.op == "lrn":
        return True
    if node.op in _POOLS or node.op in ACTIVATIONS or node.op == "affine":
        return node.inputs[0] in found
    if node.op in ("add", "mul"):
        return all(name in found and graph.shapes[name] == shape for name in node.inputs[:2])
    if node.op == "map":
        kinds = [graph.types[name] for name in (*node.inputs, node.output)]
        if any(held(kind) != "f32" for kind in kinds):
            return False
        return any(name in found for name in node.inputs) and all(
            along_channels(graph.shapes[name], shape, constant=name in graph.constants)
            and (name in graph.constants or len(graph.shapes[name]) == 4)
            for name in node.inputs
        )
    return node.op == "concat" and is_aligned_concat(graph, node) and _mostly(graph, node.inputs, found)


def _mostly(graph: Graph, parts: Sequence[str], found: set[str]) -> bool:
    """Return whether half of the channels come in blocks: a small row-major part must not turn the whole and its
    readers."""
    channels = {part: graph.shapes[part][1] for part in parts}
    return 2 * sum(count for part, count in channels.items() if part in found) >= sum(channels.values())


def conversions(node: Node) -> tuple[str, ...]:
    """Names of the steps that a row-major node adds where its neighbours work on blocks."""
    activations = [name for name in (*node.inputs[:1], *node.inputs[3:4]) if name]
    return (*(f"{name}:from_nc16" for name in activations), *(f"{name}:to_nc16" for name in node.outputs))


def is_aligned_concat(graph: Graph, node: Node) -> bool:
    """Every part of a concat of channels begins at a block."""
    return node.attributes["axis"] == 1 and all(graph.shapes[name][1] % BLOCK == 0 for name in node.inputs[:-1])
