"""Nodes of a graph as layers of ncnn."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from kernels.ir.graph import Node

from .writer import Parameters, Unsupported, Writer

_ACTIVATIONS = {"relu": 1, "leaky_relu": 2, "clip": 3, "sigmoid": 4}


def _activation(node: Node) -> Parameters:
    given = node.attributes.get("activation")
    if given is None:
        return {}
    kind, *bounds = given
    return {9: _ACTIVATIONS[kind], **({10: [float(bound) for bound in bounds]} if bounds else {})}


def _activate(writer: Writer, kind: str, bounds: list[float], source: str, target: str) -> None:
    if kind == "clip":
        writer.add("Clip", target, [source], target, {0: float(bounds[0]), 1: float(bounds[1])})
    elif kind == "sigmoid":
        writer.add("Sigmoid", target, [source], target, {})
    else:
        writer.add("ReLU", target, [source], target, {0: float(bounds[0])} if bounds else {})


def _conv(writer: Writer, node: Node) -> None:
    a, weight = node.attributes, writer.constant(node.inputs[1])
    k, _, kh, kw = weight.shape
    top, left, bottom, right = a["pads"]
    bias = writer.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    parameters: Parameters = {
        0: k, 1: kw, 11: kh, 2: a["dilations"][1], 12: a["dilations"][0], 3: a["strides"][1], 13: a["strides"][0],
        4: left, 15: right, 14: top, 16: bottom, 5: int(bias is not None), 6: weight.size,
    }  # fmt: skip
    if a["groups"] > 1:
        parameters[7] = a["groups"]
    kind = "ConvolutionDepthWise" if a["groups"] > 1 else "Convolution"
    writer.add(kind, node.name, [node.inputs[0]], node.output, parameters | _activation(node))
    writer.raw(weight, tagged=True)
    if bias is not None:
        writer.raw(bias)


def _dense(writer: Writer, node: Node) -> None:
    weight = writer.constant(node.inputs[1])
    bias = writer.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    parameters: Parameters = {0: weight.shape[1], 1: int(bias is not None), 2: weight.size}
    writer.add("InnerProduct", node.name, [node.inputs[0]], node.output, parameters | _activation(node))
    writer.raw(weight.T, tagged=True)
    if bias is not None:
        writer.raw(bias)


def _pool(writer: Writer, node: Node) -> None:
    a, graph = node.attributes, writer.graph
    extents, results = graph.shapes[node.inputs[0]][2:], graph.shapes[node.output][2:]
    rooms = [extents[i] + a["pads"][i] + a["pads"][i + 2] - a["kernel"][i] for i in range(2)]
    ceiling = any(rooms[i] // a["strides"][i] + 1 != results[i] for i in range(2))
    if ceiling and any(-(-rooms[i] // a["strides"][i]) + 1 != results[i] for i in range(2)):
        raise Unsupported(f"{node.name}: windows rounded up on one axis only")
    include = int(a.get("count_include_pad", 0))
    if ceiling and include:
        raise Unsupported(f"{node.name}: an average over counted pads with windows rounded up")
    top, left, bottom, right = a["pads"]
    parameters: Parameters = {
        0: int(node.op == "average_pool"), 1: a["kernel"][1], 11: a["kernel"][0], 2: a["strides"][1],
        12: a["strides"][0], 3: left, 13: top, 14: right, 15: bottom, 5: int(not ceiling), 6: include,
    }  # fmt: skip
    writer.add("Pooling", node.name, [node.inputs[0]], node.output, parameters)


def _global_average_pool(writer: Writer, node: Node) -> None:
    writer.add("Pooling", node.name, [node.inputs[0]], node.output, {0: 1, 4: 1})


def _reshape(writer: Writer, node: Node) -> None:
    before, after = writer.graph.shapes[node.inputs[0]], writer.graph.shapes[node.output]
    source = writer.graph.producer(node.inputs[0])
    if len(after) == 2 and (source is None or source.op != "global_average_pool") and len(before) == 4:
        writer.add("Flatten", node.name, [node.inputs[0]], node.output, {})
    elif len(after) == 2 and prod(before) == after[1]:  # a vector already
        writer.blobs[node.output] = writer.blob(node.inputs[0])
    elif len(after) == 4:
        writer.add("Reshape", node.name, [node.inputs[0]], node.output, {0: after[3], 1: after[2], 2: after[1]})
    else:
        raise Unsupported(f"{node.name}: {before} to {after}")


def _softmax(writer: Writer, node: Node) -> None:
    writer.add("Softmax", node.name, [node.inputs[0]], node.output, {0: node.attributes["axis"] - 1, 1: 1})


def _concat(writer: Writer, node: Node) -> None:
    writer.add("Concat", node.name, node.inputs, node.output, {0: node.attributes["axis"] - 1})


def _binary(writer: Writer, node: Node) -> None:
    inputs = list(node.inputs)
    for name in inputs:
        if name in writer.graph.constants:
            raise Unsupported(f"{node.name}: {node.op} of a constant")
    activation = node.attributes.get("activation")
    output = f"{node.output}/plain" if activation else node.output
    writer.add("BinaryOp", node.name, inputs, output, {0: 0 if node.op == "add" else 2})
    if activation:
        _activate(writer, activation[0], list(activation[1:]), output, node.output)


def _affine(writer: Writer, node: Node) -> None:
    scale, shift = (writer.constant(name) for name in node.inputs[1:])
    writer.add("Scale", node.name, [node.inputs[0]], node.output, {0: scale.size, 1: 1})
    writer.raw(scale)
    writer.raw(shift)


def _instance_norm(writer: Writer, node: Node) -> None:
    scale, shift = (writer.constant(name) for name in node.inputs[1:])
    activation = node.attributes.get("activation")
    output = f"{node.output}/plain" if activation else node.output
    parameters: Parameters = {0: scale.size, 1: float(node.attributes["epsilon"]), 2: 1}
    writer.add("InstanceNorm", node.name, [node.inputs[0]], output, parameters)
    writer.raw(scale)
    writer.raw(shift)
    if activation:
        _activate(writer, activation[0], list(activation[1:]), output, node.output)


def _lrn(writer: Writer, node: Node) -> None:
    a = node.attributes
    parameters: Parameters = {0: 0, 1: a["size"], 2: float(a["alpha"]), 3: float(a["beta"]), 4: float(a["bias"])}
    writer.add("LRN", node.name, [node.inputs[0]], node.output, parameters)


def _pad(writer: Writer, node: Node) -> None:
    top, left, bottom, right = node.attributes["pads"]
    mode = {"constant": 0, "edge": 1, "reflect": 2}[node.attributes["mode"]]
    parameters: Parameters = {0: top, 1: bottom, 2: left, 3: right, 4: mode, 5: float(node.attributes["value"])}
    writer.add("Padding", node.name, [node.inputs[0]], node.output, parameters)


def _resize(writer: Writer, node: Node) -> None:
    a = node.attributes
    ways: dict[tuple[str, str], Parameters] = {
        ("nearest", "asymmetric"): {0: 1},
        ("linear", "half_pixel"): {0: 2},
        ("linear", "align_corners"): {0: 2, 6: 1},
    }
    way = ways.get((a["mode"], a["coordinates"]))
    if way is None:
        raise Unsupported(f"{node.name}: resizing by {a['mode']} with {a['coordinates']}")
    height, width = a["size"]
    writer.add("Interp", node.name, [node.inputs[0]], node.output, {**way, 3: height, 4: width})


def _slice(writer: Writer, node: Node) -> None:
    a = node.attributes
    writer.add(
        "Crop", node.name, [node.inputs[0]], node.output, {9: [a["start"]], 10: [a["stop"]], 11: [a["axis"] - 1]}
    )


def _plain(writer: Writer, node: Node) -> None:
    bounds = {"clip": ("min", "max"), "leaky_relu": ("slope",)}.get(node.op, ())
    _activate(writer, node.op, [node.attributes[key] for key in bounds], node.inputs[0], node.output)


LAYERS: dict[str, Callable[[Writer, Node], None]] = {
    "conv": _conv,
    "dense": _dense,
    "relu": _plain,
    "sigmoid": _plain,
    "clip": _plain,
    "leaky_relu": _plain,
    "max_pool": _pool,
    "average_pool": _pool,
    "global_average_pool": _global_average_pool,
    "concat": _concat,
    "add": _binary,
    "mul": _binary,
    "affine": _affine,
    "instance_norm": _instance_norm,
    "softmax": _softmax,
    "lrn": _lrn,
    "reshape": _reshape,
    "slice": _slice,
    "pad": _pad,
    "resize": _resize,
}
