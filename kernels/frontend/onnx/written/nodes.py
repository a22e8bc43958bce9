"""A node of the model as several standard ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.operators import import_node

OPSET = 23
"""The opset in which standard nodes are written, whatever the model's is."""


class Nodes:
    """The nodes that one node is written out to."""

    def __init__(self, node: OnnxNode, to: Context) -> None:
        self.node, self.to = node, to

    def attribute(self, name: str, usual: Any) -> Any:
        return self.node.attributes.get(name, usual)

    def add(self, op: str, *inputs: str, to_output: int | None = None, **attributes: Any) -> str:
        """Import a standard node; returns its result, the output of this number or a new tensor."""
        target = self.fresh(op) if to_output is None else self.node.outputs[to_output]
        import_node(OnnxNode(target, op, OPSET, inputs, (target,), attributes), "", self.to)
        return target

    def several(self, op: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add a node that has so many results, see `add`."""
        names = tuple(self.fresh(f"{op}.{number}.") for number in range(count))
        import_node(OnnxNode(names[0], op, OPSET, inputs, names, attributes), "", self.to)
        return names

    def end(self, source: str, output: int = 0) -> None:
        """A tensor is the node's output of this number, if something reads that."""
        if self.wants(output):
            self.add("Identity", source, to_output=output)

    def wants(self, output: int) -> bool:
        return output < len(self.node.outputs) and bool(self.node.outputs[output])

    def store(self, value: Any, kind: type[np.generic] = np.int64) -> str:
        """A new constant."""
        name = self.fresh("constant")
        self.to.constants[name] = np.asarray(value, kind)
        return name

    def constant(self, index: int) -> AnyArray:
        return self.to.constant(self.node, index)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.to.shape_of(name)

    def fresh(self, what: str) -> str:
        """Name of a new tensor."""
        base = next(filter(None, self.node.outputs))
        return self.to.fresh(f"{base}/{what}{len(self.to.nodes)}.{len(self.to.constants)}")
