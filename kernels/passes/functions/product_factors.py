"""Multiply a product by a number once, where exporters multiply its operands: attention scales queries and keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt
from kernels.passes.rows.strided_looks import multiplied


def product_factors(graph: Graph) -> Graph:
    """matmul(a * number, b * number) -> map of matmul(a, b); a product by a number behind it becomes a map, too.

    (x y) W / 2 -> (x y / 2) W: onnxruntime moves the half of a GELU by tanh behind the next layer.
    """
    return _Factors(graph).taken()


class _Factors:
    def __init__(self, graph: Graph) -> None:
        self._graph, self._writers, self._counts = graph, producers(graph), use_counts(graph)
        self._nodes: list[Node] = []
        self._shapes: dict[str, Shape] = {}
        self._halved = dict(filter(None, map(self._half, graph.nodes)))

    def taken(self) -> Graph:
        graph = self._graph
        for node in graph.nodes:
            by = multiplied(graph, node)
            before = self._writers.get(by[0]) if by is not None else None
            if by is not None and before is not None and before.op == "matmul":
                node = replace(node, op="map", inputs=by[:1], attributes={"expression": ("mul", "a", by[1])})
            if node.output in self._halved:
                whole = self._new(node.output, "whole", graph.shapes[node.output])
                self._nodes.append(replace(node, outputs=(whole,)))
                node = Node(node.name, "map", (whole,), node.outputs, {"expression": ("mul", "a", 0.5)})
            if by is not None and node.output in self._halved.values():
                node = replace(node, op="reshape", inputs=by[:1], attributes={"shape": graph.shapes[node.output]})
            self._nodes += [node] if node.op != "matmul" else self._product(node)
        return prune(rebuilt(graph, self._nodes, shapes=self._shapes))

    def _half(self, node: Node) -> tuple[str, str] | None:
        """Return the product of two tensors that a layer reads whose result this node halves, and the node's output."""
        by = multiplied(self._graph, node)
        layer = self._alone(by[0]) if by is not None and by[1] == 0.5 else None
        if layer is None or layer.op != "dense" or len(layer.inputs) > 2:
            return None
        before = self._alone(layer.inputs[0])
        if before is None or before.op != "mul" or multiplied(self._graph, before) is not None:
            return None
        return before.output, node.output

    def _alone(self, name: str) -> Node | None:
        """Return the node whose result one other reads, in front of reshapes; None where there is none."""
        node = self._writers.get(name) if self._counts[name] == 1 else None
        return self._alone(node.inputs[0]) if node is not None and node.op == "reshape" else node

    def _product(self, node: Node) -> list[Node]:
        (a, left), (b, right) = (self._unscaled(name) for name in node.inputs)
        if left * right == 1:
            return [node]
        product = self._new(node.output, "unscaled", self._graph.shapes[node.output])
        scaled = {"expression": ("mul", "a", float(np.float32(left * right)))}
        return [
            replace(node, inputs=(a, b), outputs=(product,)),
            Node(node.name, "map", (product,), node.outputs, scaled),
        ]

    def _unscaled(self, name: str) -> tuple[str, float]:
        """Return an operand before it is multiplied by a number, perhaps in front of moves, and the number."""
        node = self._writers.get(name)
        if node is None or self._counts[name] > 1:
            return name, 1.0
        by = multiplied(self._graph, node)
        if by is not None or node.op not in ("reshape", "transpose"):
            return by or (name, 1.0)
        inner, number = self._unscaled(node.inputs[0])
        if inner == node.inputs[0]:
            return name, 1.0
        moved = self._new(name, "unscaled", self._graph.shapes[name])
        self._nodes.append(replace(node, inputs=(inner,), outputs=(moved,)))
        return moved, number

    def _new(self, base: str, word: str, shape: Shape) -> str:
        name = fresh(self._graph, f"{base}.{word}")
        self._shapes[name] = shape
        return name
