"""Nodes written out in standard ones: onnxruntime's own operators, unique elements, rows by a computed condition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.packed import PackedMatrix
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime, save_model

DOMAIN = "com.microsoft"
Q = [helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}q"]) for name in ("x", "y")]
D = helper.make_node("DequantizeLinear", ["q", "t", "u"], ["out"])


def own(op: str, inputs: str, outputs: str = "out", **attributes: Any) -> onnx.NodeProto:
    given, made = ([name.strip("-") for name in names.split()] for names in (inputs, outputs))
    return helper.make_node(op, given, made, domain=DOMAIN, **attributes)


PAIR, ONE = "xq s z yq s z t u", "xq s z t u"
CASES: dict[str, list[onnx.NodeProto]] = {
    "QLinearAdd": [*Q, own("QLinearAdd", PAIR, "q"), D],
    "QLinearMul": [*Q, own("QLinearMul", PAIR, "q"), D],
    "QLinearSigmoid": [*Q, own("QLinearSigmoid", ONE, "q"), D],
    "QLinearLeakyRelu": [*Q, own("QLinearLeakyRelu", ONE, "q", alpha=0.2), D],
    "QLinearGlobalAveragePool": [*Q, own("QLinearGlobalAveragePool", ONE, "q"), D],
    "QLinearAveragePool": [*Q, own("QLinearAveragePool", ONE, "q", kernel_shape=[2, 2], strides=[1, 2]), D],
    "QLinearConcat": [*Q, own("QLinearConcat", "t u xq s z yq s z", "q", axis=1), D],
    "QGemm": [*Q, helper.make_node("Reshape", ["xq", "two"], ["a"]),
              own("QGemm", "a s z wq ws wz c t u", "q", transB=1), D],
    "QuantizeLinear": [own("QuantizeLinear", "x s16 z16", "q"), own("DequantizeLinear", "q s16 z16")],
    "MatMulIntegerToFloat": [*Q, own("MatMulIntegerToFloat", "xq m s ws z - b6")],
    "BiasGelu": [own("BiasGelu", "x b6")],
    "FastGelu": [own("FastGelu", "x b6")],
    "QuickGelu": [own("QuickGelu", "x", alpha=1.5)],
    "FusedMatMul": [own("FusedMatMul", "x y", alpha=0.25, transB=1)],
    "FusedConv": [own("FusedConv", "x w b2", kernel_shape=[3, 3], pads=[1, 1, 1, 1], activation="LeakyRelu",
                      activation_params=[0.3])],
    "FusedGemm": [helper.make_node("Reshape", ["x", "two"], ["a"]),
                  own("FusedGemm", "a g", transB=1, alpha=0.5, activation="Relu")],
    "SkipLayerNormalization": [own("SkipLayerNormalization", "x3 y3 b6 b6 b6", "out - - sum", epsilon=1e-5)],
    "Attention": [helper.make_node("Cast", ["seen"], ["mask"], to=TensorProto.INT32),
                  own("Attention", "x3 wide b18 mask", num_heads=3)],
    "causal": [own("Attention", "x3 wide b18", num_heads=2, unidirectional=1)],
    "EmbedLayerNormalization": [
        helper.make_node("Cast", ["seen"], ["ids"], to=TensorProto.INT32),
        own("EmbedLayerNormalization", "ids ids table table table b6 b6 ids", "e many sum", epsilon=1e-5),
        own("Attention", "e wide b18 many", num_heads=3)],
    "DynamicQuantizeMatMul": [own("DynamicQuantizeMatMul", "x m ws - b6")],
    "DynamicQuantizeLinear": [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
                              helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["out"])],
    "SimplifiedLayerNormalization": [helper.make_node("SimplifiedLayerNormalization", ["x3", "b6"], ["out"], axis=-1)],
    "SkipSimplifiedLayerNormalization": [own("SkipSimplifiedLayerNormalization", "x3 y3 b6 b6")],
}  # fmt: skip


def constants(rng: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    return {
        "s": np.float32(0.02), "z": np.uint8(120), "t": np.float32(0.03), "u": np.uint8(100), "two": np.array([2, -1]),
        "s16": np.float32(0.001), "z16": np.uint16(30000), "wq": rng.integers(-99, 99, (4, 30)).astype(np.int8),
        "ws": np.float32(0.01), "wz": np.int8(0), "c": rng.integers(-999, 999, 4).astype(np.int32),
        "m": rng.integers(-99, 99, (6, 6)).astype(np.int8), "b6": rng.standard_normal(6).astype(np.float32),
        "w": rng.standard_normal((2, 2, 3, 3)).astype(np.float32), "b2": rng.standard_normal(2).astype(np.float32),
        "g": rng.standard_normal((4, 30)).astype(np.float32), "table": rng.standard_normal((9, 6)).astype(np.float32),
        "wide": rng.standard_normal((6, 18)).astype(np.float32), "b18": rng.standard_normal(18).astype(np.float32),
    }  # fmt: skip


def with_domain(path: Path) -> Path:
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    onnx.save(model, path)
    return path


def agrees(path: Path, inputs: Mapping[str, Any], step: float = 0.0, tolerance: float = 1e-5) -> None:
    """Each output is within rounding, or within a step of what it is rounded to, of onnxruntime's.

    Its sums cancel, so that errors follow the largest number, not each one: of 100 seeds the worst was 2.4e-6 of it.
    """
    wanted, found = run_onnxruntime(path, inputs), evaluate(load_onnx(path), inputs)
    for name, values in wanted.items():
        got = found[name]
        if f"{name}.count" in found:
            got = got[: int(found[f"{name}.count"].item())]
        assert got.shape == values.shape
        largest = max(1.0, float(np.abs(values.astype(np.float64)).max(initial=0)))
        np.testing.assert_allclose(got, values, rtol=0, atol=tolerance * largest + 1.01 * step)


@pytest.mark.parametrize("case", CASES)
def test_operators_of_onnxruntime_are_what_it_computes(tmp_path: Path, seed: int, case: str) -> None:
    """Half of a step may be rounded either way."""
    rng, nodes = np.random.default_rng(seed), CASES[case]
    given = {name: rng.standard_normal((1, 2, 5, 6)).astype(np.float32) for name in ("x", "y")}
    given |= {f"{name}3": value.reshape(2, 5, 6) for name, value in given.items()}
    given["seen"] = np.array([[1, 1, 0, 1, 1], [1, 0, 0, 1, 0]], np.float32)
    used = {name for node in nodes for name in node.input}
    stored = {name: value for name, value in constants(rng).items() if name in used}
    shapes = {name: value.shape for name, value in given.items() if name in used}
    outputs = [name for name in nodes[-1].output if name]
    path = with_domain(save_model(tmp_path / "m.onnx", nodes, shapes, outputs, stored))
    rounded = nodes[-1] is D or case == "DynamicQuantizeLinear"
    agrees(path, {name: given[name] for name in shapes}, step=0.03 if rounded else 0.0)
    if case.startswith("Dynamic"):
        agrees(path, {name: np.zeros_like(given[name]) for name in shapes})


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits(tmp_path: Path, seed: int, bits: int, zeros: bool) -> None:
    """The last block may not be full. They are packed in the graph, and are what onnxruntime makes of them."""
    rng = np.random.default_rng(seed)
    block, outputs = 1 << int(rng.integers(4, 9)), int(rng.integers(1, 40))
    inputs = int(rng.integers(1, 3 * block))
    blocks = -(-inputs // block)
    stored = {"w": rng.integers(0, 256, (outputs, blocks, block * bits // 8)).astype(np.uint8)}
    stored |= {"s": rng.random(outputs * blocks).astype(np.float32) / inputs}
    stored |= {"z": rng.integers(0, 256, outputs * -(-blocks * bits // 8)).astype(np.uint8)} if zeros else {}
    kind = {"K": inputs, "N": outputs, "bits": bits, "block_size": block}
    node = own("MatMulNBits", f"x w s {'z' if zeros else ''}", **kind)
    path = with_domain(save_model(tmp_path / "m.onnx", [node], {"x": (3, inputs)}, ["out"], stored))
    agrees(path, {"x": rng.standard_normal((3, inputs)).astype(np.float32)})
    assert [each.shape for each in load_onnx(path).constants.values() if isinstance(each, PackedMatrix)]


@pytest.mark.parametrize("columns", [False, True])
def test_a_dynamically_quantised_lstm(tmp_path: Path, seed: int, columns: bool) -> None:
    """Scales of each direction, or of each column; a first state of nothing but zeros has a scale, too."""
    rng, (steps, batch, width, size) = np.random.default_rng(seed), (4, 2, 5, 3)
    scales = (2, 4 * size) if columns else (2,)
    sizes = {"w": (2, width, 4 * size), "r": (2, size, 4 * size)}
    stored = {name: rng.integers(-99, 99, shape).astype(np.int8) for name, shape in sizes.items()}
    stored |= {"z": np.zeros(scales, np.int8), "b": rng.random((2, 8 * size), np.float32)}
    stored |= {name: (0.01 + 0.01 * rng.random(scales)).astype(np.float32) for name in ("ws", "rs")}
    outputs = "y last cells"
    node = own("DynamicQuantizeLSTM", "x w r b - - - - ws z rs z", outputs, hidden_size=size, direction="bidirectional")
    path = with_domain(save_model(tmp_path / "m.onnx", [node], {"x": (steps, batch, width)}, outputs.split(), stored))
    agrees(path, {"x": rng.standard_normal((steps, batch, width)).astype(np.float32)}, step=0.01)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (40,)])
def test_unique_elements_are_those_of_onnxruntime(tmp_path: Path, seed: int, shape: tuple[int, ...]) -> None:
    """They come with where each was first, which each one is, and how often."""
    names = ("first", "which", "often")
    nodes = [helper.make_node("Unique", ["x"], ["y", *names])]
    nodes += [helper.make_node("Cast", [name], [f"{name}.f"], to=TensorProto.FLOAT) for name in names]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": shape}, ["y", *(f"{name}.f" for name in names)])
    agrees(path, {"x": np.random.default_rng(seed).integers(0, 6, shape).astype(np.float32)})


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_rows_are_kept_by_a_computed_condition(tmp_path: Path, seed: int, axis: int | None) -> None:
    """The condition may be shorter than the axis."""
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Cast", ["c"], ["kept"], to=TensorProto.BOOL),
        helper.make_node("Compress", ["x", "kept"], ["z"], **({} if axis is None else {"axis": axis})),
        helper.make_node("Transpose", ["z"], ["y"], perm=[1, 0])
        if axis == 1
        else helper.make_node("Neg", ["z"], ["y"]),
    ]
    condition = (rng.random(3) < 0.6).astype(np.float32)
    condition[1] = 1
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (4, 5), "c": (3,)}, ["y"])
    agrees(path, {"x": rng.standard_normal((4, 5)).astype(np.float32), "c": condition})


def test_what_an_optimiser_wrote_for_one_machine_is_told(tmp_path: Path) -> None:
    node = own("ReorderInput", "x")
    path = with_domain(save_model(tmp_path / "m.onnx", [node], {"x": (1, 2, 3, 3)}, ["out"]))
    with pytest.raises(UnsupportedNode, match=r"ReorderInput.*bring the model as it was"):
        load_onnx(path)


@pytest.mark.parametrize("op", ["Relu", "ReduceMax"])
def test_functions_of_another_opset(tmp_path: Path, op: str, seed: int) -> None:
    """Written out where each operator means the same in the model's opset; `ReduceMax` of 17 does not."""
    sets = [[helper.make_opsetid("", opset), helper.make_opsetid("own", 1)] for opset in (17, 20)]
    body = [helper.make_node(op, ["a"], ["r"]), helper.make_node("Sub", ["r", "a"], ["b"])]
    function = helper.make_function("own", "F", ["a"], ["b"], body, sets[0])
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="own")], "m", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=sets[1], functions=[function], ir_version=9)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)
    if op == "ReduceMax":
        with pytest.raises(ModelError, match="its functions cannot be written out"):
            load_onnx(path)
        return
    np.testing.assert_array_equal(evaluate(load_onnx(path), {"x": x})["y"], run_onnxruntime(path, {"x": x})["y"])
