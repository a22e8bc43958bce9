"""The import's demands on operands, against two judges: ONNX's strict shape inference, and onnxruntime.

A node of each operator is spoilt at random: an operand gets another rank, extent, type or other numbers. What either
judge refuses, the import refuses with a ModelError that names the node; what it takes, means what onnxruntime computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import OPERATORS, load_onnx
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.importing import Importer
from kernels.frontend.onnx.operator import Operators
from kernels.ir.types import of_numpy
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

Arrays = dict[str, np.ndarray[Any, Any]]
Direct = Callable[[OnnxNode, Context], bool]
SPOILT = int(os.environ.get("POCKETFARM_TEST_SPOILT", 12))
"""The number of times that each case is spoilt in a run."""
OPSET = 17


@dataclass(eq=False)
class Case:
    """One node `the_node`: x is an activation, the constants follow it."""

    op: str
    shape: tuple[int, ...] = (2, 4, 5, 6)
    constants: Arrays = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(np.float32)


def whole(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


WINDOW = {"kernel_shape": [3, 2], "strides": [2, 1]}
CASES = (
    *(Case(op) for op in ("Relu", "Sigmoid", "LeakyRelu", "Identity", "GlobalAveragePool", "Flatten", "Softmax")),
    *(Case(op) for op in ("HardSigmoid", "HardSwish")),
    *(Case(op, constants={"c": floats(1, 4, 1, 1)}) for op in ("Add", "Mul", "Sub", "Div")),
    Case("Add", (2, 3, 4), {"c": floats(3, 4)}),
    Case("Conv", constants={"w": floats(6, 2, 3, 3), "b": floats(6)}, attributes={"group": 2}),
    Case("Conv", (1, 64, 8, 8), {"w": floats(64, 64, 1, 1), "b": floats(64)}),
    Case("Conv", constants={"w": floats(4, 1, 3, 3), "b": floats(4)}, attributes={"group": 4}),
    *(Case("BatchNormalization", s, {n: floats(4) for n in "abcd"}) for s in ((2, 4), (2, 4, 5), (2, 4, 1, 3, 2))),
    Case("InstanceNormalization", constants={"s": floats(4), "b": floats(4)}),
    Case("Gemm", (3, 5), {"b": floats(5, 4), "c": floats(4)}),
    Case("Gemm", (5, 3), {"b": floats(4, 5), "c": floats(3, 1)}, {"transA": 1, "transB": 1, "alpha": 0.5}),
    Case("MatMul", (2, 3, 5), {"b": floats(5, 4)}),
    Case("MaxPool", attributes=WINDOW),
    Case("AveragePool", attributes={**WINDOW, "ceil_mode": 1}),
    Case("LRN", attributes={"size": 3}),
    Case("Clip", constants={"low": np.float32(-0.5), "high": np.float32(0.5)}),  # type: ignore[dict-item]
    Case("Dropout", constants={"r": np.float32(0.5), "t": np.bool_(False)}),  # type: ignore[dict-item]
    Case("Reshape", constants={"s": whole(2, -1, 6)}),
    Case("Transpose", attributes={"perm": [0, 3, 1, 2]}),
    Case("Squeeze", (2, 1, 5, 1), {"a": whole(1, 3)}),
    Case("Unsqueeze", (2, 5), {"a": whole(0, 2)}),
    Case("Slice", constants={"s": whole(0, 1), "e": whole(3, 9), "a": whole(1, -1), "k": whole(1, 1)}),
    Case("Gather", constants={"i": whole(1, 2)}, attributes={"axis": 1}),
    Case("Gather", constants={"i": np.array(2)}, attributes={"axis": 3}),
    Case("Split", constants={"s": whole(1, 3)}, attributes={"axis": 1}, outputs=("y", "z")),
    Case("Pad", constants={"p": whole(0, 0, 1, 0, 0, 0, 2, 1), "v": np.float32(0.5)}),  # type: ignore[dict-item]
    Case("Resize", constants={"r": floats(0), "s": np.array([1, 1, 2, 2], np.float32)}, attributes={"mode": "linear"}),
    Case("ReduceMean", attributes={"axes": [2, 3]}),
    Case("Cast", attributes={"to": 1}),
    Case("CastLike", constants={"l": floats(3)}),
    Case("Concat", attributes={"axis": 1}),
)


def another(array: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The constant with another shape, type or content."""
    shape, kind = list(array.shape), rng.integers(5)
    if kind == 0 and shape:
        shape[rng.integers(len(shape))] = int(rng.choice([1, 2, 3, 5, 8]))
    elif kind == 1 and shape:
        shape.pop(rng.integers(len(shape)))
    elif kind == 2:
        shape.insert(int(rng.integers(len(shape) + 1)), int(rng.choice([1, 1, 2])))
    elif kind == 3:
        others = [t for t in (np.float32, np.float64, np.int32, np.int64) if t != array.dtype]
        return array.astype(others[rng.integers(len(others))])
    elif np.issubdtype(array.dtype, np.integer):
        return np.asarray(rng.integers(-5, 8, array.shape), array.dtype)
    return np.resize(array, shape) if array.size else np.ones(shape, array.dtype)


def spoilt(case: Case, rng: np.random.Generator) -> Case:
    names = list(case.constants)
    index = int(rng.integers(-1, len(names)))
    if index >= 0:
        constants = {**case.constants, names[index]: another(np.asarray(case.constants[names[index]]), rng)}
        return replace(case, constants=constants)
    shape = list(case.shape)
    match rng.integers(3):
        case 0:
            shape[rng.integers(len(shape))] = int(rng.choice([1, 2, 3, 5, 8]))
        case 1 if len(shape) > 1:
            shape.pop(rng.integers(len(shape)))
        case _:
            shape.insert(int(rng.integers(len(shape) + 1)), 2)
    return replace(case, shape=tuple(shape))


def write(case: Case, path: Path) -> onnx.ModelProto:
    node = helper.make_node(case.op, ["x", *case.constants], list(case.outputs), name="the_node", **case.attributes)
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, case.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in case.outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in case.constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return model


def judged(case: Case, model: onnx.ModelProto, path: Path, x: np.ndarray[Any, Any]) -> Arrays | str:
    """onnxruntime's outputs, or why a judge refuses the model."""
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        return run_onnxruntime(path, {"x": x})
    except Exception as e:
        return f"{type(e).__name__}: {e}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op}{len(case.shape)}")
def test_what_a_judge_refuses_is_refused(tmp_path: Path, seed: int, case: Case) -> None:
    rng = np.random.default_rng([seed, CASES.index(case)])
    path, taken = tmp_path / "m.onnx", 0
    for one in (case, *(spoilt(case, rng) for _ in range(SPOILT))):
        model = write(one, path)
        x = rng.standard_normal(one.shape).astype(np.float32)
        wanted = judged(one, model, path, x)
        try:
            graph = load_onnx(path)
        except ModelError as e:
            assert "the_node" in str(e), f"{one}: {e}"
            assert one is not case, f"{one}: {e}"
            continue
        assert not isinstance(wanted, str), f"{one} is taken, but: {wanted}"
        taken += 1
        for name, got in evaluate(graph, {"x": x}).items():
            assert got.shape == wanted[name].shape, one
            largest = max(1.0, float(np.abs(wanted[name]).max(initial=0.0)))  # of a long sum that comes to nothing
            np.testing.assert_allclose(got, wanted[name], rtol=1e-4, atol=1e-5 * largest, err_msg=str(one))
    assert taken, case


ENTRIES = [entry for name in sorted(OPERATORS.names()) if (entry := OPERATORS.find(name)) is not None]


def test_every_operator_with_kernels_of_its_own_is_tried() -> None:
    untried = {entry.name for entry in ENTRIES if entry.direct} - {case.op for case in CASES} - {"Upsample"}
    assert not untried, f"add a Case of them to CASES above: {untried}"


def test_a_form_that_does_not_take_a_node_has_emitted_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the node: nothing is undone before the general form has it."""
    said: list[bool] = []

    def watched(direct: Direct) -> Direct:
        def form(node: OnnxNode, to: Context) -> bool:
            before = [*to.nodes], dict(to.shapes), {*to.weights}, {*to.constants}
            takes = direct(node, to)
            assert takes or before == ([*to.nodes], to.shapes, {*to.weights}, {*to.constants}), node
            said.append(takes)
            return takes

        return form

    entries = [replace(entry, direct=watched(entry.direct)) if entry.direct else entry for entry in ENTRIES]
    monkeypatch.setattr("kernels.frontend.onnx.import_node", Importer(Operators(entries)))
    rng = np.random.default_rng(seed)
    for case in CASES:
        for one in (case, *(spoilt(case, rng) for _ in range(SPOILT))):
            write(one, tmp_path / "m.onnx")
            with suppress(ModelError):
                load_onnx(tmp_path / "m.onnx")
    assert set(said) == {True, False}


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_models_in_halves_and_doubles_are_computed_in_single_precision(tmp_path: Path, kind: int) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    rng = np.random.default_rng(4)
    w, b, x = (rng.standard_normal(shape).astype(dtype) for shape in ((5, 3), (3,), (2, 5)))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Softplus", ["q"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape in (("x", (2, 5)), ("y", (2, 3)))]
    stored = [numpy_helper.from_array(array, name) for name, array in (("w", w), ("b", b))]
    graph = helper.make_graph(nodes, "m", ports[:1], ports[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    found = load_onnx(tmp_path / "m.onnx")
    assert {found.types[name] for name in "xy"} == {of_numpy(helper.tensor_dtype_to_np_dtype(kind))}
    wide = x.astype(np.float64) @ w.astype(np.float64) + b.astype(np.float64)
    assert np.allclose(evaluate(found, {"x": x.astype(np.float32)})["y"], np.logaddexp(0, wide), rtol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_casts_to_halves_are_rounded(tmp_path: Path, kind: int, seed: int) -> None:
    """Casts of an activation, of a constant, and by the example of a tensor."""
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=kind),
        helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
        helper.make_node("CastLike", ["x", "narrow"], ["like"]),
        helper.make_node("Cast", ["like"], ["z"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["c"], ["stored"], to=kind),
        helper.make_node("Cast", ["stored"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "wide"], ["s"]),
    ]
    x = np.random.default_rng(seed).standard_normal(64).astype(np.float32)
    x[:6] = [65519, 65520, -1e6, 1e-7, 1 + 2.0**-11, 1 + 2.0**-8 + 2.0**-9]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (64,)}, ["y", "z", "s"], {"c": x * np.float32(1.2345)})
    found, wanted = evaluate(load_onnx(path), {"x": x}, dtype=np.float32), run_onnxruntime(path, {"x": x})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
def test_casts_to_quarters_are_refused(tmp_path: Path, kind: int) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["n"], to=kind), helper.make_node("Cast", ["n"], ["y"], to=1)]
    with pytest.raises(UnsupportedNode, match="are not supported: cast to a wider type"):
        load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (3,)}, ["y"], opset=21))


def test_nan_may_be_chosen(tmp_path: Path) -> None:
    """A stored NaN is no damage where a condition picks it."""
    nodes = [
        helper.make_node("Less", ["x", "zero"], ["below"]),
        helper.make_node("Where", ["below", "nan", "x"], ["y"]),
        helper.make_node("Where", ["below", "x", "some"], ["z"]),
    ]
    stored = {"zero": np.float32(0), "nan": np.float32(np.nan), "some": np.float32([1, np.nan, 3, np.inf])}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (4,)}, ["y", "z"], stored)
    assert_agrees(path, {"x": np.float32([1, 2, -3, 4])})
