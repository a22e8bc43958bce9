"""Quantized models and operators: what onnxruntime computes of models that its own tool quantized."""

from __future__ import annotations

import gc
import logging
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnxruntime import quantization

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.examples import Examples
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.reading.model_file import read_model
from kernels.frontend.quantize import Quantizer, activations, ranges
from kernels.passes import optimise
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime, save_model

SHAPE = (1, 3, 12, 12)
Arrays = dict[str, np.ndarray[Any, Any]]


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, rng: np.random.Generator) -> None:
        self._rest = [{"x": rng.standard_normal(SHAPE).astype(np.float32)} for _ in range(4)]

    def get_next(self) -> Arrays | None:  # type: ignore[override]
        return self._rest.pop() if self._rest else None


def network(path: Path, rng: np.random.Generator, opset: int) -> Path:
    """Convolutions, one of each channel by itself, pooling, a dense layer, a sum of two ways."""

    def normal(*shape: int) -> Any:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c1", "r0"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["y"], transB=1),
    ]
    shapes = {"w0": (8, 3, 3, 3), "b0": (8,), "w1": (8, 1, 3, 3), "w2": (10, 288), "b2": (10,)}
    weights = {name: normal(*shape) for name, shape in shapes.items()}
    return save_model(path, nodes, {"x": SHAPE}, ["y"], weights, opset=opset)


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("kind", [quantization.QuantType.QInt8, quantization.QuantType.QUInt8])
@pytest.mark.parametrize("form", [quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator])
def test_models_that_onnxruntime_quantized(tmp_path: Path, seed: int, form: Any, kind: Any, opset: int) -> None:
    rng = np.random.default_rng(seed)
    single, path = network(tmp_path / "m.onnx", rng, opset), tmp_path / "q.onnx"
    logging.disable(logging.WARNING)  # its advice
    try:
        quantization.quantize_static(
            single, path, Calibration(rng), quant_format=form, activation_type=kind, weight_type=kind,
            per_channel=form == quantization.QuantFormat.QDQ and opset == 21,
            op_types_to_quantize=["Conv", "MaxPool", *(["Gemm"] if form == quantization.QuantFormat.QDQ else [])],
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    graph, x = load_onnx(path), {"x": rng.standard_normal(SHAPE).astype(np.float32)}
    ours, theirs = evaluate(graph, x, dtype=np.float32)["y"], run_onnxruntime(path, x)["y"]
    steps = np.unique(np.diff(np.unique(theirs)))
    # a sum that fp32 rounds past a half may be one step away; nothing is two
    assert np.abs(ours - theirs).max() <= 1.01 * steps.min()
    assert np.mean(np.abs(ours - theirs) > 1e-5) <= 0.2


def test_weights_become_fp32_before_anything_runs(tmp_path: Path, seed: int) -> None:
    """Each filter's are multiplied by its scale; and the layer stays a convolution with its bias and activation."""
    rng = np.random.default_rng(seed)
    whole, scales = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), rng.uniform(0.1, 1, 4).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wf"], axis=0),
        helper.make_node("Conv", ["x", "wf"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": whole, "s": scales, "z": np.zeros(4, np.int8)}
    graph = optimise(load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": SHAPE}, ["y"], constants)))
    assert [node.op for node in graph.nodes] == ["conv"]
    assert np.array_equal(graph.constants[graph.nodes[0].inputs[1]], whole * scales[:, None, None, None])


def test_quantizing_and_back_is_one_operation_of_each_element(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.5), "z": np.int8(3)}
    graph = optimise(load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (6,)}, ["y"], constants)))
    assert [node.op for node in graph.nodes if node.op != "reshape"] == ["map"]
    x = np.array([0.25, 0.75, -0.25, 100, -100, 1], np.float32)
    assert evaluate(graph, {"x": x})["y"].tolist() == [0.0, 1.0, 0.0, 62.0, -65.5, 1.0]


@pytest.mark.parametrize(
    ("scales", "attributes", "words"),
    [
        (np.ones(3, np.float32), {"axis": 1}, "scales of shape .3,. for 6 places along axis 1"),
        (np.ones((4, 2), np.float32), {"axis": 1, "block_size": 2}, "scales of shape .4, 2. for blocks of 2"),
        (np.float32(1), {"output_dtype": 17}, "quantized to FLOAT8E4M3FN; supported: INT8"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, scales: Any, attributes: dict[str, int], words: str) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], **attributes),
        helper.make_node("Cast", ["q"], ["y"], to=1),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (4, 6)}, ["y"], {"s": scales}, opset=21)
    with pytest.raises((ModelError, UnsupportedNode), match=words):
        load_onnx(path)


def test_layers_that_the_farm_quantized_compute_what_they_did(tmp_path: Path, seed: int) -> None:
    """They do by both engines, within a few steps."""
    rng = np.random.default_rng(seed)
    path = network(tmp_path / "m.onnx", rng, 13)
    np.save(tmp_path / "x.npy", rng.standard_normal((6, *SHAPE[1:])).astype(np.float32))
    graph = load_onnx(path)
    examples = Examples(graph, tmp_path / "x.npy")
    quantizer = Quantizer(read_model(path), ranges(activations(graph, examples, range(6))))
    quantizer.write(tmp_path / "q.onnx")
    assert quantizer.layers == ["c0", "c1", "y"]
    x = {"x": np.load(tmp_path / "x.npy")[:1]}
    wanted = run_onnxruntime(path, x)["y"]
    theirs, ours = run_onnxruntime(tmp_path / "q.onnx", x)["y"], evaluate(load_onnx(tmp_path / "q.onnx"), x)["y"]
    largest = np.abs(wanted).max()
    assert np.abs(ours - theirs).max() < 0.01 * largest
    assert 0 < np.abs(ours - wanted).max() < 0.06 * largest


def test_what_the_reference_computed_goes_at_once(tmp_path: Path, seed: int) -> None:
    """Commands search for garbage seldom: cycles kept 185 MB of each example that `farm quantize` computed."""
    rng = np.random.default_rng(seed)
    path = network(tmp_path / "m.onnx", rng, 13)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    known = ranges([evaluate(load_onnx(path), {"x": x}, dtype=np.float32, keep=True)])
    Quantizer(read_model(path), known).write(tmp_path / "q.onnx")
    gc.disable()
    try:
        graph = load_onnx(tmp_path / "q.onnx")
        computed = evaluate(graph, {"x": x}, dtype=np.float32, keep=True)
        kept = [weakref.ref(array) for name, array in computed.items() if name != "x"]
        kept += [weakref.ref(array) for array in graph.constants.values()]
        del graph, computed
        assert len(kept) > 20
        assert not [array().shape for array in kept if array() is not None]  # type: ignore[union-attr]
    finally:
        gc.enable()


def test_what_only_a_branch_reads_is_kept(tmp_path: Path, seed: int) -> None:
    """The model's own numbers are kept and, in the one file, those that the branch stores elsewhere."""
    rng = np.random.default_rng(seed)
    bias, own = (rng.standard_normal(4).astype(np.float32) for _ in range(2))
    (tmp_path / "own.bin").write_bytes(own.tobytes())
    inner = helper.make_graph(
        [helper.make_node("Add", ["a", "bias"], ["sum"]), helper.make_node("Mul", ["sum", "own"], ["done"])],
        "inner", [], [helper.make_empty_tensor_value_info("done")],
    )  # fmt: skip
    inner.initializer.add(
        name="own", dims=[4], data_type=1, data_location=1,
        external_data=[onnx.StringStringEntryProto(key="location", value="own.bin")],
    )  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    constants = {"w": rng.standard_normal((3, 4)).astype(np.float32), "bias": bias, "c": np.array(True)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 3)}, ["y"], constants)
    (tmp_path / "q").mkdir()
    Quantizer(read_model(path), {"x": (-1.0, 1.0)}).write(tmp_path / "q" / "m.onnx")
    x = rng.uniform(-1, 1, (2, 3)).astype(np.float32)
    ours, theirs = (evaluate(load_onnx(each), {"x": x})["y"] for each in (tmp_path / "q" / "m.onnx", path))
    np.testing.assert_allclose(ours, theirs, atol=0.05 * np.abs(theirs).max() + 0.05)
