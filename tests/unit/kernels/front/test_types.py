"""Every tensor has an element type: what ONNX's cases declare, what operations give, and after every pass."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from kernels.errors import ModelError
from kernels.frontend.networks import NETWORKS
from kernels.ir.fusion import ALL
from kernels.ir.graph import Graph
from kernels.ir.types import ElementType, is_whole, of_numpy, output_type, to_numpy
from kernels.options import Options
from kernels.passes import PASSES, prepare
from kernels.passes.channels import keep_shuffled
from kernels.passes.split_channels import split_channels
from tests.contract.kernels.onnx_cases import nodes, operators

MODULES, PREPARED = 40, 24
CONVERT = ("map", "reshape")
"""Operations that may store another type than they compute."""


def is_total(graph: Graph) -> bool:
    return graph.types.keys() == graph.shapes.keys()


def test_types_are_those_of_numpy_and_back() -> None:
    for kind in get_args(ElementType):
        assert of_numpy(to_numpy(kind)) == kind
        assert is_whole(kind) == (float(np.float64(2.5).astype(to_numpy(kind))) != 2.5)


def test_outputs_have_the_types_that_onnx_declares(tmp_path: Path) -> None:
    rng, path = random.Random(os.environ["POCKETFARM_TEST_SEED"] + "types"), tmp_path / "m.onnx"
    cases = nodes(rng.sample(operators(), MODULES), whole=True)
    assert len(cases) > MODULES
    graphs = []
    for case in cases:
        for activations in case.variants():
            with suppress(ModelError):
                graph = case.load(path, activations)
                assert is_total(graph), case.name
                declared = {name: of_numpy(array.dtype) for name, array in case.outputs.items()}
                assert {name: graph.types[name] for name in declared} == declared, case.name
                graphs.append(graph)
    for graph in rng.sample(graphs, PREPARED):
        for backend in ("cpu", "opencl", "vulkan"):
            made = prepare(graph, Options(backend))
            assert is_total(made)
            assert {name: made.types[name] for name in graph.outputs} == {
                name: graph.types[name] for name in graph.outputs
            }
            for node in made.nodes:
                kinds = made.types[node.output], output_type(node, made.types)
                assert node.op in CONVERT or any(map(is_whole, kinds)) == all(map(is_whole, kinds)), (graph.name, node)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_pass_keeps_types_total(name: str) -> None:
    graph = NETWORKS[name](None, 1)
    assert is_total(graph)
    for one_pass in PASSES:
        graph = one_pass(graph, ALL)
        assert is_total(graph)
    for one in (keep_shuffled(graph), split_channels(graph, concats=True)):
        assert is_total(one)
        assert set(one.types.values()) == {"f32"}
