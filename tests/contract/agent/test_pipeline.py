"""Threads and the pipeline of the CPU backend (study C): whatever is shared out, every frame's result is its own."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, Dispatch
from kernels.reference import evaluate
from tests.waiting import eventually

from .driver import Agent
from .plans import Array, Draft, combine, vector

FRAMES = 7
WAYS = {
    "kept": ("--threads", 3),
    "per_call": ("--threads", 3, "--threads-per-call"),
    "in_order": ("--threads", 3, "--threads-in-order"),
    "per_frame": ("--threads", 2, "--create-per-frame"),
    "pinned": ("--threads", 3, "--pin-threads"),
    "pinned_per_call": ("--threads", 2, "--pin-threads", "--threads-per-call"),
    "balanced_2": ("--threads", 2, "--pipeline", "balanced"),
    "balanced_5": ("--threads", 5, "--pipeline", "balanced"),
    "balanced_pinned": ("--threads", 2, "--pipeline", "balanced", "--pin-threads"),
    "by_kind_2": ("--threads", 2, "--pipeline", "by_kind"),
    "by_kind_3": ("--threads", 3, "--pipeline", "by_kind", "--pin-threads"),
}


@cache
def compiled(network: str, algorithm: str, *, fuse: str = "all") -> Bundle:
    graph = load_workload(network=network, onnx=None, seed=3)
    return compile_graph(graph, Options("cpu", algorithm=algorithm, fuse=fuse), Limits())


def frames_of(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal((FRAMES, *shape), dtype=np.float32)


STREAMS = ("--warmup", 1, "--samples", 2, "--inferences", 3 * FRAMES + 2)
"""Each frame several times, in several streams."""


@pytest.fixture(scope="module")
def sequential(agent_binary: Path, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Array:
    """One thread's results of the frames, one after the other."""
    agent = Agent(agent_binary, tmp_path_factory.mktemp("sequential"))
    x = frames_of(seed, 1, 3, 32, 32)
    run = agent.run(compiled("cifar10_quick", "sequential"), {"data": x}, "--threads", 1, *STREAMS)
    assert run.code == 0, run.events[-1]
    return run.output()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm", ["im2col", "direct"])
def test_every_frame_equals_the_sequential_reference(
    agent: Agent, algorithm: str, way: str, seed: int, sequential: Array
) -> None:
    """Different inputs in every frame."""
    x = frames_of(seed, 1, 3, 32, 32)
    run = agent.run(compiled("cifar10_quick", algorithm, fuse="none"), {"data": x}, *WAYS[way], *STREAMS)
    assert run.code == 0, run.events[-1]
    np.testing.assert_allclose(run.output(), sequential, rtol=1e-4, atol=1e-6)
    assert len(np.unique(run.output().reshape(FRAMES, -1).round(5), axis=0)) == FRAMES


def test_the_sequential_reference_equals_the_definition(agent: Agent, seed: int) -> None:
    x = frames_of(seed, 1, 1, 28, 28)
    graph = load_workload(network="lenet", onnx=None, seed=3)
    run = agent.run(compiled("lenet", "sequential"), {"data": x}, "--threads", 1, "--inferences", FRAMES)
    expected = np.stack([evaluate(graph, {"data": frame})[graph.outputs[0]] for frame in x])
    np.testing.assert_allclose(run.output(), expected.ravel(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", ["balanced_2", "by_kind_2"])
def test_a_stream_of_one_input_leaves_the_last_result(agent: Agent, way: str, seed: int) -> None:
    x = frames_of(seed, 1, 1, 28, 28)[0]
    alone = agent.run(compiled("lenet", "direct"), {"data": x}, "--threads", 1)
    run = agent.run(compiled("lenet", "direct"), {"data": x}, *WAYS[way], "--inferences", 9)
    np.testing.assert_allclose(run.output(), alone.output(), rtol=1e-5, atol=1e-7)


def test_memory_and_stages_are_told(agent: Agent) -> None:
    bundle = compiled("lenet", "im2col")
    run = agent.run(bundle, {"data": frames_of(1, 1, 1, 28, 28)}, *WAYS["balanced_2"], "--inferences", 8)
    told = [event.detail for event in run.all("setup") if event.step == "pipeline"]
    assert len(told) == 1 and told[0].startswith("2 stages: 1(0-")
    weights = bundle.plan.blob_bytes
    own = bundle.plan.requires.total_bytes - weights
    assert run.one("memory").device_bytes == pytest.approx(weights + 3 * own, rel=0.02)
    assert run.one("device").threads == 2


def test_each_kind_of_step_has_a_stage(agent: Agent) -> None:
    """Products, elementwise steps, and pooling, wherever they are in the network."""
    bundle = compiled("cifar10_quick", "im2col", fuse="none")
    run = agent.run(bundle, {"data": frames_of(1, 1, 3, 32, 32)}, *WAYS["by_kind_3"], *STREAMS)
    kernels = {program.id: program.kernel for program in bundle.plan.programs}
    (told,) = [event.detail for event in run.all("setup") if event.step == "pipeline"]
    kinds = {"map": "elementwise", "pool2d": "rest", "softmax": "rest"}
    stages: dict[str, set[str]] = {}
    for stage, begin, end in re.findall(r"(\d+)\((\d+)-(\d+)\)", told):
        for step in bundle.plan.steps[int(begin) : int(end) + 1]:
            assert isinstance(step, Dispatch)
            stages.setdefault(kinds.get(kernels[step.program], "product"), set()).add(stage)
    assert sorted(map(sorted, stages.values())) == [["1"], ["2"], ["3"]], told


def test_an_overwritten_input_is_brought_again_in_every_stage(agent: Agent, seed: int) -> None:
    x, w = np.stack([vector(seed + i) for i in range(4)]), vector(seed + 9)
    draft = Draft("cpu", [combine("x", "w", "x"), combine("x", "w", "y")], weights={"w": w})
    run = agent.run(draft.bundle(), {"x": x}, *WAYS["balanced_2"], "--inferences", 11)
    np.testing.assert_allclose(run.output().reshape(4, -1), x + 2 * w, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("way", ["pinned", "balanced_pinned"])
def test_threads_are_bound_to_cores_of_the_list(agent: Agent, way: str, tmp_path: Path) -> None:
    """Looked at from outside, while it runs."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    bundle = compiled("lenet", "im2col")
    options = (*WAYS[way], "--inferences", 20, "--load-ms", 120_000, "--cpus", ",".join(map(str, cores)))
    process = agent.start(bundle, {"data": frames_of(1, 1, 1, 28, 28)}, *options)
    assert process.stdout is not None
    for line in process.stdout:
        if '"upload"' in line or '"pipeline"' in line:
            break
    wanted = {frozenset({core}) for core in cores}
    eventually(lambda: wanted <= affinities(process.pid))


def affinities(pid: int) -> set[frozenset[int]]:
    """Cores of each thread; a thread may end meanwhile."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            found.add(frozenset(os.sched_getaffinity(int(task.name))))
    return found


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--pipeline", "balanced", "--threads", 1, "--inferences", 4), "at least two stages"),
        (("--pipeline", "by_kind", "--threads", 2, "--inferences", 4), "one stage only"),
    ],
)
def test_a_pipeline_of_one_stage_is_refused(agent: Agent, options: tuple[object, ...], why: str) -> None:
    draft = Draft("cpu", [combine("x", "x", "t"), combine("t", "x", "y")])
    run = agent.run(draft.bundle(), {"x": vector(1)}, *options)
    assert (run.error.code, why in run.error.message) == ("usage", True)


@pytest.mark.parametrize("option", ["--threads-per-call", "--pin-threads"])
def test_options_of_the_cpu_are_refused_elsewhere(agent: Agent, option: str) -> None:
    run = agent.run(Draft("opencl", [combine("x", "x", "y")]).bundle(), {"x": vector(1)}, option)
    assert (run.error.code, "CPU backend" in run.error.message) == ("usage", True)


def test_a_pipeline_needs_a_stream_and_threads_that_stay(agent: Agent) -> None:
    plain = agent.plain("run", "--plan", "nowhere", "--pipeline", "balanced")
    assert (plain.returncode, "--inferences above 1" in plain.stderr) == (2, True)
    words = ("--pipeline", "balanced", "--inferences", "3", "--threads-per-call")
    plain = agent.plain("run", "--plan", "nowhere", *words)
    assert (plain.returncode, "leave out --threads-per-call" in plain.stderr) == (2, True)
    plain = agent.plain("run", "--plan", "nowhere", "--pipeline", "wide")
    assert (plain.returncode, "none, balanced, by_kind or across" in plain.stderr) == (2, True)
