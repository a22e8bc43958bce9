"""A whole model in 8 bits, fused as it would be run, on every backend: what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.examples import Examples
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.reading.model_file import read_model
from kernels.frontend.quantize import Quantizer, activations, ranges
from kernels.options import Limits, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder
from tests.unit.kernels.front.onnx_models import run_onnxruntime
from tests.unit.kernels.front.test_quantized import SHAPE, network

from .onnx_cases import limits_here


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_a_quantized_model_computes_what_onnxruntime_does(tmp_path: Path, seed: int, agent: Agent, api: str) -> None:
    rng = np.random.default_rng(seed)
    single = network(tmp_path / "m.onnx", rng, 13)
    np.save(tmp_path / "x.npy", rng.standard_normal((4, *SHAPE[1:])).astype(np.float32))
    graph = load_onnx(single)
    found = activations(graph, Examples(graph, tmp_path / "x.npy"), range(4))
    Quantizer(read_model(single), ranges(found)).write(tmp_path / "q.onnx")
    x = {"x": np.load(tmp_path / "x.npy")[:1]}
    wanted = run_onnxruntime(tmp_path / "q.onnx", x)["y"]
    bundle = compile_graph(load_onnx(tmp_path / "q.onnx"), Options(api), limits_here(agent.binary, api))  # type: ignore[arg-type]
    ended = agent.run(bundle, x, "--warmup", 0, "--samples", 1)
    assert ended.code == 0
    # a sum that fp32 rounds past a half is a step, which is a hundredth of the output at most
    assert np.abs(ended.output(0).reshape(wanted.shape) - wanted).max() <= 0.01 * np.abs(wanted).max()


def test_rounding_on_the_cpu(agent: Agent) -> None:
    """Every kind of fp32: ties, those with no fraction, both zeros, infinities and NaN."""
    build = Builder()
    halves = np.arange(-9, 10, dtype=np.float32) / 2
    edges = np.float32([2**22 - 0.5, 2**22 + 0.5, 2**23 - 0.5, 2**23 + 1, 2**24, 3e38, np.inf, 1e-40, 0.49999997])
    values = np.concatenate([halves, np.nextafter(halves, np.float32(9)), edges, -edges, np.float32([-0.0, np.nan])])
    graph = build.outputs(build.node("map", [build.input(values.size)], (values.size,), expression=("round", "a")))
    ended = agent.run(compile_graph(graph, Options("cpu"), Limits()), {graph.inputs[0]: values}, "--samples", 1)
    found, wanted = ended.output(0), np.rint(values)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(found[:-1]), np.signbit(wanted[:-1]))
