"""Small graphs of whole numbers of every width, against onnxruntime, to the last bit; `make fuzz` draws thousands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnxruntime import InferenceSession

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent

from .onnx_cases import limits_here, through_agent
from .onnx_fuzz import text_of
from .typed_fuzz import cases

CASES = {"cpu": 60, "opencl": 12, "vulkan": 36}


@pytest.mark.parametrize("api", CASES)
def test_whole_numbers_are_what_onnxruntime_computes(agent: Agent, api: str, seed: int, tmp_path: Path) -> None:
    found = cases(np.random.default_rng([seed, 90]), 0, CASES[api], tmp_path / "m.onnx")
    assert not {text_of(one.case): one.wrong for one in found if one.wrong}
    taken = [one for one in found if one.graphs]
    assert len(taken) > CASES[api] // 2
    wrong = through_agent(taken, agent, api)
    assert not {text_of(one.case): wrong[one.case.name] for one in taken if one.case.name in wrong}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_long_rows_of_whole_numbers(agent: Agent, api: str, kind: str, large: bool, seed: int, tmp_path: Path) -> None:
    """Sums and orders in several steps or by work-groups, and copies by fours, of numbers of any size. `large`: by the
    kernels of a GPU with memory of its own."""
    rng, make, limits = np.random.default_rng([seed, 92]), helper.make_node, np.iinfo(kind)
    nodes = [
        make("ReduceSum", ["x", "one"], ["sum"], keepdims=0), make("ReduceMax", ["x", "one"], ["most"], keepdims=0),
        make("ReduceSum", ["x", "zero"], ["down"], keepdims=0), make("ArgMin", ["x"], ["least"], axis=1, keepdims=0),
        make("TopK", ["x", "k"], ["best", "places"], axis=1), make("TopK", ["x", "k"], ["worst", "at"], largest=0),
        make("Slice", ["x", "four", "eight", "one"], ["part"]), make("Concat", ["part", "x"], ["both"], axis=1),
        make("Transpose", ["x"], ["turned"]), make("MatMul", ["x", "turned"], ["product"]),
    ]  # fmt: skip
    x = rng.integers(limits.min, limits.max, (3, 700), kind, endpoint=True)
    x.flat[rng.choice(x.size, 40)] = rng.choice(np.array([limits.min, limits.max, 0, -1], kind), 40)
    stored = {"zero": 0, "one": 1, "four": 4, "eight": 8, "k": 300}
    names = [name for node in nodes for name in node.output]
    made = helper.make_graph(
        nodes, "m", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in names],
        [numpy_helper.from_array(np.array([value]), name) for name, value in stored.items()],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    graph, own = load_onnx(tmp_path / "m.onnx"), limits_here(agent.binary, api)
    own = replace(own, cpu_device=False, unified_memory=False, subgroup_size=0, compute_units=64) if large else own
    ended = agent.run(compile_graph(graph, Options(api), own), {"x": x}, "--samples", 1)  # type: ignore[arg-type]
    assert not ended.code, ended.events[-1]
    for index, (name, wanted) in enumerate(evaluate(graph, {"x": x}).items()):
        np.testing.assert_array_equal(ended.output(index).reshape(wanted.shape), wanted, err_msg=name)


@pytest.mark.parametrize("api", CASES)
def test_ends_of_types_pass_through_floats(agent: Agent, api: str, seed: int, tmp_path: Path) -> None:
    """Rounded to fp32 the largest numbers of a type pass its end: they are not held in that type behind the float."""
    rng, make = np.random.default_rng([seed, 93]), helper.make_node
    inputs, nodes = dict[str, np.ndarray](), []
    for kind in ("int8", "int16", "uint16", "int32", "uint32"):
        ends, name = np.iinfo(kind), f"x_{kind}"
        inputs[name] = (rng.choice([ends.min, ends.max], (3, 4)) - rng.integers(0, 99, (3, 4))).astype(kind)
        op = str(rng.choice(["Transpose", "Relu", "Abs", "Neg", "Identity"]))
        nodes += [
            make("Cast", [name], [f"f_{kind}"], to=1), make(op, [f"f_{kind}"], [f"m_{kind}"]),
            make("Cast", [f"m_{kind}"], [f"w_{kind}"], to=7), make("Sub", [f"w_{kind}", "y"], [f"z_{kind}"]),
        ]  # fmt: skip
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    made = helper.make_graph(
        nodes, "m", [helper.make_tensor_value_info(name, types[name], (3, 4)) for name in inputs],
        [helper.make_tensor_value_info(name.replace("x_", "z_"), 7, None) for name in inputs],
        [numpy_helper.from_array(np.array([int(rng.integers(-9, 9))]), "y")],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    graph, wanted = load_onnx(tmp_path / "m.onnx"), InferenceSession(model.SerializeToString()).run(None, inputs)
    bundle = compile_graph(graph, Options(api), limits_here(agent.binary, api))  # type: ignore[arg-type]
    ended = agent.run(bundle, inputs, "--samples", 1)
    assert not ended.code, ended.events[-1]
    for index, each in enumerate(wanted):
        np.testing.assert_array_equal(ended.output(index).reshape(each.shape), each)
