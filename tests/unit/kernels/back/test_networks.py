"""Whole networks, and that compiling is deterministic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.errors import InputError, OptionError, PlanError
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Limits, Options
from kernels.plan.model import Bundle
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import TOLERANCE, Builder, inputs_of, relative_error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "precision"),
    [("squeezenet_v1_0", "fp32"), ("squeezenet_v1_0", "relaxed"), ("squeezenet_v1_0", "fp16"), ("lenet", "fp32")],
)
def test_network(network: str, precision: str) -> None:
    graph = load_workload(network=network, onnx=None, seed=3)
    inputs = random_inputs(graph, 5)
    bundle = compile_graph(graph, Options("opencl", precision), Limits(cpu_device=True))  # type: ignore[arg-type]
    run = run_opencl(bundle, inputs)
    wanted = evaluate(graph, inputs, dtype=np.float32)
    for name, got in run.outputs.items():
        assert relative_error(got, wanted[name]) <= 5 * TOLERANCE[precision]


@pytest.mark.parametrize("backend", ["opencl", "vulkan", "cpu"])
def test_the_same_input_gives_the_same_plan(backend: str, tmp_path: Path) -> None:
    plans = []
    for turn in range(2):
        graph = load_workload(network="lenet", onnx=None, seed=3)
        bundle = compile_graph(graph, Options(backend), Limits(), spirv_cache=tmp_path / str(turn))  # type: ignore[arg-type]
        plans.append(bundle.plan)
    assert plans[0].plan_hash == plans[1].plan_hash
    other = compile_graph(load_workload(network="lenet", onnx=None, seed=4), Options(backend), Limits())  # type: ignore[arg-type]
    assert other.plan.plan_hash != plans[0].plan_hash


def test_a_bundle_survives_the_disk_and_a_changed_file_does_not(tmp_path: Path) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    compile_graph(graph, Options("opencl"), Limits(cpu_device=True)).write(tmp_path)
    bundle = Bundle.read(tmp_path)
    inputs = random_inputs(graph, 1)
    wanted = evaluate(graph, inputs)
    for name, got in run_opencl(bundle, inputs).outputs.items():
        assert relative_error(got, wanted[name]) <= 1e-5
    (tmp_path / "blob.bin").write_bytes(b"x" + bundle.files["blob.bin"][1:])
    with pytest.raises(PlanError, match=r"blob\.bin: content does not match"):
        Bundle.read(tmp_path)


def test_flops_of_squeezenet() -> None:
    graph = load_workload(network="squeezenet_v1_0", onnx=None, seed=1)
    for backend in ("opencl", "cpu"):
        plan = compile_graph(graph, Options(backend), Limits()).plan  # type: ignore[arg-type]
        assert 1.6e9 < sum(getattr(step, "flops", 0) for step in plan.steps) < 1.8e9


@pytest.mark.parametrize(
    ("options", "limits", "message"),
    [
        (Options("opencl", "fp16"), Limits(precisions=("fp32",)), "no fp16 for opencl; it has: fp32"),
        (Options("cpu", "fp16"), Limits(), "cpu has no fp16"),
        (Options("cpu", on_cpu="products"), Limits(), "on_cpu is an option of opencl and vulkan, not of cpu"),
        (Options("cpu", concat="split"), Limits(), "concat is an option of opencl and vulkan, not of cpu"),
        (Options("opencl", workspace=-1), Limits(), "workspace is a number of bytes from 0 on"),
        (Options("cpu", granularity=8), Limits(), "granularity is an option of"),
        (Options("cpu", algorithm="pointwise"), Limits(), "'pointwise' is not known; this network can use: auto, "),
    ],
)
def test_options_that_do_not_fit(options: Options, limits: Limits, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compile_graph(load_workload(network="lenet", onnx=None, seed=1), options, limits)


def test_inputs_that_do_not_fit() -> None:
    build = Builder()
    graph = build.outputs(build.node("relu", [build.input(1, 4, 2, 2)], (1, 4, 2, 2)))
    bundle = compile_graph(graph, Options("opencl"), Limits())
    with pytest.raises(InputError, match=r"input 'x' of shape .* is missing"):
        run_opencl(bundle, {})
    with pytest.raises(InputError, match=r"has shape \(4,\); the model wants"):
        run_opencl(bundle, {"x": np.zeros(4, np.float32)})
    with pytest.raises(InputError, match=r"'y'.* are not known"):
        run_opencl(bundle, {**inputs_of(graph), "y": np.zeros(1, np.float32)})
    with pytest.raises(PlanError, match="only OpenCL plans run here"):
        run_opencl(compile_graph(graph, Options("cpu"), Limits()), inputs_of(graph))
