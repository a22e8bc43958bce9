"""Nodes of a graph as operators of LiteRT."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from kernels.ir.graph import Node

from .padding import needed_pads, padded
from .writer import CODE, Unsupported, Writer

_FUSED = schema.ActivationFunctionType


def _fused(node: Node) -> int:
    activation = node.attributes.get("activation")
    if activation is None:
        return int(_FUSED.NONE)
    if activation == ("relu",):
        return int(_FUSED.RELU)
    if activation == ("clip", 0.0, 6.0):
        return int(_FUSED.RELU6)
    raise Unsupported(f"{node.name}: activation {activation}")


def _conv(writer: Writer, node: Node) -> None:
    a, weight = node.attributes, writer.weight(node.inputs[1])
    k, per_group, *kernel = weight.shape
    source, padding = padded(writer, node, (kernel[0], kernel[1]), a["dilations"], 0.0)
    channels = writer.graph.shapes[node.inputs[0]][1]
    depthwise = a["groups"] == channels and per_group == 1 and channels > 1
    options = schema.DepthwiseConv2DOptionsT() if depthwise else schema.Conv2DOptionsT()
    options.padding, options.fusedActivationFunction = padding, _fused(node)
    options.strideH, options.strideW = a["strides"]
    options.dilationHFactor, options.dilationWFactor = a["dilations"]
    kind, code = schema.BuiltinOptions.Conv2DOptions, CODE.CONV_2D
    order = (0, 2, 3, 1)
    if depthwise:
        options.depthMultiplier = k // channels
        kind, code, order = schema.BuiltinOptions.DepthwiseConv2DOptions, CODE.DEPTHWISE_CONV_2D, (1, 2, 3, 0)
    weights = writer.constant(f"{node.name}/weight", weight.transpose(order))
    writer.add(code, [source, weights, writer.bias(node, k)], writer.activation(node.output), options, kind)


def _dense(writer: Writer, node: Node) -> None:
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
    writer.add(CODE.FULLY_CONNECTED, inputs, writer.activation(node.output), options, kind)


def _pool(writer: Writer, node: Node) -> None:
    a = node.attributes
    mean = node.op == "average_pool"
    needed = needed_pads(writer, node, a["kernel"], (1, 1))
    if mean and a["count_include_pad"] and any(pad > 0 for pad in needed):
        raise Unsupported(f"{node.name}: a mean that counts its pads")
    source, padding = padded(writer, node, a["kernel"], (1, 1), None if mean else float(np.finfo(np.float32).min))
    options = schema.Pool2DOptionsT()
    options.padding = padding
    options.strideH, options.strideW = a["strides"]
    options.filterHeight, options.filterWidth = a["kernel"]
    code = CODE.AVERAGE_POOL_2D if mean else CODE.MAX_POOL_2D
    writer.add(code, [source], writer.activation(node.output), options, schema.BuiltinOptions.Pool2DOptions)


def _global_average_pool(writer: Writer, node: Node) -> None:
    options = schema.ReducerOptionsT()
    options.keepDims = True
    axes = writer.constant(f"{node.name}/axes", np.asarray((1, 2), np.int32))
    inputs = [writer.activation(node.inputs[0]), axes]
    writer.add(CODE.MEAN, inputs, writer.activation(node.output), options, schema.BuiltinOptions.ReducerOptions)


def _reshape(writer: Writer, node: Node) -> None:
    """Reshape to features: the order is made up for by the dense layer that reads them."""
    before, after = writer.graph.shapes[node.inputs[0]], writer.graph.shapes[node.output]
    readers = {reader.op for reader in writer.graph.consumers(node.output)}
    flat = len(before) != 4 or before[2] * before[3] == 1
    if len(after) != 2 or not (flat or readers == {"dense"}):
        raise Unsupported(f"{node.name}: {before} to {after}")
    options = schema.ReshapeOptionsT()
    options.newShape = np.asarray(after, np.int32)
    inputs = [writer.activation(node.inputs[0]), writer.constant(f"{node.name}/shape", np.asarray(after, np.int32))]
    writer.add(CODE.RESHAPE, inputs, writer.activation(node.output), options, schema.BuiltinOptions.ReshapeOptions)


def _concat(writer: Writer, node: Node) -> None:
    if len(writer.graph.shapes[node.output]) != 4 or node.attributes["axis"] != 1:
        raise Unsupported(f"{node.name}: joined along axis {node.attributes['axis']}")
    options = schema.ConcatenationOptionsT()
    options.axis = 3
    inputs = [writer.activation(name) for name in node.inputs]
    kind = schema.BuiltinOptions.ConcatenationOptions
    writer.add(CODE.CONCATENATION, inputs, writer.activation(node.output), options, kind)


def _sum(writer: Writer, node: Node) -> None:
    if constants := [name for name in node.inputs if name in writer.graph.constants]:
        raise Unsupported(f"{node.name}: {node.op} of the constant {constants[0]}")
    add = node.op == "add"
    options = schema.AddOptionsT() if add else schema.MulOptionsT()
    options.fusedActivationFunction = _fused(node)
    kind = schema.BuiltinOptions.AddOptions if add else schema.BuiltinOptions.MulOptions
    inputs = [writer.activation(name) for name in node.inputs]
    writer.add(CODE.ADD if add else CODE.MUL, inputs, writer.activation(node.output), options, kind)


def _softmax(writer: Writer, node: Node) -> None:
    if len(writer.graph.shapes[node.output]) != 2:
        raise Unsupported(f"{node.name}: softmax of {writer.graph.shapes[node.output]}")
    options = schema.SoftmaxOptionsT()
    options.beta = 1.0
    source, target = writer.activation(node.inputs[0]), writer.activation(node.output)
    writer.add(CODE.SOFTMAX, [source], target, options, schema.BuiltinOptions.SoftmaxOptions)


def _lrn(writer: Writer, node: Node) -> None:
    """LiteRT's alpha is not divided by the size."""
    a = node.attributes
    if a["size"] % 2 == 0:
        raise Unsupported(f"{node.name}: an even number of channels")
    options = schema.LocalResponseNormalizationOptionsT()
    options.radius, options.bias = a["size"] // 2, a["bias"]
    options.alpha, options.beta = a["alpha"] / a["size"], a["beta"]
    source, target = writer.activation(node.inputs[0]), writer.activation(node.output)
    kind = schema.BuiltinOptions.LocalResponseNormalizationOptions
    writer.add(CODE.LOCAL_RESPONSE_NORMALIZATION, [source], target, options, kind)


def _plain(writer: Writer, node: Node) -> None:
    codes: Mapping[str, int] = {"relu": CODE.RELU, "sigmoid": CODE.LOGISTIC, "clip": CODE.RELU6}
    if node.op == "clip" and (node.attributes["min"], node.attributes["max"]) != (0.0, 6.0):
        raise Unsupported(f"{node.name}: a clip other than to 0 to 6")
    writer.add(codes[node.op], [writer.activation(node.inputs[0])], writer.activation(node.output))


OPERATIONS: dict[str, Callable[[Writer, Node], None]] = {
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
