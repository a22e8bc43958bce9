"""The same model in other nodes, as exporters and optimisers write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
Nodes = list[onnx.NodeProto]
CHANGED = 0.7
"""The share of nodes that are written anew."""


def respelt(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """Return the model with nodes written anew, and constants moved between initializers and nodes."""
    writer = _Writer(onnx.shape_inference.infer_shapes(model), rng)
    nodes = [each for node in model.graph.node for each in writer.write(node)]
    new = onnx.ModelProto()
    new.CopyFrom(model)
    del new.graph.node[:], new.graph.initializer[:], new.graph.value_info[:]
    for name, array in writer.constants.items():
        tensor = numpy_helper.from_array(array, name)
        if rng.random() < 0.5:
            new.graph.initializer.append(tensor)
        else:
            new.graph.node.append(helper.make_node("Constant", [], [name], value=tensor))
    new.graph.node.extend(nodes)
    onnx.checker.check_model(new)
    return new


class _Writer:
    def __init__(self, model: onnx.ModelProto, rng: np.random.Generator) -> None:
        graph = model.graph
        self._rng, self._count = rng, 0
        self.constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._shapes = {
            each.name: [one.dim_value for one in each.type.tensor_type.shape.dim]
            for each in (*graph.value_info, *graph.input, *graph.output)
        }

    def write(self, node: onnx.NodeProto) -> Nodes:
        """Return nodes that write the same outputs."""
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            return []
        attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        way = _WAYS.get(node.op_type)
        found = way(self, node, attributes) if way is not None and self._rng.random() < CHANGED else None
        return found or [node]

    def one(self, found: Nodes, op: str, *inputs: str, to: str = "", **attributes: Any) -> str:
        """Add a node; return its result."""
        self._count += 1
        name = to or f"respelt.{self._count}"
        found.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def number(self, value: Any, dtype: type = np.float32) -> str:
        """Return a new constant."""
        self._count += 1
        self.constants[f"respelt.{self._count}"] = np.asarray(value, dtype)
        return f"respelt.{self._count}"

    def swapped(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """a + b -> b + a."""
        return [helper.make_node(node.op_type, [node.input[1], node.input[0]], list(node.output))]

    def sub(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """a - b -> a + -b."""
        found: Nodes = []
        self.one(found, "Add", node.input[0], self.one(found, "Neg", node.input[1]), to=node.output[0])
        return found

    def div(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes | None:
        """x / number -> x * its inverse."""
        by = self.constants.get(node.input[1])
        if by is None or by.dtype != np.float32 or by.size != 1:
            return None
        found: Nodes = []
        self.one(found, "Mul", node.input[0], self.number(1 / by), to=node.output[0])
        return found

    def power(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes | None:
        """x ** 2 -> x * x."""
        by = self.constants.get(node.input[1])
        return None if by is None or by.size != 1 or by != 2 else [
            helper.make_node("Mul", [node.input[0], node.input[0]], list(node.output))
        ]  # fmt: skip

    def root(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """The square root -> the power of a half."""
        return [helper.make_node("Pow", [node.input[0], self.number(0.5)], list(node.output))]

    def relu(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """relu(x) -> max(x, 0), or bounds."""
        op = str(self._rng.choice(["Max", "Clip"]))
        return [helper.make_node(op, [node.input[0], self.number(0.0)], list(node.output))]

    def sigmoid(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """sigmoid(x) -> 1 / (1 + exp(-x))."""
        found: Nodes = []
        raised = self.one(found, "Exp", self.one(found, "Neg", node.input[0]))
        self.one(found, "Reciprocal", self.one(found, "Add", self.number(1.0), raised), to=node.output[0])
        return found

    def hard_swish(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """hardswish(x) -> x * clip(x + 3, 0, 6) / 6."""
        found: Nodes = []
        inner = self.one(found, "Add", node.input[0], self.number(3.0))
        gate = self.one(found, "Clip", inner, self.number(0.0), self.number(6.0))
        product = self.one(found, "Mul", gate, node.input[0])
        self.one(found, "Div", product, self.number(6.0), to=node.output[0])
        return found

    def gemm(self, node: onnx.NodeProto, a: Mapping[str, Any]) -> Nodes | None:
        """Gemm -> MatMul and Add."""
        weight = self.constants.get(node.input[1])
        if weight is None or a.get("transA") or a.get("alpha", 1) != 1 or a.get("beta", 1) != 1 or len(node.input) < 3:
            return None
        found: Nodes = []
        product = self.one(found, "MatMul", node.input[0], self.number(weight.T if a.get("transB") else weight))
        self.one(found, "Add", product, node.input[2], to=node.output[0])
        return found

    def normal(self, node: onnx.NodeProto, a: Mapping[str, Any]) -> Nodes | None:
        """A layer normalisation in single steps."""
        rank = len(self._shapes.get(node.input[0], ()))
        if len(node.output) > 1 or len(node.input) < 3 or not rank:
            return None
        found: Nodes = []
        axes = [*range(a.get("axis", -1) % rank, rank)]
        mean = self.one(found, "ReduceMean", node.input[0], axes=axes)
        distance = self.one(found, "Sub", node.input[0], mean)
        square = self.one(found, "Mul", distance, distance)
        inner = self.one(found, "Add", self.one(found, "ReduceMean", square, axes=axes), self.number(a["epsilon"]))
        unit = self.one(found, "Div", distance, self.one(found, "Sqrt", inner))
        self.one(found, "Add", self.one(found, "Mul", node.input[1], unit), node.input[2], to=node.output[0])
        return found

    def shaped(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes | None:
        """A reshape of any kind -> Reshape that leaves one size open."""
        shape = self._shapes.get(node.output[0])
        if not shape or not all(shape) or self._rng.random() < 0.2:
            return None
        shape[int(self._rng.integers(len(shape)))] = -1
        found: Nodes = []
        self.one(found, "Reshape", node.input[0], self.number(shape, np.int64), to=node.output[0])
        return found

    def turned(self, node: onnx.NodeProto, a: Mapping[str, Any]) -> Nodes | None:
        """A transposition -> two. Of more than four axes each may be one that is copied element by element."""
        if len(a["perm"]) > 4:
            return None
        first = self._rng.permutation(len(a["perm"]))
        found: Nodes = []
        half = self.one(found, "Transpose", node.input[0], perm=[int(axis) for axis in first])
        rest = [[*first].index(axis) for axis in a["perm"]]
        self.one(found, "Transpose", half, perm=rest, to=node.output[0])
        return found

    def split(self, node: onnx.NodeProto, a: Mapping[str, Any]) -> Nodes | None:
        """Split -> slices."""
        sizes = self.constants.get(node.input[1]) if len(node.input) > 1 else None
        if sizes is None:
            return None
        found: Nodes = []
        ends = np.cumsum(sizes)
        for name, size, end in zip(node.output, sizes, ends, strict=True):
            places = [self.number([value], np.int64) for value in (end - size, end, a.get("axis", 0))]
            self.one(found, "Slice", node.input[0], *places, to=name)
        return found

    def idle(self, node: onnx.NodeProto, _: Mapping[str, Any]) -> Nodes:
        """A node, and one that does nothing behind it."""
        self._count += 1
        inner = f"respelt.{self._count}"
        new = onnx.NodeProto()
        new.CopyFrom(node)
        new.output[0] = inner
        idle = str(self._rng.choice(["Identity", "Dropout"]))
        return [new, helper.make_node(idle, [inner], list(node.output))]


_WAYS: dict[str, Callable[[_Writer, onnx.NodeProto, Mapping[str, Any]], Nodes | None]] = {
    "Add": _Writer.swapped, "Mul": _Writer.swapped, "Sub": _Writer.sub, "Div": _Writer.div, "Pow": _Writer.power,
    "Sqrt": _Writer.root, "Relu": _Writer.relu, "Sigmoid": _Writer.sigmoid, "HardSwish": _Writer.hard_swish,
    "Gemm": _Writer.gemm, "LayerNormalization": _Writer.normal, "Transpose": _Writer.turned, "Split": _Writer.split,
    "Conv": _Writer.idle, "MatMul": _Writer.idle, "Softmax": _Writer.idle,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _Writer.shaped),
}  # fmt: skip
