"""Small networks to be trained, and data sets for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernels.frontend.networks.builder import NetworkBuilder
from kernels.ir.graph import Graph, Node
from kernels.reference.operations import AnyArray

SAMPLES = 30
CLASSES = 3


def sigmoids(seed: int = 1) -> Graph:
    """Three layers, no size of them a multiple of four."""
    net = NetworkBuilder("sigmoids", seed, (8, 13))
    x = net.sigmoid(net.dense("first", net.input, 10, gain=1.0))
    x = net.sigmoid(net.dense("second", x, 6, gain=1.0))
    return net.finish(net.softmax("prob", net.dense("last", x, CLASSES, gain=1.0)))


def pictures(seed: int = 1) -> Graph:
    """Convolutions with and without strides, pads and bias, both kinds of pooling, and a flattened image."""
    net = NetworkBuilder("pictures", seed, (4, 3, 11, 9))
    x = net.relu(net.max_pool("pool1", net.conv("conv1", net.input, 6, 3, pad=1), 3, ceil=True))
    x = net.average_pool("pool2", net.relu(net.conv("conv2", x, 5, (3, 2), pad=1)), 3, ceil=True)
    x = net.sigmoid(net.conv("conv3", x, 7, 2, stride=2, bias=False))
    x = net.relu(net.dense("first", net.flatten("flat", x), 9))
    return net.finish(net.softmax("prob", net.dense("last", x, CLASSES, gain=1.0)))


def stacks(seed: int = 1) -> Graph:
    """A convolution of whole vectors of channels between two that are none."""
    net = NetworkBuilder("stacks", seed, (4, 3, 9, 8))
    x = net.relu(net.conv("conv1", net.input, 8, 3, pad=1))
    x = net.sigmoid(net.conv("conv2", x, 6, (3, 2), pad=1))
    return net.finish(net.softmax("prob", net.dense("last", net.flatten("flat", x), CLASSES, gain=1.0)))


def codes(seed: int = 1) -> Graph:
    """An autoencoder whose output is an image."""
    net = NetworkBuilder("codes", seed, (4, 3, 6, 5))
    x = net.relu(net.conv("conv1", net.input, 5, 3, pad=1))
    return net.finish(net.conv("conv2", x, 3, 3, pad=1))


def shared(seed: int = 1) -> Graph:
    """Two layers of one weight, each with a bias of its own."""
    net = NetworkBuilder("shared", seed, (8, 12))
    x = net.sigmoid(net.dense("first", net.input, 12, gain=1.0))
    x = net.sigmoid(net.dense("second", x, 12, gain=1.0))
    graph = net.finish(net.softmax("prob", net.dense("last", x, CLASSES, gain=1.0)))
    own = {"second.weight": "first.weight"}
    nodes = [replace(node, inputs=tuple(own.get(name, name) for name in node.inputs)) for node in graph.nodes]
    constants = {name: array for name, array in graph.constants.items() if name not in own}
    return replace(graph, nodes=nodes, constants=constants)


def tangents(seed: int = 1) -> Graph:
    """Dense layers and a convolution with tanh, which is a `map`; channels that fill up no vector."""
    net = NetworkBuilder("tangents", seed, (4, 3, 6, 5))
    x = _tanh(net, net.conv("conv", net.input, 5, 3, pad=1))
    x = _tanh(net, net.dense("first", net.flatten("flat", x), 10, gain=1.0))
    return net.finish(net.softmax("prob", net.dense("last", x, CLASSES, gain=1.0)))


def _tanh(net: NetworkBuilder, x: str) -> str:
    net.graph.nodes.append(Node(f"{x}.tanh", "map", (x,), (f"{x}.tanh",), {"expression": ("tanh", "a")}))
    net.graph.shapes[f"{x}.tanh"] = net.graph.shapes[x]
    return f"{x}.tanh"


NETWORKS: dict[str, Callable[[int], Graph]] = {
    "sigmoids": sigmoids,
    "pictures": pictures,
    "stacks": stacks,
    "codes": codes,
    "shared": shared,
    "tangents": tangents,
}


def data_of(graph: Graph, seed: int, samples: int = SAMPLES) -> dict[str, AnyArray]:
    """Bytes, and classes that can be learnt from them."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (samples, *graph.shapes[graph.inputs[0]][1:]), dtype=np.uint8)
    labels = data.reshape(samples, -1)[:, :3].argmax(axis=1).astype(np.uint8)
    return {graph.inputs[0]: data, "labels": labels}  # type: ignore[dict-item]
