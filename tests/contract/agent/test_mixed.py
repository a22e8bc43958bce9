"""Plans on two APIs: segments in order, transfers between them, and frames on both at the same time."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Bundle, Copy, Transfer
from kernels.plan.sides import TRANSFER, segments
from kernels.reference import evaluate
from tests.unit.kernels.back.graphs import Builder

from .driver import Agent
from .plans import Array

FRAMES = 5
GPUS: tuple[Backend, ...] = ("opencl", "vulkan")


def inputs_of(graph: Graph, seed: int, *frames: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((*frames, *graph.shapes[name]), dtype=np.float32) for name in graph.inputs}


def close(found: Array, graph: Graph, x: dict[str, Array], output: str = "") -> None:
    wanted = evaluate(graph, x)[output or graph.outputs[0]]
    assert np.linalg.norm(found.reshape(wanted.shape) - wanted) <= 1e-5 * np.linalg.norm(wanted)


@cache
def branching() -> Graph:
    """The input goes into both sides, a tensor skips a segment, and an output is read on: all that transfers may be."""
    build = Builder(np.random.default_rng(1))
    x = build.input(1, 8, 12, 12)
    first = build.conv(x, 8, (3, 3), pads=(1, 1, 1, 1), activation=("relu",))
    pooled = build.node("max_pool", [x], (1, 8, 12, 12), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    both = build.node("add", [first, pooled], (1, 8, 12, 12))
    second = build.conv(both, 6, (1, 1))
    small = build.node("max_pool", [second], (1, 6, 12, 12), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    joined = build.node("concat", [small, both, first], (1, 22, 12, 12), axis=1)
    return build.outputs(build.conv(joined, 4, (3, 3), pads=(1, 1, 1, 1)), second)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("words", ["products", "after pool1", "until conv1"])
def test_lenet_in_two_parts(agent: Agent, gpu: Backend, words: str, seed: int) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=seed)
    bundle = compile_graph(graph, Options(gpu, on_cpu=words), Limits())
    sides = [api for api, _ in segments(bundle.plan)]
    assert sides == (["cpu", TRANSFER, gpu] if words.startswith("until") else [gpu, TRANSFER, "cpu"])
    x = inputs_of(graph, seed)
    run = agent.run(bundle, x, "--warmup", 1, "--samples", 2, "--layer-passes", 1)
    assert run.code == 0, run.events[-1]
    close(run.output(), graph, x)
    device = run.one("device")
    assert (device.facts.api, device.plan) == (gpu, bundle.plan.plan_hash)
    assert device.threads > 0
    layers = run.all("layer")
    assert [event.index for event in layers] == list(range(len(bundle.plan.steps)))
    assert all(event.duration_ns > 0 for event in layers)
    (moved,) = [event for event in layers if event.program == TRANSFER]
    assert isinstance(bundle.plan.steps[moved.index], Transfer)
    assert run.one("memory").device_bytes == sum(pool.bytes for pool in bundle.plan.pools)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("pipeline", ["none", "across"])
def test_branches_on_both_sides(agent: Agent, gpu: Backend, pipeline: str, seed: int) -> None:
    """Every frame of a stream has its own result, in a pipeline too, where several are under way."""
    graph = branching()
    bundle = compile_graph(graph, Options(gpu, on_cpu="pooling"), Limits())
    assert len({api for api, _ in segments(bundle.plan)} - {TRANSFER}) == 2
    x = inputs_of(graph, seed, FRAMES)
    options = ("--warmup", 1, "--samples", 2, "--inferences", 3 * FRAMES, "--pipeline", pipeline, "--layer-passes", 1)
    run = agent.run(bundle, x, *options)
    assert run.code == 0, run.events[-1]
    for number, name in enumerate(graph.outputs):
        found = run.output(number).reshape(FRAMES, -1)
        for frame in range(FRAMES):
            close(found[frame], graph, {key: value[frame] for key, value in x.items()}, name)
    assert (pipeline == "across") == any("segments on two" in event.detail for event in run.all("setup"))


@cache
def convolutions() -> Graph:
    """Layers that im2col may divide, or not: strides, pads and dilations apart by axis, 1x1, groups, activation."""
    build = Builder(np.random.default_rng(2))
    x = build.input(2, 3, 13, 11)
    x = build.conv(x, 6, (3, 2), strides=(2, 1), pads=(1, 0, 2, 1), activation=("relu",))
    x = build.conv(x, 8, (1, 1))
    x = build.conv(x, 8, (3, 3), pads=(1, 1, 1, 1), groups=4)
    return build.outputs(build.conv(x, 5, (2, 3), dilations=(2, 1), pads=(0, 1, 0, 1)))


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("words", "first"), [("gemm", False), ("im2col", True)])
def test_a_convolution_on_two_sides(agent: Agent, gpu: Backend, words: str, first: bool) -> None:
    """Its windows on one, their product on the other; frames one after the other, and in a pipeline."""
    graph = convolutions()
    bundle = compile_graph(graph, Options(gpu, algorithm="im2col", on_cpu=words), Limits())
    sides = [api for api, _ in segments(bundle.plan) if api != TRANSFER]
    assert sides == (["cpu", gpu] * 2 if first else [gpu, "cpu"] * 2)
    kernels = {program.kernel: program.api for program in bundle.plan.programs}
    assert (("im2col" if first else "conv2d_im2col") in kernels) and (("windows" in kernels) != first)
    x = inputs_of(graph, 3, FRAMES)
    for pipeline in ("none", "across"):
        run = agent.run(bundle, x, "--samples", 1, "--inferences", FRAMES, "--pipeline", pipeline, "--threads", 2)
        assert run.code == 0, run.events[-1]
        for frame, found in enumerate(run.output().reshape(FRAMES, -1)):
            close(found, graph, {name: value[frame] for name, value in x.items()})


@pytest.mark.parametrize("on_cpu", ["none", "products"])
@pytest.mark.parametrize("gpu", GPUS)
def test_everything_made_for_each_frame(agent: Agent, gpu: Backend, on_cpu: str, seed: int) -> None:
    """It computes the same, and each sample takes what the first set-up took: only the first is told."""
    graph = load_workload(network="lenet", onnx=None, seed=seed)
    bundle = compile_graph(graph, Options(gpu, on_cpu=on_cpu), Limits())
    x = inputs_of(graph, seed, 2)
    run = agent.run(bundle, x, "--samples", 1, "--inferences", 2, "--create-per-frame", "--threads-in-order")
    if on_cpu == "none":
        assert run.error.code == "usage"  # no thread of the CPU backend is there
        run = agent.run(bundle, x, "--samples", 1, "--inferences", 2, "--create-per-frame")
    assert run.code == 0, run.events[-1]
    for frame, found in enumerate(run.output().reshape(2, -1)):
        close(found, graph, {name: value[frame] for name, value in x.items()})
    assert len([event for event in run.all("setup") if event.step == "upload"]) == (1 if on_cpu == "none" else 2)


def test_a_pipeline_across_needs_two_apis(agent: Agent, seed: int) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=seed)
    for options, pipeline, words in (
        (Options("cpu"), "across", "two APIs"),
        (Options("opencl", on_cpu="products"), "balanced", "use across"),
    ):
        bundle = compile_graph(graph, options, Limits())
        run = agent.run(bundle, inputs_of(graph, seed), "--inferences", 2, "--pipeline", pipeline, "--threads", 2)
        assert run.error.code == "usage"
        assert words in run.error.message


def test_plans_that_mix_without_a_transfer_are_refused(agent: Agent, seed: int) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=seed)
    bundle = compile_graph(graph, Options("opencl", on_cpu="products"), Limits())
    folder = agent.folder / "plan"
    bundle.write(folder)
    whole = json.loads((folder / "plan.json").read_text())
    cut = next(index for index, step in enumerate(whole["steps"]) if step["kind"] == "transfer")

    def refusal(change: dict[str, object]) -> str:
        (folder / "plan.json").write_text(json.dumps({**whole, **change}))
        run = agent.run(folder, inputs_of(graph, seed))
        assert run.error.code in ("plan_invalid", "usage")
        return run.error.message

    transfer = whole["steps"][cut]
    copied = {key: transfer[key] for key in ("layer", "source", "target", "bytes")} | {"kind": "copy"}
    assert "two APIs" in refusal({"steps": [*whole["steps"][:cut], copied, *whole["steps"][cut + 1 :]]})
    back = {**transfer, "source": transfer["target"], "target": transfer["source"]}
    assert "later one" in refusal({"steps": [*whole["steps"][:cut], back, *whole["steps"][cut + 1 :]]})
    large = {**transfer, "bytes": 1 << 30}
    assert "exceed" in refusal({"steps": [*whole["steps"][:cut], large, *whole["steps"][cut + 1 :]]})
    lost = [{**program, "api": ""} for program in whole["programs"]]
    assert "needs `opencl`" in refusal({"programs": lost})


def test_a_transfer_comes_before_the_steps_behind_it(agent: Agent, seed: int) -> None:
    """The steps may be of the side that it leaves, too; then both segments use its buffer, which holds one frame."""
    graph = load_workload(network="lenet", onnx=None, seed=seed)
    bundle = compile_graph(graph, Options("opencl", on_cpu="products"), Limits())
    (cut,) = [index for index, step in enumerate(bundle.plan.steps) if isinstance(step, Transfer)]
    sent = bundle.plan.steps[cut]
    assert isinstance(sent, Transfer)
    others = {pool.id for pool in bundle.plan.pools if not pool.api}
    weights = [each for each in bundle.plan.buffers if each.role == "weight" and each.pool in others]
    most = max(weights, key=lambda each: each.bytes)
    later = Copy(layer="later", source=most.id, target=sent.source, bytes=min(most.bytes, sent.bytes))
    steps = (*bundle.plan.steps[: cut + 1], later, *bundle.plan.steps[cut + 1 :])
    written_over = Bundle(bundle.plan.model_copy(update={"steps": steps}), bundle.files)
    x = inputs_of(graph, seed)
    run = agent.run(written_over, x)
    assert run.code == 0, run.events[-1]
    close(run.output(), graph, x)
    error = agent.run(written_over, x, "--inferences", 3, "--pipeline", "across").error
    assert (error.code, f"several segments use the buffer `{sent.source}`" in error.message) == ("plan_invalid", True)


@pytest.mark.parametrize("gpu", GPUS)
def test_outputs_that_no_node_makes(agent: Agent, gpu: Backend, seed: int) -> None:
    """An input and a constant of the network, as they are; also where each side reads the input."""
    build = Builder(np.random.default_rng(seed))
    x = build.input(1, 4, 6, 6)
    pooled = build.node("max_pool", [x], (1, 4, 6, 6), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    graph = build.outputs(build.node("add", [build.conv(x, 4, (1, 1)), pooled], (1, 4, 6, 6)))
    constant = next(iter(graph.constants))
    graph = replace(graph, outputs=(*graph.outputs, x, constant))
    bundle = compile_graph(graph, Options(gpu, on_cpu="pooling"), Limits())
    given = inputs_of(graph, seed)
    run = agent.run(bundle, given)
    assert run.code == 0, run.events[-1]
    close(run.output(0), graph, given)
    assert run.output(1).tobytes() == given[x].tobytes()
    assert run.output(2).tobytes() == graph.constants[constant].tobytes()
