"""One suite for every API: what a run does and says."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import pytest

from kernels.plan.model import Copy, SwapIn, SwapOut

from .driver import Agent
from .plans import COUNT, Draft, combine, vector


def test_output_equals_numpy(agent: Agent, api: str, seed: int) -> None:
    x, w = vector(seed), vector(seed + 1)
    run = agent.run(Draft(api, [combine("x", "w", "y")], weights={"w": w}).bundle(), {"x": x})
    assert run.code == 0
    np.testing.assert_allclose(run.output(), x + w, rtol=1e-6)


def test_events_of_a_run(agent: Agent, api: str) -> None:
    bundle = Draft(api, [combine("x", "x", "t", layer="first"), combine("t", "x", "y", op=1, layer="second")]).bundle()
    run = agent.run(bundle, {"x": vector(1)}, "--warmup", 2, "--samples", 3, "--layer-passes", 2, "--marker", "s/1")
    assert run.events[0].marker == "s/1"
    device = run.one("device")
    assert (device.facts.api, device.precision, device.plan) == (api, "fp32", bundle.plan.plan_hash)
    assert (device.threads > 0) == (api == "cpu")
    steps = [e.step for e in run.all("setup")]
    compiled = ["library", "discovery", "context", "build", "pipeline", "allocate", "descriptors"]
    recorded = ["record"] if api == "vulkan" else []
    before = ["context", "allocate", "build"] if api == "cpu" else [*compiled, *recorded]
    assert steps == [*before, "upload", "input", "readback"]
    spans = [(e.start_ns, e.start_ns + e.duration_ns) for e in run.all("setup")]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))  # no time is counted twice
    samples = [(e.phase, e.index) for e in run.all("sample")]
    assert samples == [("warmup", 0), ("warmup", 1), ("timed", 0), ("timed", 1), ("timed", 2)]
    assert all(e.duration_ns > 0 for e in run.all("sample"))
    layers = [(e.repeat, e.index, e.layer, e.program) for e in run.all("layer")]
    assert layers == [(p, i, name, "binary") for p in (0, 1) for i, name in enumerate(("first", "second"))]
    memory = run.one("memory")
    assert memory.device_bytes == bundle.plan.requires.total_bytes
    assert memory.vm_hwm_bytes >= memory.vm_rss_bytes > 0
    assert run.events[-1].samples == 3
    output = run.one("output")
    assert (output.name, output.bytes, output.finite) == ("y", COUNT * 4, True)
    assert output.sha256 == hashlib.sha256(run.output().tobytes()).hexdigest()


def test_copy_moves_a_part(agent: Agent, api: str, seed: int) -> None:
    x, w = vector(seed), vector(seed + 1)
    steps = [
        combine("x", "w", "y"),
        Copy(layer="copy", source="x", target="y", source_offset=400, target_offset=40, bytes=80),
    ]
    run = agent.run(Draft(api, steps, weights={"w": w}).bundle(), {"x": x}, "--layer-passes", 1)
    expected = x + w
    expected[10:30] = x[100:120]
    np.testing.assert_allclose(run.output(), expected, rtol=1e-6)
    assert [e.program for e in run.all("layer")] == ["binary", "copy"]


QUEUES = pytest.mark.parametrize("swap_queue", ["", "shared"])
"""Vulkan: swaps in order with the other steps, or in submissions of their own, ordered by semaphores."""


@QUEUES
def test_swapped_buffer_comes_back(agent: Agent, api: str, seed: int, swap_queue: str) -> None:
    x, w = vector(seed), vector(seed + 1)
    steps = [
        combine("x", "w", "t"),
        SwapOut(layer="out", buffer="t"),
        combine("x", "x", "overwriting", op=1),
        combine("overwriting", "w", "z"),
        SwapIn(layer="in", buffer="t"),
        combine("t", "z", "y"),
    ]
    draft = Draft(api, steps, weights={"w": w}, places={"x": 0, "w": 1, "y": 2, "z": 3, "t": 4, "overwriting": 4})
    run = agent.run(draft.bundle(), {"x": x}, "--samples", 2, POCKETFARM_SWAP_QUEUE=swap_queue)
    np.testing.assert_allclose(run.output(), (x + w) + (x * x + w), rtol=1e-5)
    buffers = next((event.detail for event in run.all("setup") if event.step == "record"), "")
    one_queue = "llvmpipe" in run.one("device").facts.device_name  # others may have one for transfers
    if api == "vulkan" and (swap_queue or one_queue):
        assert ("1 command" in buffers) == (not swap_queue)


@QUEUES
def test_an_offloaded_weight_comes_in_every_inference(agent: Agent, api: str, seed: int, swap_queue: str) -> None:
    x, w, v = (vector(seed + i) for i in range(3))
    steps = [
        SwapIn(layer="w", buffer="w"),
        combine("x", "w", "t", op=1),
        SwapIn(layer="v", buffer="v"),  # in the place of the first
        combine("t", "v", "u"),
        SwapIn(layer="w", buffer="w again", host="w"),
        combine("u", "w again", "y"),
    ]
    places = {"x": 0, "w": 1, "v": 1, "w again": 1, "y": 2, "t": 3, "u": 4}
    draft = Draft(api, steps, weights={"w": w, "v": v}, offloaded={"w", "v"}, places=places)
    run = agent.run(draft.bundle(), {"x": x}, "--samples", 3, "--layer-passes", 1, POCKETFARM_SWAP_QUEUE=swap_queue)
    np.testing.assert_allclose(run.output(), x * w + v + w, rtol=1e-5, atol=1e-6)


def test_a_buffer_is_overwritten_and_read_again(agent: Agent, api: str, seed: int) -> None:
    x, w = vector(seed), np.full(COUNT, 0.5, np.float32)
    back = {"layer": "back", "target": "y", "bytes": COUNT * 4}
    add = (combine("y", "x", "t"), Copy(source="t", **back))
    halve = (combine("y", "w", "u", op=1), Copy(source="u", **back))
    steps = [Copy(source="x", **back), *(*add, *add, *halve) * 3]
    run = agent.run(Draft(api, steps, weights={"w": w}).bundle(), {"x": x}, "--samples", 2, "--layer-passes", 1)
    expected = x.copy()
    for _ in range(3):
        expected = (expected + x + x) * np.float32(0.5)
    np.testing.assert_allclose(run.output(), expected, rtol=1e-5)
    assert [e.index for e in run.all("layer")] == list(range(len(steps)))


def test_inputs_are_fresh_in_every_inference(agent: Agent, api: str, seed: int) -> None:
    """The output shares the input's bytes, so one inference destroys the next one's input."""
    x, w = vector(seed), vector(seed + 1)
    draft = Draft(api, [combine("x", "w", "y")], weights={"w": w}, places={"x": 0, "w": 1, "y": 0})
    run = agent.run(draft.bundle(), {"x": x}, "--warmup", 1, "--samples", 2, "--layer-passes", 1)
    np.testing.assert_allclose(run.output(), x + w, rtol=1e-6)


def test_outputs_that_are_not_finite_are_told(agent: Agent, api: str) -> None:
    x = vector(1)
    x[7] = np.inf
    run = agent.run(Draft(api, [combine("x", "x", "y")]).bundle(), {"x": x})
    assert run.code == 0
    assert run.one("output").finite is False


def test_two_inputs_two_outputs(agent: Agent, api: str, seed: int) -> None:
    a, b = vector(seed), vector(seed + 1)
    steps = [combine("a", "b", "sum"), combine("a", "b", "product", op=1)]
    run = agent.run(Draft(api, steps, inputs=["a", "b"], outputs=["product", "sum"]).bundle(), {"a": a, "b": b})
    np.testing.assert_allclose(run.output(0), a * b, rtol=1e-6)
    np.testing.assert_allclose(run.output(1), a + b, rtol=1e-6)


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_cache_is_used_and_a_damaged_one_is_not(agent: Agent, api: str, seed: int) -> None:
    bundle = Draft(api, [combine("x", "x", "y")]).bundle()
    cache = agent.folder / "cache"
    step = {"opencl": "build", "vulkan": "pipeline"}[api]

    def cached(**environment: str) -> tuple[bool, bool, list[str]]:
        """Return whether programs came from the cache, whether they were kept, and warnings."""
        run = agent.run(bundle, {"x": vector(seed)}, "--cache-dir", cache, **environment)
        np.testing.assert_allclose(run.output(), vector(seed) * 2, rtol=1e-6)
        (event,) = [e for e in run.all("setup") if e.step == step]
        kept = "cache" in {e.step for e in run.all("setup")}
        return bool(event.cached), kept, [e.message for e in run.all("warning")]

    assert [cached(), cached()] == [(False, True, []), (True, False, [])]
    (file,) = cache.glob("*.bin")
    file.write_bytes(file.read_bytes()[:-100])
    loaded, kept, warnings = cached()
    assert (loaded, kept, len(warnings)) == (False, True, 1)
    assert f"{file} is damaged" in warnings[0]
    assert cached() == (True, False, [])


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_another_device_of_the_driver_finds_no_program(agent: Agent, api: str, seed: int) -> None:
    """A driver's words on itself and its device are part of the key: programs of another are never tried."""
    bundle, cache = Draft(api, [combine("x", "x", "y")]).bundle(), agent.folder / "cache"
    other = {"POCL_DEVICES": "basic"} if api == "opencl" else {"LP_NATIVE_VECTOR_WIDTH": "128"}
    step = {"opencl": "build", "vulkan": "pipeline"}[api]

    def run(**environment: str) -> tuple[str, bool]:
        ended = agent.run(bundle, {"x": vector(seed)}, "--cache-dir", cache, **environment)
        np.testing.assert_allclose(ended.output(), vector(seed) * 2, rtol=1e-6)
        (event,) = [e for e in ended.all("setup") if e.step == step]
        return ended.one("device").facts.device_name, bool(event.cached)

    (name, first), (another, second) = run(), run(**other)
    if not any(word in name for word in ("pthread", "llvmpipe")):
        pytest.skip(f"{name} is not two devices by an environment variable")
    assert name != another
    assert [first, second, run()[1], run(**other)[1]] == [False, False, True, True]
    assert len(list(cache.glob("*.bin"))) == 2


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_what_is_kept_is_keyed_by_what_is_compiled(agent: Agent, api: str) -> None:
    cache = agent.folder / "cache"
    kept = []
    for op in (0, 1):
        bundle = Draft(api, [combine("x", "x", "y", op=op)]).bundle()
        agent.run(bundle, {"x": vector(1)}, "--cache-dir", cache)
        kept.append(len(list(cache.glob("*.bin"))))
    assert kept == ([1, 1] if api == "opencl" else [1, 2])  # keyed by the program's source; by the plan with its files


def test_threads_of_the_cpu(agent: Agent) -> None:
    bundle = Draft("cpu", [combine("x", "x", "y")]).bundle()
    assert agent.run(bundle, {"x": vector(1)}, "--threads", 3).one("device").threads == 3
