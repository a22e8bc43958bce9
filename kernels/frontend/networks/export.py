"""Graph -> ONNX file, so that another engine can check or run what is built in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from kernels.errors import UnsupportedNode
from kernels.frontend.spelling import spelled
from kernels.ir.activations import ACTIVATIONS, activation_of
from kernels.ir.graph import Graph, Node

OPSET = 17
IR_VERSION = 8
"""Fixed, so that engines older than our onnx package can read the file."""

_SAME_NAME = ("relu", "sigmoid", "hard_swish", "global_average_pool", "matmul", "add", "mul")
"""Operations of the graph that are called as in ONNX."""


def to_onnx(graph: Graph, path: Path, *, any_batch: bool = False) -> None:
    """Write a graph, fused or not, as ONNX (opset 17). Tensor names stay; what is fused becomes extra nodes.

    `any_batch`: leave the first dimension open, of a graph whose operations take each example alone.
    """
    writer = _Writer(graph, any_batch)
    for node in graph.nodes:
        writer.write(node)
    proto = helper.make_graph(
        writer.nodes,
        graph.name,
        [_port(graph, name, any_batch) for name in graph.inputs],
        [_port(graph, name, any_batch) for name in graph.outputs],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    for name, array in writer.constants.items():  # only now: each of the calls above copies what it is given
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path.write_bytes(model.SerializeToString())


def _port(graph: Graph, name: str, any_batch: bool) -> onnx.ValueInfoProto:
    shape = ("batch", *graph.shapes[name][1:]) if any_batch else graph.shapes[name]
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


class _Writer:
    def __init__(self, graph: Graph, any_batch: bool) -> None:
        self.graph, self.any_batch = graph, any_batch
        self.nodes: list[onnx.NodeProto] = []
        self.constants = dict(graph.constants)

    def write(self, node: Node) -> None:
        """Write one node, and what is fused into it as nodes of their own."""
        activation = node.attributes.get("activation")
        residual = node.inputs[3] if node.op == "conv" and len(node.inputs) > 3 else ""
        steps: list[Callable[[str, str], None]] = []
        if residual:
            steps.append(lambda source, target: self._append("add", (source, residual), target))
        if activation:
            steps.append(lambda source, target: self._activate(activation, source, target))
        names = [f"{node.output}.part{i}" for i in range(len(steps))] + [node.output]
        self._operation(node, names[0])
        for i, step in enumerate(steps):
            step(names[i], names[i + 1])

    def _append(self, op: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(spelled(op), list(inputs), [output], name=output, **attributes))

    def _constant(self, name: str, value: np.ndarray[Any, Any]) -> str:
        self.constants[name] = value
        return name

    def _activate(self, activation: tuple[Any, ...], source: str, target: str) -> None:
        kind, *bounds = activation
        if kind == "leaky_relu":
            self._append("leaky_relu", (source,), target, alpha=bounds[0])
        elif kind == "hard_sigmoid":
            self._append("hard_sigmoid", (source,), target, alpha=bounds[0], beta=bounds[1])
        elif kind == "clip":
            low, high = (self._constant(f"{target}.bound{i}", np.asarray(b, np.float32)) for i, b in enumerate(bounds))
            self._append("clip", (source, low, high), target)
        else:
            self._append(kind, (source,), target)

    def _operation(self, node: Node, output: str) -> None:
        if node.op in _SAME_NAME:
            self._append(node.op, node.inputs, output)
        elif node.op in ACTIVATIONS:
            self._activate(activation_of(node), node.inputs[0], output)
        else:
            getattr(self, f"_{node.op}")(node, output)

    def _conv(self, node: Node, output: str) -> None:
        a = node.attributes
        inputs = tuple(name for name in node.inputs[:3] if name)
        geometry = {key: a[key] for key in ("strides", "pads", "dilations")}
        self._append("conv", inputs, output, group=a["groups"], **geometry)

    def _dense(self, node: Node, output: str) -> None:
        self._append("gemm", tuple(name for name in node.inputs if name), output)

    def _max_pool(self, node: Node, output: str) -> None:
        self._append("max_pool", node.inputs, output, **self._window(node))

    def _average_pool(self, node: Node, output: str) -> None:
        include_pad = node.attributes["count_include_pad"]
        self._append("average_pool", node.inputs, output, count_include_pad=include_pad, **self._window(node))

    def _window(self, node: Node) -> dict[str, Any]:
        a = node.attributes
        extents, results = self.graph.shapes[node.inputs[0]][2:], self.graph.shapes[node.output][2:]
        rooms = [extents[i] + a["pads"][i] + a["pads"][i + 2] - a["kernel"][i] for i in range(2)]
        ceil = any(rooms[i] // a["strides"][i] + 1 != results[i] for i in range(2))
        return {"kernel_shape": a["kernel"], "strides": a["strides"], "pads": a["pads"], "ceil_mode": int(ceil)}

    def _concat(self, node: Node, output: str) -> None:
        self._append("concat", node.inputs, output, axis=node.attributes["axis"])

    def _affine(self, node: Node, output: str) -> None:
        """Write a batch normalisation with mean 0 and variance 1."""
        channels = self.graph.shapes[node.inputs[1]]
        mean = self._constant(f"{output}.mean", np.zeros(channels, np.float32))
        variance = self._constant(f"{output}.variance", np.ones(channels, np.float32))
        self._append("batch_normalization", (*node.inputs, mean, variance), output, epsilon=0.0)

    def _instance_norm(self, node: Node, output: str) -> None:
        self._append("instance_normalization", node.inputs, output, epsilon=node.attributes["epsilon"])

    def _pad(self, node: Node, output: str) -> None:
        top, left, bottom, right = node.attributes["pads"]
        pads = self._constant(f"{output}.pads", np.asarray((0, 0, top, left, 0, 0, bottom, right), np.int64))
        value = self._constant(f"{output}.value", np.asarray(node.attributes["value"], np.float32))
        self._append("pad", (*node.inputs, pads, value), output, mode=node.attributes["mode"])

    def _resize(self, node: Node, output: str) -> None:
        a = node.attributes
        sizes = self._constant(f"{output}.sizes", np.asarray(self.graph.shapes[output], np.int64))
        rounding = "floor" if a["coordinates"] == "asymmetric" else "round_prefer_floor"
        ways = {"coordinate_transformation_mode": a["coordinates"], "nearest_mode": rounding}
        self._append("resize", (*node.inputs, "", "", sizes), output, mode=a["mode"], **ways)

    def _slice(self, node: Node, output: str) -> None:
        a = node.attributes
        places = [
            self._constant(f"{output}.{key}", np.asarray([a[key]], np.int64)) for key in ("start", "stop", "axis")
        ]
        self._append("slice", (*node.inputs, *places), output)

    def _map(self, node: Node, output: str) -> None:
        """Write the one expression that trainings have."""
        if node.attributes["expression"] != ("tanh", "a"):
            raise UnsupportedNode(f"{node.name}: an expression of elements cannot be written as ONNX")
        self._append("tanh", node.inputs, output)

    def _softmax(self, node: Node, output: str) -> None:
        self._append("softmax", node.inputs, output, axis=node.attributes["axis"])

    def _lrn(self, node: Node, output: str) -> None:
        self._append(
            "lrn", node.inputs, output, **{key: node.attributes[key] for key in ("size", "alpha", "beta", "bias")}
        )

    def _reshape(self, node: Node, output: str) -> None:
        wanted = (0, *node.attributes["shape"][1:]) if self.any_batch else node.attributes["shape"]
        shape = self._constant(f"{output}.shape", np.asarray(wanted, np.int64))
        self._append("reshape", (*node.inputs, shape), output)

    def _transpose(self, node: Node, output: str) -> None:
        self._append("transpose", node.inputs, output, perm=node.attributes["perm"])
