"""Layers that are computed in 8 bits round their results to the scale and zero point that a model's QDQ nodes give.

A convolution whose result is read by equal steps only takes their rounding (`output_steps`), and who reads the pair
behind it reads the convolution. It goes on behind the rounding: a normalisation becomes its inputs 4 and 5 (the
rounding `sum_steps`), a sum gives it a residual (`branch_steps`), and it takes the rounding behind each in its turn.
Nothing is computed otherwise than by the pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.lower.cpu.algorithms import in_int8
from kernels.options import Options
from kernels.passes.fuse_residuals import same_shapes
from kernels.passes.rewrite import prune, rebuilt, renamed

from .pairs import Steps, qdq_pair

RESIDUAL = 3
"""Number of the input."""


def rounded_outputs(graph: Graph, options: Options) -> Graph:
    """Round outputs; it runs after activations and residuals were fused, and before maps are."""
    graph = _round_results(graph, options)
    if "normalisation" in options.fusions:
        graph = _round_results(_joined(graph, "affine", _with_affine), options)
    if "residual" in options.fusions:
        graph = _round_results(_joined(graph, "add", _with_residual), options)
    return graph


def _round_results(graph: Graph, options: Options) -> Graph:
    by, done = producers(graph), dict[str, Node]()
    layers = {node.output for node in graph.nodes if node.op == "conv" and in_int8(options, graph, node)}
    pairs = {node.output: pair for node in graph.nodes if (pair := qdq_pair(by, node.output))}
    steps, names = _steps_of_readers(graph, by, layers, pairs), dict[str, str]()
    for node in graph.nodes:
        read, own = pairs.get(node.output, ("", None))
        source = names.get(read, read)
        if source in layers and node.output not in graph.outputs and steps[read] == {own}:
            before = done[source].attributes
            if before.get("output_steps", own) == own:
                done[source] = replace(done[source], attributes={**before, "output_steps": own})
                names[node.output] = source
                continue
        done[node.output] = renamed(node, names)
    return prune(rebuilt(graph, [*done.values()]))


def _steps_of_readers(
    graph: Graph, by: Mapping[str, Node], layers: Collection[str], pairs: Mapping[str, tuple[str, Steps]]
) -> dict[str, set[Steps | None]]:
    """Return the steps by which each tensor is read; None: as it is."""
    found: dict[str, set[Steps | None]] = defaultdict(set, {name: {None} for name in graph.outputs})
    halves = {by[name].inputs[0] for name in pairs}
    for read, steps in pairs.values():
        found[read].add(steps)
    for node in graph.nodes:
        for at, name in enumerate(node.inputs):
            if node.output not in halves and node.output not in pairs:
                is_layer = node.output in layers and at == 0
                found[name].add(node.attributes.get("input_steps") if is_layer else None)
    others = {name for name in halves if found[name]}  # whole numbers that are read by others than a pair's other half
    return {**found, **{by[name].inputs[0]: {None} for name in others}}


def _joined(graph: Graph, op: str, join: Callable[[Graph, Node, Node], Node | None]) -> Graph:
    """Nodes of an operation that alone read a rounded convolution become its end, where `join` makes one of both."""
    counts, writers = use_counts(graph), producers(graph)
    joined: dict[str, Node] = {}
    gone: set[str] = set()
    for node in graph.nodes:
        for name in node.inputs if node.op == op else ():
            conv = writers.get(name)
            if conv is None or "output_steps" not in conv.attributes or counts[name] != 1 or node.output in joined:
                continue
            one = join(graph, conv, node) if conv.attributes.get("activation") is None else None
            if one is not None:
                joined[node.output] = one
                gone.add(name)
    return rebuilt(graph, [joined.get(node.output, node) for node in graph.nodes if node.output not in gone])


def _with_affine(graph: Graph, conv: Node, affine: Node) -> Node | None:
    constants = all(name in graph.constants for name in affine.inputs[1:])
    if len(conv.inputs) > RESIDUAL or not constants or affine.inputs[0] != conv.output:
        return None
    inputs = (*conv.inputs, "")[:RESIDUAL]
    inputs = (*inputs, "", *affine.inputs[1:])
    return _moved(replace(conv, inputs=inputs), affine, "sum_steps")


def _with_residual(graph: Graph, conv: Node, add: Node) -> Node | None:
    if any(conv.inputs[RESIDUAL : RESIDUAL + 1]) or not same_shapes(graph, add):
        return None
    other = next(name for name in add.inputs if name != conv.output)
    inputs = (*conv.inputs, "")[:RESIDUAL]
    inputs = (*inputs, other, *conv.inputs[RESIDUAL + 1 :])
    return _moved(replace(conv, inputs=inputs), add, "branch_steps")


def _moved(conv: Node, then: Node, steps: str) -> Node:
    """Put a convolution in the place of what follows, with its activation; the rounding is of what was before."""
    attributes = {**conv.attributes, **then.attributes, steps: conv.attributes["output_steps"]}
    del attributes["output_steps"]
    return replace(conv, outputs=then.outputs, attributes=attributes)
