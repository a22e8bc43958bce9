"""Inferences back to back, for every API: each frame's result is its own, whatever overlaps."""

from __future__ import annotations

import numpy as np

from kernels.plan.model import Copy

from .driver import Agent
from .plans import COUNT, Array, Draft, combine, vector

FRAMES = 5


def frames_of(seed: int, count: int = FRAMES) -> Array:
    return np.stack([vector(seed + i) for i in range(count)])


def chain(api: str, w: Array, **places: int) -> Draft:
    """y = (x + w) * x in three steps, the last of them a copy."""
    steps = [
        combine("x", "w", "t"),
        combine("t", "x", "u", op=1),
        Copy(layer="copy", source="u", target="y", bytes=COUNT * 4),
    ]
    return Draft(api, steps, weights={"w": w}, places=places)


def test_every_frame_has_its_own_result(agent: Agent, api: str, seed: int) -> None:
    x, w = frames_of(seed), vector(seed + 100)
    run = agent.run(chain(api, w).bundle(), {"x": x}, "--warmup", 1, "--samples", 2, "--inferences", 2 * FRAMES + 3)
    assert run.code == 0, run.events[-1]
    np.testing.assert_allclose(run.output().reshape(FRAMES, COUNT), (x + w) * x, rtol=1e-5, atol=1e-6)
    assert run.one("output").bytes == FRAMES * COUNT * 4


def test_frames_of_two_inputs_and_two_outputs(agent: Agent, api: str, seed: int) -> None:
    a, b = frames_of(seed, 3), frames_of(seed + 50, 3)
    steps = [combine("a", "b", "sum"), combine("a", "b", "product", op=1)]
    draft = Draft(api, steps, inputs=["a", "b"], outputs=["product", "sum"])
    run = agent.run(draft.bundle(), {"a": a, "b": b}, "--inferences", 7)
    np.testing.assert_allclose(run.output(0).reshape(3, COUNT), a * b, rtol=1e-6)
    np.testing.assert_allclose(run.output(1).reshape(3, COUNT), a + b, rtol=1e-6)


def test_samples_tell_how_many_inferences_they_have(agent: Agent, api: str, seed: int) -> None:
    x, w = vector(seed), vector(seed + 1)
    run = agent.run(chain(api, w).bundle(), {"x": x}, "--warmup", 1, "--samples", 3, "--inferences", 40)
    assert [(e.phase, e.inferences) for e in run.all("sample")] == [("warmup", 40), *[("timed", 40)] * 3]
    assert run.events[-1].samples == 3
    np.testing.assert_allclose(run.output(), (x + w) * x, rtol=1e-5, atol=1e-6)


def test_an_input_that_is_overwritten_is_brought_again(agent: Agent, api: str, seed: int) -> None:
    """The output shares the input's bytes, so that each inference destroys the next one's input."""
    x, w = vector(seed), vector(seed + 1)
    draft = Draft(api, [combine("x", "w", "y")], weights={"w": w}, places={"x": 0, "w": 1, "y": 0})
    run = agent.run(draft.bundle(), {"x": x}, "--inferences", 6, "--layer-passes", 1)
    np.testing.assert_allclose(run.output(), x + w, rtol=1e-6)


def test_several_frames_need_a_stream(agent: Agent, api: str) -> None:
    draft = Draft(api, [combine("x", "x", "y")])
    run = agent.run(draft.bundle(), {"x": frames_of(1, 2)})
    assert (run.error.code, "takes 4000" in run.error.message) == ("usage", True)


def test_inputs_have_the_same_number_of_frames(agent: Agent) -> None:
    draft = Draft("cpu", [combine("a", "b", "y")], inputs=["a", "b"])
    run = agent.run(draft.bundle(), {"a": frames_of(1, 2), "b": frames_of(2, 3)}, "--inferences", 6)
    assert (run.error.code, "3 frames" in run.error.message) == ("usage", True)


def test_a_part_of_a_frame_is_refused(agent: Agent) -> None:
    draft = Draft("cpu", [combine("x", "x", "y")])
    run = agent.run(draft.bundle(), {"x": frames_of(1, 2).ravel()[:-7]}, "--inferences", 6)
    assert (run.error.code, "frames of 4000" in run.error.message) == ("usage", True)
