"""Every tensor has an element type: what ONNX's cases declare, what operations give, and after every pass."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from kernels.errors import InputError, ModelError
from kernels.frontend.networks import NETWORKS
from kernels.frontend.onnx import load_onnx
from kernels.ir.fusion import ALL
from kernels.ir.graph import Graph
from kernels.ir.programs import held
from kernels.ir.types import ElementType, as_type, is_whole, of_numpy, output_type, to_numpy
from kernels.options import Backend, Options
from kernels.passes import PASSES, optimise, prepare
from kernels.passes.channels import keep_shuffled
from kernels.passes.channels.split_channels import split_channels
from kernels.passes.types import in_types, narrow
from kernels.plan.model import Dtype, Port
from kernels.plan.port_values import as_port
from kernels.reference import evaluate
from tests.contract.kernels.onnx_cases import nodes, operators
from tests.contract.kernels.onnx_fuzz import text_of
from tests.contract.kernels.typed_fuzz import MOVES, cases

from .onnx_models import run_onnxruntime

MODULES, PREPARED, MOVED = 24, 16, 100
WRITTEN_OUT = "_expanded"
CONSTANTS = {False: (1e-9, 0.0), True: (2**-21, 2**-24)}
"""Relative and absolute bounds. A function that is written out has constants in single precision: a known one gets the
exact ones (1/6, the root of 1/2), and two roots of attention's scale become one factor, rounded again."""
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
    graphs: list[tuple[str, Graph, dict[str, Any]]] = []
    for case in cases:
        for activations in case.variants():
            with suppress(ModelError):
                graph = case.load(path, activations)
                assert is_total(graph), case.name
                declared = {name: of_numpy(array.dtype) for name, array in case.outputs.items()}
                assert {name: graph.types[name] for name in declared} == declared, case.name
                graphs.append((case.name, graph, case.given(graph)))
    for of, graph, inputs in rng.sample(graphs, PREPARED):
        for backend in ("cpu", "opencl", "vulkan"):
            made = prepare(graph, Options(backend))
            assert is_total(made)
            assert {name: made.types[name] for name in graph.outputs} == {
                name: graph.types[name] for name in graph.outputs
            }
            for node in made.nodes:
                kinds = made.types[node.output], output_type(node, made.types)
                assert node.op in CONVERT or any(map(is_whole, kinds)) == all(map(is_whole, kinds)), (graph.name, node)
        plain, simpler = evaluate(graph, inputs), evaluate(optimise(graph), inputs)
        for name in graph.outputs:
            assert (
                plain[name].dtype
                == simpler[name].dtype
                == (to_numpy(graph.types[name]) if is_whole(graph.types[name]) else np.float64)
            )
            relative, absolute = (0.0, 0.0) if plain[name].dtype.kind != "f" else CONSTANTS[WRITTEN_OUT in of]
            np.testing.assert_allclose(simpler[name], plain[name], rtol=relative, atol=absolute)


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_no_move_changes_a_type_behind_any_pass(backend: Backend, seed: int, tmp_path: Path) -> None:
    """Maps alone do, once they are written out; and what is computed stays the same, whole numbers to the last bit."""
    found = cases(np.random.default_rng([seed, 93]), 0, MOVED, tmp_path / "m.onnx", MOVES)
    graphs = [(one, graph) for one in found for graph in one.graphs]
    assert len(graphs) > MOVED // 2
    for one, graph in graphs:
        typed = in_types(graph if backend == "cpu" else narrow(graph, wide=True), on_gpu=backend != "cpu")
        made = prepare(typed, Options(backend))
        moves = [node for node in made.nodes if node.op in ("concat", "reshape", "slice", "take", "transpose")]
        for node in moves:
            moved = node.inputs if node.op == "concat" else node.inputs[:1]
            assert {held(made.types[name]) for name in (*moved, node.output)} == {held(made.types[node.output])}, node
        assert not one.case.faults(evaluate(made, one.case.given(graph), dtype=np.float32)), text_of(one.case)


@pytest.mark.parametrize(("kind", "most"), [(TensorProto.INT64, 1 << 61), (TensorProto.INT32, 1 << 29)])
def test_whole_numbers_are_computed_as_such(tmp_path: Path, seed: int, kind: int, most: int) -> None:
    """They have 32 or 64 bits, far beyond what fp32 and fp64 hold."""
    rng, dtype = np.random.default_rng(seed), onnx.helper.tensor_dtype_to_np_dtype(kind)
    make = onnx.helper.make_node
    nodes = [
        make("Add", ["x", "y"], ["sum"]), make("Sub", ["x", "c"], ["less"]), make("Mul", ["y", "two"], ["product"]),
        make("Neg", ["x"], ["neg"]), make("Abs", ["x"], ["abs"]), make("Max", ["x", "y"], ["max"]),
        make("Less", ["x", "y"], ["below"]), make("Equal", ["x", "c"], ["same"]), make("Gather", ["x", "at"], ["took"]),
        make("Where", ["below", "x", "y"], ["where"]), make("Concat", ["x", "y"], ["both"], axis=0),
        make("ReduceSum", ["x"], ["total"]), make("ReduceMax", ["x"], ["most"]), make("ArgMax", ["x"], ["place"]),
        make("TopK", ["x", "k"], ["best", "places"]), make("CumSum", ["x", "first"], ["cum"]),
        make("Transpose", ["x"], ["turned"]), make("ReduceProd", ["few"], ["powers"]),
    ]  # fmt: skip
    x, y, c = (rng.integers(-most, most, 6).astype(dtype) for _ in range(3))
    x = np.where(rng.random(6) < 0.3, c, x)
    x = np.where(rng.random(6) < 0.3, y - 1, x).astype(dtype) // 4
    constants = {
        "c": c, "two": dtype.type(2), "at": np.array([3, -1, 0]), "k": np.array([4]), "first": np.int64(0),
        "few": np.array([3, 5, 7], dtype),
    }  # fmt: skip
    names = [name for node in nodes for name in node.output]
    made = onnx.helper.make_graph(
        nodes, "m", [onnx.helper.make_tensor_value_info(name, kind, (6,)) for name in "xy"],
        [onnx.helper.make_empty_tensor_value_info(name) for name in names],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    onnx.save(
        onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8),
        path := tmp_path / "m.onnx",
    )
    graph, given_ = load_onnx(path), {"x": x, "y": y}
    wanted = {**run_onnxruntime(path, given_), "total": x.sum(keepdims=True, dtype=dtype)}  # its own is rounded
    for found in (evaluate(graph, given_), evaluate(optimise(graph), given_)):
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array, err_msg=name)


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


@given(dtype=st.sampled_from(["f32", "i32", "u8"]), number=st.integers(-(1 << 63), (1 << 63) - 1), small=st.booleans())
def test_a_port_takes_what_its_type_holds(dtype: Dtype, number: int, small: bool) -> None:
    number = number % 256 if small else number
    port = Port(name="x", buffer="x", shape=(1,), dtype=dtype)
    low, high = {"f32": (-(1 << 24), 1 << 24), "i32": (-(1 << 31), (1 << 31) - 1), "u8": (0, 255)}[dtype]
    if low <= number <= high:
        assert as_port(port, np.array([number])).tolist() == [number]
    else:
        with pytest.raises(InputError, match=f"input 'x' holds {number}; this plan computes"):
            as_port(port, np.array([number]))
