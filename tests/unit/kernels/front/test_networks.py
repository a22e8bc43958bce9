"""Built-in networks: their size, their determinism, and onnxruntime's opinion of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import random_inputs
from kernels.frontend.networks import NETWORKS
from kernels.frontend.networks.caffe import alexnet
from kernels.frontend.networks.export import to_onnx
from kernels.frontend.networks.googlenet import googlenet
from kernels.frontend.networks.inception import inception_v3
from kernels.frontend.networks.pynet import pynet
from kernels.frontend.networks.resnet import resnet50
from kernels.frontend.networks.vgg import vgg16
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.passes import optimise
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate
from tests.unit.kernels.back.graphs import some

from .onnx_models import assert_agrees, run_onnxruntime

PARAMETERS = {
    "alexnet": 60_965_224,
    "autoencoder_784": 520_260,
    "caffenet": 60_965_224,
    "cifar10_quick": 145_578,
    "classifier_784": 520_260,
    "googlenet": 6_998_552,
    "inception_v3": 23_834_568,
    "lenet": 431_080,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "pynet": 47_554_738,
    "pynet_full": 47_554_738,
    "pynet_level_1": 47_523_747,
    "pynet_level_2": 43_202_563,
    "pynet_level_3": 36_349_123,
    "pynet_level_4": 28_333_635,
    "pynet_level_5": 18_895_171,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "squeezenet_v1_0": 1_248_424,
    "squeezenet_v1_1": 1_235_496,
    "vgg16": 138_357_544,
}
"""The published counts (with two numbers a channel for batch normalisation)."""

PYNETS = [name for name in PARAMETERS if name.startswith("pynet")]
INPUTS = {
    "alexnet": (3, 227, 227), "autoencoder_784": (784,), "caffenet": (3, 256, 256), "cifar10_quick": (3, 32, 32),
    "classifier_784": (784,),
    "inception_v3": (3, 299, 299), "lenet": (1, 28, 28), "squeezenet_v1_0": (3, 227, 227),
    **dict.fromkeys(PYNETS, (4, 128, 128)), "pynet_full": (4, 1488, 1984),
}  # fmt: skip

LARGE: dict[str, Callable[[int], Graph]] = {
    "googlenet": partial(googlenet, size=96),
    "inception_v3": partial(inception_v3, size=107),
    "resnet50": partial(resnet50, size=96),
    "vgg16": partial(vgg16, size=32),
}
"""These are run on smaller images."""


def test_every_network_is_known_here() -> None:
    assert set(NETWORKS) == set(PARAMETERS)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_size(name: str) -> None:
    graph = NETWORKS[name](None)
    assert sum(array.size for array in graph.constants.values()) == PARAMETERS[name]
    assert graph.shapes[graph.inputs[0]] == (1, *INPUTS.get(name, (3, 224, 224)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    sorted(name for name in set(NETWORKS) - {"alexnet", "caffenet", *LARGE} if not name.startswith("pynet")),
)
def test_network(tmp_path: Path, name: str, seed: int) -> None:
    """The scale of its activations, and its results as written and simplified."""
    graph = NETWORKS[name](seed)
    check_scale(graph, evaluate(graph, random_inputs(graph, seed), dtype=np.float32, keep=True))
    for form in (graph, optimise(graph)):
        path = tmp_path / "m.onnx"
        to_onnx(form, path)
        assert_agrees(path, random_inputs(graph, seed))


def check_scale(graph: Graph, values: dict[str, np.ndarray]) -> None:
    """No activation vanishes or overflows."""
    spreads = {tensor: float(array.std()) for tensor, array in values.items() if tensor not in graph.outputs}
    assert all(0.05 < spread < 50 for spread in spreads.values()), spreads


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LARGE))
def test_large_network(tmp_path: Path, name: str, seed: int) -> None:
    """It runs on a smaller image, fused only: its scale, onnxruntime's opinion, and, of one, what a device computes."""
    graph = LARGE[name](seed)
    check_scale(graph, evaluate(graph, random_inputs(graph, seed), dtype=np.float32, keep=True))
    to_onnx(optimise(graph), tmp_path / "m.onnx")
    assert_agrees(tmp_path / "m.onnx", random_inputs(graph, seed))
    if name not in some(sorted(LARGE), 1, "device"):
        return
    inputs = random_inputs(graph, seed + 1)
    run = run_opencl(compile_graph(graph, Options("opencl"), Limits(cpu_device=True)), inputs)
    for output, theirs in run_onnxruntime(tmp_path / "m.onnx", inputs).items():
        assert np.linalg.norm(run.outputs[output] - theirs) <= 1e-4 * np.linalg.norm(theirs)


@pytest.mark.slow
def test_alexnet(tmp_path: Path, seed: int) -> None:
    """Once, and for small pictures: its dense layers are large."""
    graph = alexnet(seed, size=99)
    to_onnx(optimise(graph), tmp_path / "m.onnx")
    inputs = random_inputs(graph, seed)
    del graph
    assert_agrees(tmp_path / "m.onnx", inputs)


@pytest.mark.slow
def test_pynet(tmp_path: Path, seed: int) -> None:
    """The smallest size normalises over four pixels and so magnifies every rounding: onnxruntime's own
    distance from double precision is the measure of a device's. Winograd, PoCL's own choice, has a wider bound."""
    graph = pynet(seed, size=(32, 32))
    to_onnx(optimise(graph), tmp_path / "m.onnx")
    inputs = random_inputs(graph, seed)
    wanted, theirs = evaluate(graph, inputs, keep=True), run_onnxruntime(tmp_path / "m.onnx", inputs)
    check_scale(graph, wanted)
    read = evaluate(load_onnx(tmp_path / "m.onnx"), inputs, dtype=np.float32)
    bundle = compile_graph(graph, Options("opencl", algorithm="direct"), Limits(cpu_device=True))
    ours = run_opencl(bundle, inputs).outputs
    for name in graph.outputs:
        allowed = np.linalg.norm(theirs[name] - wanted[name])
        assert allowed <= 0.05 * np.linalg.norm(wanted[name])
        for found in (read, ours):
            assert np.linalg.norm(found[name] - wanted[name]) <= 5 * allowed


def test_pynet_has_the_calls_of_the_study() -> None:
    """All but the reflection pads, of which the study counts 127: here each convolution has its own."""
    graph = NETWORKS["pynet_full"](None)
    calls = Counter(node.op for node in graph.nodes)
    published = {"conv": 147, "instance_norm": 124, "relu": 141, "resize": 9, "max_pool": 4, "sigmoid": 6}
    assert {op: calls[op] for op in published} == published
    assert calls["pad"] == 147
    assert graph.outputs == tuple(f"level_{i}" for i in range(6))
    assert graph.shapes["level_0"] == (1, 3, 2976, 3968)


@pytest.mark.parametrize("level", [1, 3, 5])
def test_a_level_of_pynet_is_part_of_the_whole(level: int) -> None:
    """Its weights, by which their seeded values are made, and its shapes have the same names."""
    whole, part = pynet(None, size=(32, 32)), pynet(None, size=(32, 32), level=level)
    assert part.outputs == (f"level_{level}",)
    assert {node.name for node in part.nodes} < {node.name for node in whole.nodes}
    assert part.shapes.items() < whole.shapes.items()


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
