"""Models with QDQ nodes under precision int8: the model's own whole numbers, near what onnxruntime computes."""

from __future__ import annotations

import logging
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnxruntime import quantization

from kernels.compile import compile_graph
from kernels.frontend.examples import Examples
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.reading.model_file import read_model
from kernels.frontend.quantize import Quantizer, activations, ranges
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.front.onnx_models import run_onnxruntime, save_model
from tests.unit.kernels.front.test_quantized import SHAPE, Calibration, network

LAYERS = {
    "few channels": ((2, 3, 9, 8), (20, 3, 3, 3), {"pads": [1, 1, 0, 2]}),
    "blocks": ((2, 35, 7, 6), (18, 35, 1, 1), {}),
    "groups": ((1, 32, 7, 6), (32, 16, 3, 2), {"group": 2, "strides": [2, 1], "dilations": [1, 2]}),
    "depthwise": ((2, 21, 9, 8), (21, 1, 3, 5), {"group": 21, "strides": [2, 1], "pads": [1, 2, 0, 2]}),
    "filters": ((2, 7, 11, 9), (21, 1, 2, 3), {"group": 7, "dilations": [3, 2], "pads": [0, 3, 2, 0]}),
    "dense": ((3, 50), (17, 50), {"transB": 1}),
}
Array = np.ndarray[Any, Any]


def in_8_bits(agent: Agent, graph: Graph, x: Array, where: str = "avx512f") -> tuple[Array, list[str]]:
    """The output, and the operations that made it. `where`: an API of GPUs, or an instruction set of the CPU."""
    backend: Backend = where if where in ("opencl", "vulkan") else "cpu"  # type: ignore[assignment]
    bundle = compile_graph(graph, Options(backend, "int8"), Limits(cpu_device=backend != "cpu"))
    chosen: dict[str, Any] = {"POCKETFARM_CPU_ISA": where} if backend == "cpu" else {}
    ended = agent.run(bundle, {"x": x}, *(["--threads", 2] if backend == "cpu" else []), **chosen)
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    kernels = [program.kernel for program in bundle.plan.programs]
    return ended.output(0).reshape(graph.shapes[graph.outputs[0]]), [
        "map" if kernel.startswith("map_") else kernel for kernel in kernels
    ]


@pytest.mark.parametrize(
    ("where", "kind"),
    [*product(["generic", "avx2", "avx512f"], [np.uint8, np.int8]), ("opencl", np.int8), ("vulkan", np.uint8)],
)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_computed_in_the_models_own_numbers(
    agent: Agent, tmp_path: Path, seed: int, layer: str, kind: Any, where: str
) -> None:
    """Sums are right to the last unit; inputs saturate, weights fill a part of their range, zero lies anywhere."""
    shape, weight_shape, attributes = LAYERS[layer]
    rng, least = np.random.default_rng([seed, 108]), np.iinfo(kind).min
    zero, step = kind(rng.integers(256) + least), np.float32(rng.uniform(0.005, 0.02))
    most = rng.integers(1, 129, (weight_shape[0], *[1] * (len(weight_shape) - 1)))
    whole = np.clip(rng.integers(-most, most + 1, weight_shape), -128, 127).astype(np.int8)
    steps = rng.uniform(1e-3, 1e-2, weight_shape[0]).astype(np.float32)
    bias = rng.standard_normal(weight_shape[0]).astype(np.float32)
    op = "Gemm" if layer == "dense" else "Conv"
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node(op, ["d", "wd", "b"], ["y"], **attributes),
    ]
    constants = {"s": step, "z": zero, "w": whole, "ws": steps, "wz": np.zeros(len(steps), np.int8), "b": bias}
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": shape}, ["y"], constants))
    x = rng.standard_normal(shape).astype(np.float32)
    found, operations = in_8_bits(agent, graph, x, where)
    own = {"conv2d_int8", "depthwise_int8", "dense_int8", "int8_product", "int8_depthwise"}
    assert own & {*operations}
    assert "map" not in operations

    given = np.clip(np.rint(x / step) + np.float32(zero), least, least + 255) - float(zero)
    plain = save_model(tmp_path / "p.onnx", [helper.make_node(op, ["x", "w"], ["y"], **attributes)], {"x": shape},
                       ["y"], {"w": whole.astype(np.float32)})  # fmt: skip
    sums = evaluate(load_onnx(plain), {"x": given})["y"]
    by = (step * steps.astype(np.float64)).reshape(-1, *[1] * (len(shape) - 2))
    wide = found.astype(np.float64) - bias.reshape(by.shape)
    assert np.array_equal(np.rint(wide / by), sums)
    largest = np.abs(sums * by).max() + np.abs(bias).max()
    assert np.abs(wide - sums * by).max() <= 3e-7 * largest


@pytest.mark.parametrize("kind", [quantization.QuantType.QInt8, quantization.QuantType.QUInt8])
@pytest.mark.parametrize("by_channel", [False, True])
def test_a_network_that_onnxruntime_quantized(
    agent: Agent, tmp_path: Path, seed: int, kind: Any, by_channel: bool
) -> None:
    rng = np.random.default_rng([seed, 109])
    single, path = network(tmp_path / "m.onnx", rng, 21), tmp_path / "q.onnx"
    logging.disable(logging.WARNING)  # its advice
    try:
        quantization.quantize_static(
            single, path, Calibration(rng), quant_format=quantization.QuantFormat.QDQ, activation_type=kind,
            weight_type=quantization.QuantType.QInt8, per_channel=by_channel,
            op_types_to_quantize=["Conv", "MaxPool", "Gemm"],
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    ours, operations = in_8_bits(agent, load_onnx(path), x)
    assert {"conv2d_int8", "dense_int8"} <= {*operations}
    theirs = run_onnxruntime(path, {"x": x})["y"]
    step = np.diff(np.unique(theirs)).min()
    # a sum that fp32 rounds past a half may be one step away; nothing is two
    assert np.abs(ours - theirs).max() <= 1.01 * step
    assert np.mean(np.abs(ours - theirs) > 1e-5) <= 0.2


def test_of_two_equal_pairs_one_is_left(agent: Agent, tmp_path: Path, seed: int) -> None:
    """The second lies behind a pooling and a concat; a pair of other steps stays. onnxruntime computes the same."""
    rng = np.random.default_rng([seed, 111])
    nodes, constants = (
        [],
        {"s0": np.float32(0.02), "s1": np.float32(0.0501), "s2": np.float32(0.1101), "z": np.uint8(120)},
    )

    def pair(source: str, scale: str, to: str) -> None:
        nodes.append(helper.make_node("QuantizeLinear", [source, scale, "z"], [f"{to}.q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{to}.q", scale, "z"], [to]))

    pair("x", "s0", "x0")
    nodes.append(helper.make_node("Conv", ["x0", "w0"], ["c"]))
    for scale in ("s1", "s2"):
        pair("c", scale, f"c.{scale}")
        nodes.append(helper.make_node("MaxPool", [f"c.{scale}"], [f"p.{scale}"], kernel_shape=[3, 3], pads=[1] * 4))
    nodes.append(helper.make_node("Concat", ["p.s1", "p.s2"], ["j"], axis=1))
    pair("j", "s1", "k")
    nodes.append(helper.make_node("Conv", ["k", "w1"], ["y"]))
    constants["w0"] = (rng.standard_normal((16, 3, 3, 3)) / 4).astype(np.float32)
    constants["w1"] = (rng.standard_normal((16, 32, 1, 1)) / 4).astype(np.float32)
    for name in ("w0", "w1"):
        constants[name] = np.rint(constants[name] * 100).astype(np.float32) / np.float32(100)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": SHAPE}, ["y"], constants)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    ours, _ = in_8_bits(agent, load_onnx(path), x)
    bundle = compile_graph(load_onnx(path), Options("cpu", "int8"), Limits())
    assert sum(getattr(step, "program", "") == "map" for step in bundle.plan.steps) == 1
    theirs = run_onnxruntime(path, {"x": x})["y"]
    # sums are multiples of 2e-4, and halves of steps lie 5e-5 beside these: how a sum is rounded changes no step
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_a_network_that_the_farm_quantized(agent: Agent, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, 110])
    path = network(tmp_path / "m.onnx", rng, 13)
    np.save(tmp_path / "x.npy", rng.standard_normal((6, *SHAPE[1:])).astype(np.float32))
    graph = load_onnx(path)
    found = activations(graph, Examples(graph, tmp_path / "x.npy"), range(6))
    Quantizer(read_model(path), ranges(found)).write(tmp_path / "q.onnx")
    x = np.load(tmp_path / "x.npy")[:1]
    ours, operations = in_8_bits(agent, load_onnx(tmp_path / "q.onnx"), x)
    assert {"conv2d_int8", "dense_int8"} <= {*operations}
    theirs = run_onnxruntime(tmp_path / "q.onnx", {"x": x})["y"]
    assert np.abs(ours - theirs).max() < 0.01 * np.abs(theirs).max()
