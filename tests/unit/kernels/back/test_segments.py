"""A network's division between GPU and CPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kernels.compile import compile_graph, divide, with_windows
from kernels.compile.cheapest import tensors
from kernels.errors import OptionError
from kernels.frontend.load import load_workload
from kernels.frontend.networks.builder import NetworkBuilder
from kernels.ir.placement import Placement, words_of
from kernels.options import Limits, Options
from kernels.plan.model import Transfer
from kernels.plan.sides import TRANSFER, segments
from kernels.reference import evaluate

from .graphs import generator


def test_every_node_is_in_one_segment_and_reads_what_is_there() -> None:
    graph = load_workload(network="googlenet", onnx=None, seed=1)
    for words in (
        "pooling",
        "products",
        "convolutions",
        "pooling+joins",
        f"after {graph.nodes[generator().integers(5, 60)].name}",
    ):
        parts = divide(graph, Placement.of(words).on_cpu(graph))
        assert sorted(node.name for part in parts for node in part.graph.nodes) == sorted(n.name for n in graph.nodes)
        known = set(graph.inputs)
        for part in parts:
            assert known.issuperset(part.graph.inputs)
            known |= set(part.graph.outputs)
        assert known.issuperset(graph.outputs)
        assert all(one.cpu != other.cpu for one, other in pairwise(parts))


def test_nodes_of_one_name_in_two_segments() -> None:
    """One node of a model may have become several: what one of them leaves the other is not lost."""
    net = NetworkBuilder("named", 1, (1, 4, 8, 8))
    pool = net.max_pool("pool", net.conv("conv", net.input, 4, 1), 3, stride=1, pad=1)
    graph = net.finish(net.conv("last", net.concat("both", [net.relu("conv"), pool]), 4, 1))
    renamed = {"conv.relu": "twice", "both": "twice"}
    graph.nodes = [replace(node, name=renamed.get(node.name, node.name)) for node in graph.nodes]
    parts = divide(graph, Placement.of("pooling").on_cpu(graph))
    assert [part.cpu for part in parts] == [False, True, False]
    known = set(graph.inputs)
    for part in parts:
        assert known.issuperset(part.graph.inputs)
        known |= set(part.graph.outputs)
    compile_graph(graph, Options("opencl", on_cpu="pooling"), Limits())


def test_a_layer_of_several_nodes_is_placed_whole() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    renamed = {"conv1": "convs", "pool1": "convs", "conv2": "convs"}
    graph.nodes = [replace(node, name=renamed.get(node.name, node.name)) for node in graph.nodes]

    def on_cpu(words: str) -> list[str]:
        return [name for name, cpu in Placement.of(words).on_cpu(graph).items() if cpu]

    assert on_cpu("after convs")[0] == "pool2"
    assert on_cpu("until convs") == on_cpu("layers convs") == ["conv1", "pool1", "conv2"]
    assert on_cpu(words_of(graph, {"convs"})) == ["conv1", "pool1", "conv2"]
    assert {each.maker: each.readers for each in tensors(graph)}["convs"] == {"pool2"}


def test_cheap_layers_stay_with_their_operand() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    placed = Placement.of("products").on_cpu(graph)
    assert {name for name, cpu in placed.items() if cpu} == {"ip1", "ip1.relu", "ip2", "prob"}
    assert not Placement.of("after conv2").on_cpu(graph)["conv2"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("pooling+nothing", "write `none`"),
        ("after conv9", "did you mean conv"),
        ("after prob", "none of the layers"),
        ("convolutions+products+pooling", "all of the layers"),
        ("joins", "none of the layers"),
        ("im2col+gemm", "name one of the three"),
        ("convolutions+gemm", "name one of the three"),
    ],
)
def test_placements_that_leave_nothing_are_refused(words: str, says: str) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    with pytest.raises(OptionError, match=says):
        compile_graph(graph, Options("opencl", on_cpu=words), Limits())


def test_transfers_say_what_they_move() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    plan = compile_graph(graph, Options("opencl", on_cpu="after pool1"), Limits()).plan
    (step,) = [step for step in plan.steps if isinstance(step, Transfer)]
    assert (step.layer, step.bytes) == ("pool1", 4 * 20 * 12 * 12)
    assert [api for api, _ in segments(plan)] == ["opencl", TRANSFER, "cpu"]
    assert {program.api for program in plan.programs} == {"", "cpu"}


def test_a_convolution_is_its_windows_and_their_product() -> None:
    """LeNet as study C places it: im2col on the GPU, all else on the CPU; of other algorithms it is no step."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    divided = with_windows(graph)
    x = {"data": generator().standard_normal(graph.shapes["data"])}
    (wanted,), (found,) = (evaluate(each, x).values() for each in (graph, divided))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    placed = Placement.of("gemm+pooling+products").on_cpu(divided)
    assert {name for name, cpu in placed.items() if not cpu} == {"conv1:windows", "conv2:windows"}
    plan = compile_graph(graph, Options("opencl", algorithm="im2col", on_cpu="gemm+pooling+products"), Limits()).plan
    assert [api for api, _ in segments(plan)] == ["opencl", TRANSFER, "cpu", TRANSFER, "opencl", TRANSFER, "cpu"]
    moved = {step.layer: step.bytes for step in plan.steps if isinstance(step, Transfer)}
    assert moved == {"conv1:windows": 4 * 25 * 24 * 24, "pool1": 4 * 20 * 12 * 12, "conv2:windows": 4 * 500 * 8 * 8}
    assert (plan.options["algorithm"], plan.options["on_cpu"]) == ("im2col", "gemm+pooling+products")
    with pytest.raises(OptionError, match="steps of algorithm `im2col`, not of `direct`"):
        compile_graph(graph, Options("opencl", algorithm="direct", on_cpu="gemm"), Limits())
