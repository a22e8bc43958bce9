"""Let a pooling compute, on a GPU, the function of its result that follows, with operands that lie beside it.

A mixer by pooling (PoolFormer, EfficientFormer), a + (pool(x) - x) * scale, is one step in the place of two. It has
an `ending`: an expression of what it pools, `a`, and of its further inputs, `b` to `d`.
"""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.activations import expression_of
from kernels.ir.expressions import LETTERS, Expression, with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.programs import in_floats
from kernels.ir.shapes import POOLS
from kernels.ir.strides import along_channels
from kernels.passes.fuse_maps import number_of
from kernels.passes.rewrite import rebuilt


def end_pools(graph: Graph) -> Graph:
    """A pooling that only one node reads, which computes each element by itself, goes into that node's place."""
    counts, writers = use_counts(graph), producers(graph)
    ended: dict[str, Node] = {}
    gone: set[str] = set()
    for node in graph.nodes:
        for name in node.inputs:
            pool = writers.get(name)
            if pool is None or pool.op not in POOLS or counts[name] != node.inputs.count(name):
                continue
            found = _ended(graph, pool, node) if pool.output not in gone else None
            if found is not None:
                ended[node.output] = found
                gone.add(name)
                break
    return rebuilt(graph, [ended.get(node.output, node) for node in graph.nodes if node.output not in gone])


def _ended(graph: Graph, pool: Node, node: Node) -> Node | None:
    """Return the pooling that ends in a node; None where its operands do not lie in stacks as its result does."""
    expression, shape = expression_of(node), graph.shapes[node.output]
    if expression is None or not in_floats(node, graph.types) or graph.shapes[pool.output] != shape or len(shape) != 4:
        return None
    numbers = {name: number for name in node.inputs if (number := number_of(graph, name)) is not None}
    beside = [name for name in dict.fromkeys(node.inputs) if name not in (pool.output, *numbers)]
    for name in beside:
        is_constant = name in graph.constants
        kind = along_channels(graph.shapes[name], shape, constant=is_constant)
        if kind not in ("c", "C", "f", "F") or not (is_constant or kind == "F"):
            return None
    if len(beside) >= len(LETTERS) or shape[2] * shape[3] == 1:
        return None
    by: dict[str, Expression] = {pool.output: "a", **numbers, **dict(zip(beside, LETTERS[1:], strict=False))}
    ending = with_operands(expression, {letter: by[name] for letter, name in zip(LETTERS, node.inputs, strict=False)})
    attributes = {**pool.attributes, "ending": ending}
    return replace(pool, name=node.name, inputs=(*pool.inputs, *beside), outputs=node.outputs, attributes=attributes)
