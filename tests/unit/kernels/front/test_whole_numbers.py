"""Operators of whole numbers: cut off after a division, and within the range of their type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.compile import compile_graph
from kernels.errors import OptionError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

X = np.array([7, -7, 9, 80], np.float32)
BYTES = np.array([9, 5, 200, 255], np.float32)


def typed(folder: Path, kind: int, op: str, inputs: list[str], constants: dict[str, Any], **attributes: Any) -> Path:
    """y = op(x in this type, constants)."""
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=kind),
        helper.make_node(op, inputs, ["z"], **attributes),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    return save_model(folder / "m.onnx", nodes, {"x": (4,)}, ["y"], constants)


@pytest.mark.parametrize("divisor", [np.int64(2), np.array([-3], np.int64), np.array([2, 3, 4, 7])])
def test_division_by_a_constant_is_cut_off(tmp_path: Path, divisor: Any) -> None:
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Div", ["w", "c"], {"c": divisor}), {"x": X})


@pytest.mark.parametrize("numbers", [[1, 2, 2, 2], [-1, -2, -2, -2], [3, 3, 3, 3]])
def test_the_mean_of_whole_numbers_is_cut_off(tmp_path: Path, numbers: list[int]) -> None:
    path = typed(tmp_path, TensorProto.INT64, "ReduceMean", ["w"], {})
    assert_agrees(path, {"x": np.array(numbers, np.float32)})


@pytest.mark.parametrize(("op", "inputs", "kind"), [
    ("Sub", ["w", "c"], np.uint8), ("Sub", ["c", "w"], np.uint8), ("Add", ["w", "c"], np.uint8),
    ("Add", ["w", "w"], np.uint8), ("Mul", ["w", "c"], np.uint8), ("Sub", ["w", "c"], np.uint32),
])  # fmt: skip
def test_bytes_start_again_at_the_end_of_their_range(tmp_path: Path, op: str, inputs: list[str], kind: Any) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    assert_agrees(typed(tmp_path, number, op, inputs, {"c": np.array([7, 3, 99, 2], kind)}), {"x": BYTES})


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8, TensorProto.INT16, TensorProto.UINT16])
def test_casts_to_smaller_types_start_again(tmp_path: Path, kind: int) -> None:
    x = {"x": np.array([300, -1, 40000, -70000], np.float32)}
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Cast", ["w"], {}, to=kind), x)


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8, TensorProto.INT16, TensorProto.UINT16])
def test_casts_of_floats_start_again(tmp_path: Path, seed: int, kind: int) -> None:
    """Cut off first; what is clipped to the type before needs nothing more."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(64) * 10.0 ** rng.integers(0, 7, 64)).astype(np.float32)
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(kind))
    clipped = [helper.make_node("Clip", ["x", "low", "high"], ["c"])]
    constants = {"low": np.float32(limits.min), "high": np.float32(limits.max)}
    for before, name in (([], "x"), (clipped, "c")):
        nodes = [helper.make_node("Cast", [name], ["w"], to=kind)]
        nodes.append(helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT))
        path = save_model(tmp_path / "m.onnx", [*before, *nodes], {"x": (64,)}, ["y"], constants if before else {})
        graph = assert_agrees(path, {"x": x})
        bundle = compile_graph(graph, Options("opencl"), Limits())
        np.testing.assert_array_equal(run_opencl(bundle, {"x": x}).outputs["y"], evaluate(graph, {"x": x})["y"])
        assert ("'sub'" in str([node.attributes for node in graph.nodes])) == (not before)


@pytest.mark.parametrize("exponent", [np.float32(2), np.int64(3)])
def test_powers_of_whole_numbers(tmp_path: Path, exponent: Any) -> None:
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Pow", ["w", "c"], {"c": exponent}), {"x": X})


def test_a_computed_power_is_cut_off(tmp_path: Path) -> None:
    path = typed(tmp_path, TensorProto.INT64, "Pow", ["w", "x"], {})
    assert_agrees(path, {"x": np.array([-1, 2, 3, 5], np.float32)})


@pytest.mark.parametrize(("op", "inputs"), [("Pow", ["w", "c"]), ("ReduceL2", ["w"]), ("ReduceLogSumExp", ["w"])])
def test_what_would_have_to_be_cut_off_exactly_is_refused(tmp_path: Path, op: str, inputs: list[str]) -> None:
    path = typed(tmp_path, TensorProto.INT64, op, inputs, {"c": np.float32(0.5)})
    with pytest.raises(UnsupportedNode, match=r"cast (it|them) to FLOAT"):
        load_onnx(path)


LONG = 2050
WIDE = {
    "Hardmax": ([helper.make_node("Hardmax", ["x"], ["y"])], {"x": (1, LONG)}),
    "OneHot": ([helper.make_node("OneHot", ["x", "long", "two"], ["y"])], {"x": (3,)}),
    "Gather": (
        [
            helper.make_node("Add", ["x", "one"], ["f"]),
            helper.make_node("Cast", ["f"], ["i"], to=TensorProto.INT32),
            helper.make_node("Gather", ["table", "i"], ["y"]),
        ],
        {"x": (3,)},
    ),
    "MatMulInteger": (
        [
            helper.make_node("Cast", ["x"], ["b"], to=TensorProto.UINT8),
            helper.make_node("MatMulInteger", ["b", "w"], ["i"]),
            helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
        ],
        {"x": (2, 4)},
    ),
}
WORDS = {"MatMulInteger": "sums of whole numbers may reach 129540"}


@pytest.mark.parametrize("op", WIDE)
def test_whole_numbers_that_half_does_not_hold_are_refused_there(tmp_path: Path, op: str) -> None:
    nodes, inputs = WIDE[op]
    constants = {
        "long": np.int64(LONG), "two": np.array([0, 1], np.float32), "one": np.float32(1),
        "table": np.zeros((LONG, 1), np.float32), "w": np.full((4, 3), -127, np.int8),
    }  # fmt: skip
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, inputs, ["y"], constants))
    compile_graph(graph, Options("opencl"), Limits())
    with pytest.raises(OptionError, match=WORDS.get(op, f"places of {LONG} elements")):
        compile_graph(graph, Options("opencl", precision="fp16"), Limits())


def test_tokens_that_are_given_are_looked_up_in_half_too(tmp_path: Path) -> None:
    """They are in another shape and type too, as exporters have them."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["r"]),
        helper.make_node("Cast", ["r"], ["w"], to=TensorProto.INT32),
        helper.make_node("Gather", ["table", "w"], ["y"]),
    ]
    port = helper.make_tensor_value_info("x", TensorProto.INT64, (3, 1))
    rows, x = np.arange(LONG, dtype=np.float32)[:, None] % 100, np.float32([[LONG - 1], [1], [LONG - 4]])
    constants = [numpy_helper.from_array(rows, "table"), numpy_helper.from_array(np.array([3]), "flat")]
    made = helper.make_graph(nodes, "m", [port], [helper.make_tensor_value_info("y", 1, None)], constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    bundle = compile_graph(load_onnx(tmp_path / "m.onnx"), Options("opencl", precision="fp16"), Limits())
    np.testing.assert_array_equal(run_opencl(bundle, {"x": x}).outputs["y"], rows[x[:, 0].astype(int)])


def on_gpu(graph: Graph, given: dict[str, Any]) -> dict[str, Any]:
    """Return what OpenCL computes; Vulkan has the same texts (`tests/contract/kernels/test_typed_fuzz.py`)."""
    return run_opencl(compile_graph(graph, Options("opencl"), Limits()), given).outputs


@pytest.mark.parametrize("factor", [2654435761, 300000, 2**40 + 1])
def test_products_are_exact(tmp_path: Path, factor: int) -> None:
    """A hash of places up to 100, beyond what fp32 and what 32 bits hold."""
    nodes = [
        helper.make_node("Clip", ["x", "zero", "most"], ["between"]),
        helper.make_node("Cast", ["between"], ["w"], to=TensorProto.INT64),
        helper.make_node("Mul", ["w", "factor"], ["hash"]),
        helper.make_node("Mod", ["hash", "size"], ["place"]),
        helper.make_node("Cast", ["place"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"zero": np.float32(0), "most": np.float32(100), "size": np.int64(97), "factor": np.int64(factor)}
    path, x = tmp_path / "m.onnx", np.array([3, 17, 55, 99], np.float32)
    graph = load_onnx(save_model(path, nodes, {"x": (4,)}, ["y"], constants))
    wanted = run_onnxruntime(path, {"x": x})["y"]
    assert np.array_equal(evaluate(graph, {"x": x})["y"], wanted)
    assert np.array_equal(on_gpu(graph, {"x": x})["y"], wanted)


SCATTER = {"ScatterElements": np.array([1, 3, 3, -1]), "ScatterND": np.array([[1], [3], [3], [-1]])}


@pytest.mark.parametrize(("op", "inputs", "attributes"), [
    ("Mul", ["w", "w"], {}), ("Add", ["w", "w"], {}), ("Sub", ["c", "w"], {}),
    ("CumSum", ["w", "zero"], {}), ("CumSum", ["w", "zero"], {"reverse": 1}), ("ReduceSum", ["w"], {}),
    ("ReduceProd", ["w"], {}), ("ReduceMean", ["w"], {}), ("MatMul", ["w", "c"], {}),
    ("Pow", ["w", "two"], {}), ("Einsum", ["w", "c"], {"equation": "i,i->i"}),
    ("ScatterElements", ["c", "places", "w"], {"reduction": "add"}),
    ("ScatterND", ["w", "places", "w"], {"reduction": "add"}),
])  # fmt: skip
def test_numbers_beyond_fp32_are_exact(
    tmp_path: Path, op: str, inputs: list[str], attributes: dict[str, Any], seed: int
) -> None:
    """Some terms of a sum may pass 2^24 together, and the others lead back; and 32 bits may wrap around."""
    kind = TensorProto.INT32 if op in ("MatMul", "Einsum", "ReduceProd") else TensorProto.INT64
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    constants = {"c": np.array([1, -1, 1, 3], dtype), "zero": np.int64(0), "two": np.int64(2)}
    constants["places"] = SCATTER.get(op, np.int64(0))
    nodes = [helper.make_node(op, inputs, ["z"], **attributes)]
    used = {name for name in inputs if name != "w"}
    made = helper.make_graph(
        nodes, "m", [helper.make_tensor_value_info("w", kind, (4,))], [helper.make_empty_tensor_value_info("z")],
        [numpy_helper.from_array(np.asarray(constants[name]), name) for name in used],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    graph, rng = load_onnx(path), np.random.default_rng(seed)
    back, many = [2**24 - 1, 2**24 - 2, 3 - 2**24, 1 - 2**24], rng.integers(-(2**30), 2**30, 4)
    for x in (X, [9, -5000, 2**24 - 1, 3], [4097, 4096, -(2**24), -1], [2**24 - 1, 8192, 3, -8193], back, many):
        given = {"w": np.asarray(x).astype(dtype)}
        wanted = evaluate(graph, given)["z"]
        fits = op != "ReduceProd" or np.abs(np.prod(np.float64(x))) < 2**31  # onnxruntime's does not start again
        assert not fits or np.array_equal(wanted, run_onnxruntime(path, given)["z"])
        np.testing.assert_array_equal(on_gpu(graph, given)["z"], wanted)


BYTES_AT_ONCE = {
    "MatMulInteger": ((2, 700), (700, 3)),
    "ConvInteger": ((1, 2 * 90, 3, 3), (4, 90, 3, 3)),
    "QLinearConv": ((1, 90, 3, 3), (2, 90, 3, 3)),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("op", BYTES_AT_ONCE)
def test_products_of_bytes_are_exact_or_rounded_once(tmp_path: Path, op: str, known: bool, seed: int) -> None:
    """Rounded, to fp32, where their sums pass 2^24."""
    rng, (left, right) = np.random.default_rng(seed), BYTES_AT_ONCE[op]
    x, weight = (rng.integers(low, 256, shape).astype(np.uint8) for low, shape in ((100, left), (250, right)))
    ports = {"x": x} if known else {"x": x, "w": weight}
    constants = {"w": weight, "zero": np.uint8(rng.integers(0, 3)), "one": np.float32(1), "scale": np.float32(180000)}
    constants["bias"] = rng.integers(-(2**30), 2**30, right[0]).astype(np.int32)
    quantized = ["x", "one", "zero", "w", "one", "zero", "scale", "zero", "bias"]
    attributes = {"group": 2} if op == "ConvInteger" else {}
    nodes = [
        helper.make_node(op, quantized if op == "QLinearConv" else ["x", "w", "zero", "zero"], ["z"], **attributes),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    made = helper.make_graph(
        nodes, "m", [helper.make_tensor_value_info(name, TensorProto.UINT8, x.shape) for name, x in ports.items()],
        [helper.make_empty_tensor_value_info(name) for name in ("y", "z")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name not in ports],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    wanted = run_onnxruntime(path, ports)
    given = {name: array.astype(np.float32) for name, array in ports.items()}
    graph = load_onnx(path)
    assert all(
        np.array_equal(evaluate(graph, given)[name].astype(array.dtype), array) for name, array in wanted.items()
    )
    found = on_gpu(graph, ports)
    np.testing.assert_array_equal(found["y"], wanted["y"])
    assert op == "QLinearConv" or (wanted["z"].astype(np.int64) >= 2**24).any()
    np.testing.assert_array_equal(found["z"].astype(np.float32), wanted["z"].astype(np.float32))


@pytest.mark.parametrize("op", ["ReduceSum", "CumSum", "ReduceMean"])
def test_rows_that_are_counted_are_added_exactly(tmp_path: Path, op: str, seed: int) -> None:
    """The input decides how many rows there are."""
    make, rng = helper.make_node, np.random.default_rng(seed)
    nodes = [
        make("Greater", ["k", "half"], ["kept"]), make("NonZero", ["kept"], ["found"]),
        make("Squeeze", ["found", "first"], ["at"]), make("Cast", ["x"], ["w"], to=TensorProto.INT64),
        make("Gather", ["w", "at"], ["rows"]), make(op, ["rows", "first" if op != "ReduceMean" else "last"], ["z"]),
        make("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]  # fmt: skip
    constants = {"half": np.float32(0.5), "first": np.array([0]), "last": np.array([-1])}
    constants = {name: value for name, value in constants.items() if any(name in node.input for node in nodes)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (30, 3), "k": (30,)}, ["y"], constants, opset=18)
    x = rng.choice([2**24 - 1, -(2**24) + 1, 8193, -4095], (30, 3)).astype(np.float32)
    given = {"x": x, "k": rng.random(30, np.float32)}
    wanted = run_onnxruntime(path, given)["y"].astype(np.float64)
    graph = load_onnx(path)
    assert np.array_equal(evaluate(graph, given)["y"][: len(wanted)].astype(np.float32), wanted)
    found = on_gpu(replace(graph, outputs=("z",)), given)["z"][: len(wanted)]
    np.testing.assert_array_equal(found, evaluate(replace(graph, outputs=("z",)), given)["z"][: len(wanted)])
