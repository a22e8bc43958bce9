"""Every tensor has an element type: what ONNX's cases declare, what operations give, and after every pass."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import ModelError
from kernels.frontend.networks import NETWORKS
from kernels.ir.fusion import ALL
from kernels.ir.graph import Graph
from kernels.ir.types import ElementType, as_type, is_whole, of_numpy, output_type, to_numpy
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


@given(kind=st.sampled_from(get_args(ElementType)), data=st.data())
def test_numbers_of_a_device_become_those_of_the_type(kind: ElementType, data: st.DataObject) -> None:
    """Whole numbers start again past the ends of a type; endless ones stay what they are."""
    limit, bits = 1 << 24, 8 * to_numpy(kind).itemsize
    given_ = np.array(data.draw(st.lists(st.integers(-limit, limit), min_size=1)), np.float32)
    found = as_type(given_, kind)
    if not is_whole(kind):
        with np.errstate(over="ignore"):
            narrow = given_.astype(found.dtype)
        assert np.array_equal(found, narrow) and found.dtype in (to_numpy(kind), np.float32)
        return
    if kind == "bool":
        assert np.array_equal(found, given_ != 0)
    elif kind not in ("i4", "u4"):
        assert found.dtype == to_numpy(kind)
        assert all((int(one) - int(two)) % 2**bits == 0 for one, two in zip(found, given_, strict=True))
    endless = np.array([*given_, np.inf], np.float32)
    assert as_type(endless, kind) is endless


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
