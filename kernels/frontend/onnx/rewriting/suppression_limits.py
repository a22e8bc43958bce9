"""A NonMaxSuppression chooses no more boxes than are read of it.

PyTorch's exporters let it choose as many as there are, and slice what they read: `keep[:100]`. The slice's end becomes
the node's `max_output_boxes_per_class`, as far as what lies between the two treats each row by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
import onnx
from onnx import numpy_helper

from kernels.frontend.onnx.reading.graphs import every_node, inner_graphs

_BY_ROWS = ("Cast", "Gather", "Identity", "Slice", "Squeeze", "Unsqueeze")


def limit_suppression(graph: onnx.GraphProto) -> None:
    """Write the limits into the model; none where graphs inside of it share names: a name may mean two things there."""
    nodes = [*every_node(graph.node)]
    if not any(node.op_type == "NonMaxSuppression" for node in nodes):
        return
    made = [name for node in nodes for name in node.output if name]
    made += [tensor.name for each in (graph, *inner_graphs(graph.node)) for tensor in each.initializer]
    if len({*made}) < len(made):
        return
    reading = _Reading(graph, nodes)
    for index, node in enumerate(nodes):
        if node.op_type != "NonMaxSuppression" or len(node.input) < 3:
            continue
        given, limit = reading.numbers(node.input[2]), max(1, reading.limit(node.output[0]))
        if given and limit < given[0]:
            name = f"{node.output[0]}.most{index}"
            graph.initializer.append(numpy_helper.from_array(np.array([limit], np.int64), name))
            node.input[2] = name


class _Reading:
    """The readers of a tensor, and constants, of a graph and those inside of it; no two of them share a name."""

    def __init__(self, graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        self._given_on: dict[str, list[str]] = {}
        self._outputs = {port.name for port in graph.output}
        self._constants: dict[str, onnx.TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
        for node in nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
            for attribute in node.attribute:
                if node.op_type == "If":
                    for place, port in enumerate(attribute.g.output):
                        self._given_on.setdefault(port.name, []).append(node.output[place])
                elif attribute.name == "value" and node.op_type == "Constant":
                    self._constants[node.output[0]] = attribute.t
        for inner in inner_graphs(graph.node):
            self._constants |= {tensor.name: tensor for tensor in inner.initializer}
            self._outputs |= {port.name for port in inner.output} - self._given_on.keys()

    def numbers(self, name: str) -> list[int] | None:
        """Content of a constant."""
        tensor = self._constants.get(name)
        return None if tensor is None else [int(number) for number in numpy_helper.to_array(tensor).reshape(-1)]

    def limit(self, name: str) -> float:
        """Return how many of a tensor's first rows are read at most."""
        if name in self._outputs:
            return inf
        return max([*self._asked(name), *map(self.limit, self._given_on.get(name, []))], default=0)

    def _asked(self, name: str) -> Iterator[float]:
        for node in self._readers.get(name, []):
            if node.op_type not in _BY_ROWS or node.input[0] != name or not self._keeps_rows(node):
                yield inf
            elif node.op_type == "Slice" and len(node.input) > 3 and self.numbers(node.input[3]) == [0]:
                start, end = self.numbers(node.input[1]), self.numbers(node.input[2])
                step = self.numbers(node.input[4]) if len(node.input) > 4 else [1]
                ahead = start == [0] and step == [1] and end and end[0] > 0
                yield min(end[0], self.limit(node.output[0])) if ahead and end else inf
            else:
                yield self.limit(node.output[0])

    def _keeps_rows(self, node: onnx.NodeProto) -> bool:
        """Return whether a node's result has the rows of its input, in their order, or the first ones."""
        given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "Gather":
            return bool(given.get("axis", 0) == 1)
        if node.op_type in ("Squeeze", "Unsqueeze"):
            axes = given.get("axes") or (self.numbers(node.input[1]) if len(node.input) > 1 else None)
            return axes is not None and min(axes) > 0
        return node.op_type != "Slice" or (len(node.input) > 3 and bool(self.numbers(node.input[3])))
