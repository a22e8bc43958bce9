"""Graph -> a .tflite file for LiteRT, by the schema that comes with it; images become NHWC, weights stay fp32.

LiteRT pads by its rule SAME or not at all: where a layer's pads differ from that rule, they become an operation of
their own, as LiteRT's converters write them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from kernels.graph import Graph, Node

from .simplified import simplified

_CODE, _FUSED = schema.BuiltinOperator, schema.ActivationFunctionType
_LAST_OLD_CODE = 127
"""Codes beyond it are only in the new field."""
_TYPES = {np.dtype(np.float32): schema.TensorType.FLOAT32, np.dtype(np.int32): schema.TensorType.INT32}


class Unsupported(Exception):
    """LiteRT, or this writer, has no counterpart."""


def write_tflite(graph: Graph, path: Path) -> None:
    """Write the file; inputs and outputs keep their order. Raises Unsupported."""
    graph = simplified(graph)
    writer = _Writer(graph)
    inputs = [writer.activation(name) for name in graph.inputs]
    for node in graph.nodes:
        if node.op not in _OPERATIONS:
            raise Unsupported(f"{node.name}: no counterpart of {node.op} in this writer")
        _OPERATIONS[node.op](writer, node)
    path.write_bytes(writer.finish(inputs, [writer.activation(name) for name in graph.outputs]))


class _Writer:
    """Tensors, operators and buffers of the file's only subgraph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._buffers = [schema.BufferT()]
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._codes: dict[int, int] = {}
        self._places: dict[str, int] = {}

    def activation(self, name: str) -> int:
        """Index of a graph's tensor, images as NHWC."""
        if name not in self._places:
            self._places[name] = self.fresh(name, channels_last(self.graph.shapes[name]))
        return self._places[name]

    def fresh(self, name: str, shape: tuple[int, ...]) -> int:
        return self._tensor(name, shape, schema.TensorType.FLOAT32, 0)

    def constant(self, name: str, array: np.ndarray[Any, Any]) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self._buffers.append(buffer)
        return self._tensor(name, array.shape, _TYPES[array.dtype], len(self._buffers) - 1)

    def weight(self, name: str) -> np.ndarray[Any, Any]:
        return np.asarray(self.graph.constants[name], np.float32)

    def bias(self, node: Node, size: int) -> int:
        given = len(node.inputs) > 2 and node.inputs[2]
        array = self.weight(node.inputs[2]) if given else np.zeros(size, np.float32)
        return self.constant(f"{node.name}/bias", array)

    def add(
        self, code: int, inputs: list[int], output: int, options: Any = None, kind: int = schema.BuiltinOptions.NONE
    ) -> None:
        operator = schema.OperatorT()
        operator.opcodeIndex = self._codes.setdefault(code, len(self._codes))
        operator.inputs, operator.outputs = np.asarray(inputs, np.int32), np.asarray([output], np.int32)
        operator.builtinOptionsType, operator.builtinOptions = kind, options
        self._operators.append(operator)

    def finish(self, inputs: list[int], outputs: list[int]) -> bytes:
        subgraph, model = schema.SubGraphT(), schema.ModelT()
        subgraph.tensors, subgraph.operators = self._tensors, self._operators
        subgraph.inputs, subgraph.outputs = np.asarray(inputs, np.int32), np.asarray(outputs, np.int32)
        model.version, model.subgraphs, model.buffers = 3, [subgraph], self._buffers
        model.operatorCodes = [_code(code) for code in self._codes]
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _tensor(self, name: str, shape: tuple[int, ...], kind: int, buffer: int) -> int:
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.buffer = name.encode(), kind, buffer
        tensor.shape = np.asarray(shape, np.int32)
        self._tensors.append(tensor)
        return len(self._tensors) - 1


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """NCHW -> NHWC; others as they are."""
    return (shape[0], shape[2], shape[3], shape[1]) if len(shape) == 4 else tuple(shape)


def _code(code: int) -> Any:
    found = schema.OperatorCodeT()
    found.builtinCode, found.deprecatedBuiltinCode, found.version = code, min(code, _LAST_OLD_CODE), 1
    return found


def _fused(node: Node) -> int:
    activation = node.attributes.get("activation")
    if activation is None:
        return int(_FUSED.NONE)
    if activation == ("relu",):
        return int(_FUSED.RELU)
    if activation == ("clip", 0.0, 6.0):
        return int(_FUSED.RELU6)
    raise Unsupported(f"{node.name}: activation {activation}")


def _needed_pads(writer: _Writer, node: Node, kernel: tuple[int, int], dilations: tuple[int, int]) -> tuple[int, ...]:
    """(t,l,b,r) that the windows really touch: what lies behind the last window does not count."""
    a = node.attributes
    extents, results = writer.graph.shapes[node.inputs[0]][2:], writer.graph.shapes[node.output][2:]
    spans = [(kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
    after = [(results[i] - 1) * a["strides"][i] + spans[i] - extents[i] - a["pads"][i] for i in range(2)]
    return (*a["pads"][:2], *after)


def _padded(
    writer: _Writer, node: Node, kernel: tuple[int, int], dilations: tuple[int, int], value: float | None
) -> tuple[int, int]:
    """Input, padded by an operation where SAME does not give these pads, and the rule that remains. `value` None: the
    pads are not part of the mean, so that only SAME will do."""
    needed = _needed_pads(writer, node, kernel, dilations)
    source = writer.activation(node.inputs[0])
    if not any(pad > 0 for pad in needed):
        return source, int(schema.Padding.VALID)
    results, strides = writer.graph.shapes[node.output][2:], node.attributes["strides"]
    extents = writer.graph.shapes[node.inputs[0]][2:]
    totals = [max(needed[i] + needed[2 + i], 0) for i in range(2)]
    same = all(
        needed[i] == totals[i] // 2 and needed[2 + i] == totals[i] - totals[i] // 2
        and results[i] == -(-extents[i] // strides[i])
        for i in range(2)
    )  # fmt: skip
    if same:
        return source, int(schema.Padding.SAME)
    if value is None:
        raise Unsupported(f"{node.name}: a mean over pads {needed} that LiteRT has no rule for")
    n, c, h, w = writer.graph.shapes[node.inputs[0]]
    top, left, bottom, right = (max(pad, 0) for pad in needed)
    target = writer.fresh(f"{node.name}/padded", (n, h + top + bottom, w + left + right, c))
    amounts = np.asarray([(0, 0), (top, bottom), (left, right), (0, 0)], np.int32)
    pads = writer.constant(f"{node.name}/pads", amounts)
    if value == 0:
        writer.add(_CODE.PAD, [source, pads], target, schema.PadOptionsT(), schema.BuiltinOptions.PadOptions)
    else:
        filler = writer.constant(f"{node.name}/filler", np.asarray([value], np.float32))
        options = (schema.PadV2OptionsT(), schema.BuiltinOptions.PadV2Options)
        writer.add(_CODE.PADV2, [source, pads, filler], target, *options)
    return target, int(schema.Padding.VALID)


def _conv(writer: _Writer, node: Node) -> None:
    a, weight = node.attributes, writer.weight(node.inputs[1])
    k, per_group, *kernel = weight.shape
    source, padding = _padded(writer, node, (kernel[0], kernel[1]), a["dilations"], 0.0)
    channels = writer.graph.shapes[node.inputs[0]][1]
    depthwise = a["groups"] == channels and per_group == 1 and channels > 1
    options = schema.DepthwiseConv2DOptionsT() if depthwise else schema.Conv2DOptionsT()
    options.padding, options.fusedActivationFunction = padding, _fused(node)
    options.strideH, options.strideW = a["strides"]
    options.dilationHFactor, options.dilationWFactor = a["dilations"]
    kind, code = schema.BuiltinOptions.Conv2DOptions, _CODE.CONV_2D
    order = (0, 2, 3, 1)
    if depthwise:
        options.depthMultiplier = k // channels
        kind, code, order = schema.BuiltinOptions.DepthwiseConv2DOptions, _CODE.DEPTHWISE_CONV_2D, (1, 2, 3, 0)
    weights = writer.constant(f"{node.name}/weight", weight.transpose(order))
    writer.add(code, [source, weights, writer.bias(node, k)], writer.activation(node.output), options, kind)


def _dense(writer: _Writer, node: Node) -> None:
    """A flattened image comes in the order of NHWC here: the rows of the weight follow it."""
    weight = writer.weight(node.inputs[1])
    source = writer.graph.producer(node.inputs[0])
    image = writer.graph.shapes[source.inputs[0]] if source and source.op == "reshape" else ()
    if len(image) == 4:
        _, c, h, w = image
        weight = weight.reshape(c, h, w, -1).transpose(1, 2, 0, 3).reshape(c * h * w, -1)
    options = schema.FullyConnectedOptionsT()
    options.fusedActivationFunction = _fused(node)
    inputs = [
        writer.activation(node.inputs[0]),
        writer.constant(f"{node.name}/weight", weight.T),
        writer.bias(node, weight.shape[1]),
    ]
    kind = schema.BuiltinOptions.FullyConnectedOptions
    writer.add(_CODE.FULLY_CONNECTED, inputs, writer.activation(node.output), options, kind)


def _pool(writer: _Writer, node: Node) -> None:
    a = node.attributes
    mean = node.op == "average_pool"
    needed = _needed_pads(writer, node, a["kernel"], (1, 1))
    if mean and a["count_include_pad"] and any(pad > 0 for pad in needed):
        raise Unsupported(f"{node.name}: a mean that counts its pads")
    source, padding = _padded(writer, node, a["kernel"], (1, 1), None if mean else float(np.finfo(np.float32).min))
    options = schema.Pool2DOptionsT()
    options.padding = padding
    options.strideH, options.strideW = a["strides"]
    options.filterHeight, options.filterWidth = a["kernel"]
    code = _CODE.AVERAGE_POOL_2D if mean else _CODE.MAX_POOL_2D
    writer.add(code, [source], writer.activation(node.output), options, schema.BuiltinOptions.Pool2DOptions)


def _global_average_pool(writer: _Writer, node: Node) -> None:
    options = schema.ReducerOptionsT()
    options.keepDims = True
    axes = writer.constant(f"{node.name}/axes", np.asarray((1, 2), np.int32))
    inputs = [writer.activation(node.inputs[0]), axes]
    writer.add(_CODE.MEAN, inputs, writer.activation(node.output), options, schema.BuiltinOptions.ReducerOptions)


def _reshape(writer: _Writer, node: Node) -> None:
    """To features: the order is made up for by the dense layer that reads them."""
    before, after = writer.graph.shapes[node.inputs[0]], writer.graph.shapes[node.output]
    readers = {reader.op for reader in writer.graph.consumers(node.output)}
    flat = len(before) != 4 or before[2] * before[3] == 1
    if len(after) != 2 or not (flat or readers == {"dense"}):
        raise Unsupported(f"{node.name}: {before} to {after}")
    options = schema.ReshapeOptionsT()
    options.newShape = np.asarray(after, np.int32)
    inputs = [writer.activation(node.inputs[0]), writer.constant(f"{node.name}/shape", np.asarray(after, np.int32))]
    writer.add(_CODE.RESHAPE, inputs, writer.activation(node.output), options, schema.BuiltinOptions.ReshapeOptions)


def _concat(writer: _Writer, node: Node) -> None:
    if len(writer.graph.shapes[node.output]) != 4 or node.attributes["axis"] != 1:
        raise Unsupported(f"{node.name}: joined along axis {node.attributes['axis']}")
    options = schema.ConcatenationOptionsT()
    options.axis = 3
    inputs = [writer.activation(name) for name in node.inputs]
    kind = schema.BuiltinOptions.ConcatenationOptions
    writer.add(_CODE.CONCATENATION, inputs, writer.activation(node.output), options, kind)


def _sum(writer: _Writer, node: Node) -> None:
    if constants := [name for name in node.inputs if name in writer.graph.constants]:
        raise Unsupported(f"{node.name}: {node.op} of the constant {constants[0]}")
    add = node.op == "add"
    options = schema.AddOptionsT() if add else schema.MulOptionsT()
    options.fusedActivationFunction = _fused(node)
    kind = schema.BuiltinOptions.AddOptions if add else schema.BuiltinOptions.MulOptions
    inputs = [writer.activation(name) for name in node.inputs]
    writer.add(_CODE.ADD if add else _CODE.MUL, inputs, writer.activation(node.output), options, kind)


def _softmax(writer: _Writer, node: Node) -> None:
    if len(writer.graph.shapes[node.output]) != 2:
        raise Unsupported(f"{node.name}: softmax of {writer.graph.shapes[node.output]}")
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    source, target = writer.activation(node.inputs[0]), writer.activation(node.output)
    writer.add(_CODE.SOFTMAX, [source], target, options, schema.BuiltinOptions.SoftmaxOptions)


def _lrn(writer: _Writer, node: Node) -> None:
    """LiteRT's alpha is not divided by the size."""
    a = node.attributes
    if a["size"] % 2 == 0:
        raise Unsupported(f"{node.name}: an even number of channels")
    options = schema.LocalResponseNormalizationOptionsT()
    options.radius, options.bias = a["size"] // 2, a["bias"]
    options.alpha, options.beta = a["alpha"] / a["size"], a["beta"]
    source, target = writer.activation(node.inputs[0]), writer.activation(node.output)
    kind = schema.BuiltinOptions.LocalResponseNormalizationOptions
    writer.add(_CODE.LOCAL_RESPONSE_NORMALIZATION, [source], target, options, kind)


def _plain(writer: _Writer, node: Node) -> None:
    codes: Mapping[str, int] = {"relu": _CODE.RELU, "sigmoid": _CODE.LOGISTIC, "clip": _CODE.RELU6}
    if node.op == "clip" and (node.attributes["min"], node.attributes["max"]) != (0.0, 6.0):
        raise Unsupported(f"{node.name}: a clip other than to 0 to 6")
    writer.add(codes[node.op], [writer.activation(node.inputs[0])], writer.activation(node.output))


_OPERATIONS: dict[str, Callable[[_Writer, Node], None]] = {
    "conv": _conv,
    "dense": _dense,
    "relu": _plain,
    "sigmoid": _plain,
    "clip": _plain,
    "max_pool": _pool,
    "average_pool": _pool,
    "global_average_pool": _global_average_pool,
    "reshape": _reshape,
    "concat": _concat,
    "add": _sum,
    "mul": _sum,
    "softmax": _softmax,
    "lrn": _lrn,
}
