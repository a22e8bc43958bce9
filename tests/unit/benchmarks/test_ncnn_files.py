"""ncnn's files: every blob is read once, every weight is there. That ncnn computes the same the benchmark checks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.engine.ncnn_files import MAGIC, Unsupported, write_ncnn
from kernels.frontend.load import load_workload
from kernels.frontend.networks.builder import NetworkBuilder

NETWORKS = ("squeezenet_v1_1", "mobilenet_v2", "googlenet", "resnet18", "pynet_level_5")


def layers(text: str) -> list[tuple[str, list[str], list[str], dict[int, str]]]:
    """Kind, inputs, outputs and parameters of each layer."""
    found = []
    for line in text.splitlines()[2:]:
        kind, _, given, taken, *rest = line.split()
        blobs, parameters = rest[: int(given) + int(taken)], rest[int(given) + int(taken) :]
        pairs = [parameter.split("=") for parameter in parameters]
        found.append((kind, blobs[: int(given)], blobs[int(given) :], {int(key): value for key, value in pairs}))
    return found


@pytest.mark.parametrize("network", NETWORKS)
def test_files_are_whole(network: str, tmp_path: Path) -> None:
    graph = load_workload(network=network, onnx=None, seed=1)
    files = write_ncnn(graph, tmp_path)
    text = files.param.read_text()
    found = layers(text)
    written = [blob for _, _, outputs, _ in found for blob in outputs]
    assert text.splitlines()[:2] == [str(MAGIC), f"{len(found)} {len(written)}"]
    read = Counter(blob for _, inputs, _, _ in found for blob in inputs)
    assert len(set(written)) == len(written)
    assert set(read.values()) == {1}
    assert set(written) - set(read) == set(files.outputs.values())
    assert not {kind for kind, *_ in found} & {"BatchNorm"}
    values = sum(int(parameters.get(6, 0)) for kind, _, _, parameters in found if kind.startswith("Convolution"))
    weights = sum(graph.constants[node.inputs[1]].size for node in graph.nodes if node.op == "conv")
    assert values == weights


def test_weights_follow_in_the_order_of_the_layers(tmp_path: Path) -> None:
    net = NetworkBuilder("small", 1, (1, 3, 6, 6))
    x = net.relu(net.conv("conv", net.input, 2, 3))
    graph = net.finish(net.dense("dense", net.flatten("flat", x), 5))
    files = write_ncnn(graph, tmp_path)
    assert [kind for kind, *_ in layers(files.param.read_text())] == ["Input", "Convolution", "Flatten", "InnerProduct"]
    assert layers(files.param.read_text())[1][3][9] == "1"  # the activation is fused
    constants = graph.constants
    wanted = [
        np.zeros(1, np.float32), constants["conv.weight"].ravel(), constants["conv.bias"],
        np.zeros(1, np.float32), constants["dense.weight"].T.ravel(), constants["dense.bias"],
    ]  # fmt: skip
    np.testing.assert_array_equal(np.fromfile(files.weights, np.float32), np.concatenate(wanted))


def test_what_ncnn_has_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="one image"):
        write_ncnn(load_workload(network="lenet", onnx=None, seed=1, batch=2), tmp_path)
