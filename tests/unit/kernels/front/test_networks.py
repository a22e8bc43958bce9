"""Built-in networks: their size, their determinism, and onnxruntime's opinion of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.load import random_inputs
from kernels.networks import NETWORKS
from kernels.networks.export import to_onnx
from kernels.passes import optimise
from kernels.reference import evaluate

from .onnx_models import assert_agrees

PARAMETERS = {
    "alexnet": 60_965_224,
    "autoencoder_784": 520_260,
    "cifar10_quick": 145_578,
    "lenet": 431_080,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "resnet18": 11_689_512,
    "squeezenet_v1_0": 1_248_424,
    "squeezenet_v1_1": 1_235_496,
}
"""As published (with two numbers a channel for batch normalisation)."""

INPUTS = {
    "alexnet": (3, 227, 227), "autoencoder_784": (784,), "cifar10_quick": (3, 32, 32), "lenet": (1, 28, 28),
    "squeezenet_v1_0": (3, 227, 227),
}  # fmt: skip


def test_every_network_is_known_here() -> None:
    assert set(NETWORKS) == set(PARAMETERS)


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - {"alexnet"}))
def test_network(tmp_path: Path, name: str, seed: int) -> None:
    """Its parameters, its shapes, the scale of its activations, and its results with and without fusion."""
    graph = NETWORKS[name](seed)
    assert sum(array.size for array in graph.constants.values()) == PARAMETERS[name]
    assert graph.shapes[graph.inputs[0]] == (1, *INPUTS.get(name, (3, 224, 224)))
    values = evaluate(graph, random_inputs(graph, seed), dtype=np.float32, keep=True)
    spreads = {tensor: float(array.std()) for tensor, array in values.items() if tensor not in graph.outputs}
    assert all(0.05 < spread < 50 for spread in spreads.values()), spreads
    for fuse in (False, True):
        path = tmp_path / "m.onnx"
        to_onnx(optimise(graph, fuse=fuse), path)
        assert_agrees(path, random_inputs(graph, seed))


def test_alexnet(tmp_path: Path, seed: int) -> None:
    """The same for the largest one, once."""
    graph = NETWORKS["alexnet"](seed)
    assert sum(array.size for array in graph.constants.values()) == PARAMETERS["alexnet"]
    assert graph.shapes["data"] == (1, *INPUTS["alexnet"])
    to_onnx(optimise(graph, fuse=True), tmp_path / "m.onnx")
    assert_agrees(tmp_path / "m.onnx", random_inputs(graph, seed))


def test_squeezenet_has_the_shapes_of_the_study() -> None:
    shapes = NETWORKS["squeezenet_v1_0"](1).shapes
    assert shapes["conv1"] == (1, 96, 111, 111)
    assert shapes["pool1"] == (1, 96, 55, 55)
    assert shapes["pool8"] == (1, 512, 13, 13)
    assert shapes["conv10"] == (1, 1000, 15, 15)


def test_weights_depend_on_the_seed_and_their_name_only() -> None:
    one, again, other = (NETWORKS["lenet"](seed).constants for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not any(np.array_equal(one[name], other[name]) for name in one)
    np.testing.assert_array_equal(NETWORKS["lenet"](1, batch=3).constants["ip1.weight"], one["ip1.weight"])


@pytest.mark.parametrize("name", ["lenet", "autoencoder_784", "cifar10_quick"])
def test_a_batch_is_its_images(name: str) -> None:
    graph, single = NETWORKS[name](1, batch=3), NETWORKS[name](1)
    (port,), (output,) = graph.inputs, graph.outputs
    x = random_inputs(graph, 5)[port]
    together = evaluate(graph, {port: x})[output]
    for i in range(3):
        np.testing.assert_allclose(evaluate(single, {port: x[i : i + 1]})[output][0], together[i], atol=1e-12)
