"""Graph -> ncnn's .param and .bin, weights in fp32: no converter is needed where the benchmark runs.

Layers' parameters by number are those of ncnn's operator documentation (github.com/Tencent/ncnn/wiki); activations are
fused into convolutions and dense layers, as ncnn's own optimiser does. ncnn has no batch: axis 0 is left away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from kernels.graph import Graph, Node

from .simplified import simplified

MAGIC = 7767517
_FP32 = b"\0\0\0\0"
"""Tag before a weight that is kept as it is."""
_ACTIVATIONS = {"relu": 1, "leaky_relu": 2, "clip": 3, "sigmoid": 4}
_PARAMETERS = dict[int, "int | float | list[float] | list[int]"]


class Unsupported(Exception):
    """ncnn, or this writer, has no counterpart."""


@dataclass(frozen=True)
class Files:
    """What ncnn loads, and its names of the graph's ports."""

    param: Path
    weights: Path
    inputs: dict[str, str]
    outputs: dict[str, str]


@dataclass
class _Writer:
    graph: Graph
    layers: list[tuple[str, str, list[str], list[str], _PARAMETERS]] = field(default_factory=list)
    weights: list[bytes] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    """Tensor -> blob, where a node writes no blob of its own."""

    def blob(self, tensor: str) -> str:
        return self.blobs.get(tensor, tensor)

    def add(self, kind: str, name: str, inputs: Iterable[str], output: str, parameters: _PARAMETERS) -> None:
        self.layers.append((kind, name, [self.blob(tensor) for tensor in inputs], [output], parameters))

    def constant(self, name: str) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(self.graph.constants[name], np.float32)

    def raw(self, array: np.ndarray[Any, Any], *, tagged: bool = False) -> None:
        self.weights.append((_FP32 if tagged else b"") + np.ascontiguousarray(array, np.float32).tobytes())


def write_ncnn(graph: Graph, folder: Path) -> Files:
    """Write `net.param` and `net.bin`. Raises Unsupported."""
    graph = simplified(graph)
    if any(graph.shapes[name][0] != 1 for name in graph.inputs):
        raise Unsupported("ncnn has no batch: give one image")
    writer = _Writer(graph)
    for name in graph.inputs:
        writer.add("Input", name, (), name, {})
    for node in graph.nodes:
        if node.op not in _LAYERS:
            raise Unsupported(f"{node.name}: no counterpart of {node.op} in this writer")
        _LAYERS[node.op](writer, node)
    outputs = {name: writer.blob(name) for name in graph.outputs}
    layers, inputs_of_split = _with_splits(writer.layers)
    if split := set(outputs.values()) & inputs_of_split:
        raise Unsupported(f"{', '.join(sorted(split))}: an output that is read inside, too")
    names = _numbered(layers)
    lines = [_line(layer, names) for layer in layers]
    param, weights = folder / "net.param", folder / "net.bin"
    param.write_text("\n".join([str(MAGIC), f"{len(lines)} {len(names)}", *lines]) + "\n")
    with weights.open("wb") as file:
        file.writelines(writer.weights)
    return Files(
        param, weights, {name: names[name] for name in graph.inputs}, {k: names[v] for k, v in outputs.items()}
    )


_Layer = tuple[str, str, list[str], list[str], _PARAMETERS]


def _with_splits(layers: list[_Layer]) -> tuple[list[_Layer], set[str]]:
    """ncnn lets a blob be read once: what several layers read passes through a Split."""
    readers: dict[str, int] = defaultdict(int)
    for _, _, inputs, _, _ in layers:
        for blob in inputs:
            readers[blob] += 1
    found: list[_Layer] = []
    taken: dict[str, int] = defaultdict(int)
    for kind, name, inputs, outputs, parameters in layers:
        renamed = []
        for blob in inputs:
            renamed.append(f"{blob}/{taken[blob]}" if readers[blob] > 1 else blob)
            taken[blob] += 1
        found.append((kind, name, renamed, outputs, parameters))
        for blob in outputs:
            if readers[blob] > 1:
                parts = [f"{blob}/{i}" for i in range(readers[blob])]
                found.append(("Split", f"split/{blob}", [blob], parts, {}))
    return found, {blob for blob, count in readers.items() if count > 1}


def _numbered(layers: list[_Layer]) -> dict[str, str]:
    """Blob -> a short name without blanks."""
    blobs = [blob for _, _, _, outputs, _ in layers for blob in outputs]
    return {blob: f"b{index}" for index, blob in enumerate(blobs)}


def _line(layer: _Layer, names: Mapping[str, str]) -> str:
    kind, name, inputs, outputs, parameters = layer
    words = [kind, name.replace(" ", "_"), str(len(inputs)), str(len(outputs))]
    words += [names[blob] for blob in (*inputs, *outputs)]
    for key, value in parameters.items():
        if isinstance(value, list):
            words.append(f"{-23300 - key}={len(value)}," + ",".join(map(_number, value)))
        else:
            words.append(f"{key}={_number(value)}")
    return " ".join(words)


def _number(value: float | int) -> str:
    return str(int(value)) if isinstance(value, int | np.integer) else f"{float(value):e}"


def _activation(node: Node) -> _PARAMETERS:
    given = node.attributes.get("activation")
    if given is None:
        return {}
    kind, *bounds = given
    return {9: _ACTIVATIONS[kind], **({10: [float(bound) for bound in bounds]} if bounds else {})}


def _activate(writer: _Writer, kind: str, bounds: list[float], source: str, target: str) -> None:
    if kind == "clip":
        writer.add("Clip", target, [source], target, {0: float(bounds[0]), 1: float(bounds[1])})
    elif kind == "sigmoid":
        writer.add("Sigmoid", target, [source], target, {})
    else:
        writer.add("ReLU", target, [source], target, {0: float(bounds[0])} if bounds else {})


def _conv(writer: _Writer, node: Node) -> None:
    a, weight = node.attributes, writer.constant(node.inputs[1])
    k, _, kh, kw = weight.shape
    top, left, bottom, right = a["pads"]
    bias = writer.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    parameters: _PARAMETERS = {
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


def _dense(writer: _Writer, node: Node) -> None:
    weight = writer.constant(node.inputs[1])
    bias = writer.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    parameters: _PARAMETERS = {0: weight.shape[1], 1: int(bias is not None), 2: weight.size}
    writer.add("InnerProduct", node.name, [node.inputs[0]], node.output, parameters | _activation(node))
    writer.raw(weight.T, tagged=True)
    if bias is not None:
        writer.raw(bias)


def _pool(writer: _Writer, node: Node) -> None:
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
    parameters: _PARAMETERS = {
        0: int(node.op == "average_pool"), 1: a["kernel"][1], 11: a["kernel"][0], 2: a["strides"][1],
        12: a["strides"][0], 3: left, 13: top, 14: right, 15: bottom, 5: int(not ceiling), 6: include,
    }  # fmt: skip
    writer.add("Pooling", node.name, [node.inputs[0]], node.output, parameters)


def _global_average_pool(writer: _Writer, node: Node) -> None:
    writer.add("Pooling", node.name, [node.inputs[0]], node.output, {0: 1, 4: 1})


def _reshape(writer: _Writer, node: Node) -> None:
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


def _softmax(writer: _Writer, node: Node) -> None:
    writer.add("Softmax", node.name, [node.inputs[0]], node.output, {0: node.attributes["axis"] - 1, 1: 1})


def _concat(writer: _Writer, node: Node) -> None:
    writer.add("Concat", node.name, node.inputs, node.output, {0: node.attributes["axis"] - 1})


def _binary(writer: _Writer, node: Node) -> None:
    inputs = list(node.inputs)
    for name in inputs:
        if name in writer.graph.constants:
            raise Unsupported(f"{node.name}: {node.op} of a constant")
    activation = node.attributes.get("activation")
    output = f"{node.output}/plain" if activation else node.output
    writer.add("BinaryOp", node.name, inputs, output, {0: 0 if node.op == "add" else 2})
    if activation:
        _activate(writer, activation[0], list(activation[1:]), output, node.output)


def _affine(writer: _Writer, node: Node) -> None:
    scale, shift = (writer.constant(name) for name in node.inputs[1:])
    writer.add("Scale", node.name, [node.inputs[0]], node.output, {0: scale.size, 1: 1})
    writer.raw(scale)
    writer.raw(shift)


def _instance_norm(writer: _Writer, node: Node) -> None:
    scale, shift = (writer.constant(name) for name in node.inputs[1:])
    activation = node.attributes.get("activation")
    output = f"{node.output}/plain" if activation else node.output
    parameters: _PARAMETERS = {0: scale.size, 1: float(node.attributes["epsilon"]), 2: 1}
    writer.add("InstanceNorm", node.name, [node.inputs[0]], output, parameters)
    writer.raw(scale)
    writer.raw(shift)
    if activation:
        _activate(writer, activation[0], list(activation[1:]), output, node.output)


def _lrn(writer: _Writer, node: Node) -> None:
    a = node.attributes
    parameters: _PARAMETERS = {0: 0, 1: a["size"], 2: float(a["alpha"]), 3: float(a["beta"]), 4: float(a["bias"])}
    writer.add("LRN", node.name, [node.inputs[0]], node.output, parameters)


def _pad(writer: _Writer, node: Node) -> None:
    top, left, bottom, right = node.attributes["pads"]
    mode = {"constant": 0, "edge": 1, "reflect": 2}[node.attributes["mode"]]
    parameters: _PARAMETERS = {0: top, 1: bottom, 2: left, 3: right, 4: mode, 5: float(node.attributes["value"])}
    writer.add("Padding", node.name, [node.inputs[0]], node.output, parameters)


def _resize(writer: _Writer, node: Node) -> None:
    a = node.attributes
    ways: dict[tuple[str, str], _PARAMETERS] = {
        ("nearest", "asymmetric"): {0: 1},
        ("linear", "half_pixel"): {0: 2},
        ("linear", "align_corners"): {0: 2, 6: 1},
    }
    way = ways.get((a["mode"], a["coordinates"]))
    if way is None:
        raise Unsupported(f"{node.name}: resizing by {a['mode']} with {a['coordinates']}")
    height, width = a["size"]
    writer.add("Interp", node.name, [node.inputs[0]], node.output, {**way, 3: height, 4: width})


def _slice(writer: _Writer, node: Node) -> None:
    a = node.attributes
    writer.add(
        "Crop", node.name, [node.inputs[0]], node.output, {9: [a["start"]], 10: [a["stop"]], 11: [a["axis"] - 1]}
    )


def _plain(writer: _Writer, node: Node) -> None:
    bounds = {"clip": ("min", "max"), "leaky_relu": ("slope",)}.get(node.op, ())
    _activate(writer, node.op, [node.attributes[key] for key in bounds], node.inputs[0], node.output)


_LAYERS: dict[str, Callable[[_Writer, Node], None]] = {
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
