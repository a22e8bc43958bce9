"""Concat without copies: which tensors can be written straight into their place in a concat's result."""

from __future__ import annotations

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers

WRITES_STACKS = frozenset(
    {
        "conv", "dense", *ACTIVATIONS, "max_pool", "average_pool", "global_average_pool", "add", "mul", "affine", "lrn",
        "concat", "softmax", "instance_norm", "pad", "resize",
    }
)  # fmt: skip
"""Operations whose kernels write four-channel stacks at any stack offset."""


def plan_aliases(graph: Graph, *, multiple: int) -> dict[str, tuple[str, int]]:
    """Tensor -> (concat's output, first channel in it), for offsets that are a multiple of `multiple` channels."""
    writers = producers(graph)
    aliases: dict[str, tuple[str, int]] = {}
    for node in graph.nodes:
        if node.op == "concat" and node.attributes["axis"] == 1 and len(graph.shapes[node.output]) in (2, 4):
            _alias_parts(graph, node, writers, aliases, multiple)
    return aliases


def _alias_parts(
    graph: Graph, node: Node, writers: dict[str, Node], aliases: dict[str, tuple[str, int]], multiple: int
) -> None:
    offset = 0
    for index, name in enumerate(node.inputs):
        channels = graph.shapes[name][1]
        last = index == len(node.inputs) - 1
        producer = writers.get(name)
        if (
            offset % multiple == 0
            and (channels % multiple == 0 or last)
            and producer is not None
            and producer.op in WRITES_STACKS
            and not (producer.op == "softmax" and producer.attributes["axis"] != 1)
            and not (producer.op == "concat" and producer.attributes["axis"] != 1)
            and node.inputs.count(name) == 1
            and name not in aliases
        ):
            aliases[name] = (node.output, offset)
        offset += channels
