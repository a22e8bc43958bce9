"""Decoders with a cache, on each backend: the agent computes what the reference does, in few steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_generation, compile_graph
from kernels.frontend.gguf import load_gguf
from kernels.frontend.load import load_decoder
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import TOLERANCE, relative_error
from tests.unit.kernels.front.gguf_models import CONTEXT, SAID, WORDS, write_decoder

STEPS = {"gemma2": {"cpu": 13, "opencl": 12}, "gemma3": {"cpu": 13, "opencl": 12}}
"""Steps a layer, where it is not 10: Gemma has two norms more, and a Gelu that no layer of the CPU ends in."""


def drawn(folder: Path, architecture: str, rng: np.random.Generator) -> Graph:
    path, tokens = folder / "m.gguf", int(rng.choice([1, rng.integers(2, 9)]))
    write_decoder(path, architecture, rng)
    capacity = int(rng.integers(tokens + 1, CONTEXT))
    return load_gguf(path, sizes={"tokens": tokens, "capacity": capacity, "batch": int(rng.integers(1, 3))})


@pytest.mark.parametrize("architecture", SAID)
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_a_layer_takes_few_steps(tmp_path: Path, seed: int, architecture: str, backend: Backend) -> None:
    """Count the steps of a piece of a prompt and of a token, whose cache is state."""
    wanted, found, path = STEPS.get(architecture, {}).get(backend, 10), [], tmp_path / "m.gguf"
    tokens, capacity = (int(each) for each in np.random.default_rng(seed).integers((2, 9), (9, CONTEXT)))
    for layers in (2, 5):
        write_decoder(path, architecture, np.random.default_rng(seed), layers=layers)
        steps = load_decoder(path, capacity, (tokens, 1))
        generation = compile_generation(steps, Options(backend), Limits()).plan.generation
        found.append([each.end - each.begin for each in generation.passes] if generation else [])
    for few, more in zip(*found, strict=True):
        assert (more - few) / 3 == wanted
        assert few <= 2 * wanted + 10


@pytest.mark.parametrize(
    ("backend", "precision"), [("cpu", "fp32"), ("opencl", "fp32"), ("vulkan", "fp32"), ("vulkan", "fp16")]
)
def test_the_agent_decodes_as_the_reference(
    agent: Agent, tmp_path: Path, seed: int, backend: Backend, precision: str, shaders: Path
) -> None:
    """Draw an architecture, over a cache of which a random part is valid, and the rest is infinite."""
    rng = np.random.default_rng([seed, len(backend + precision)])
    graph = drawn(tmp_path, str(rng.choice([*SAID])), rng)
    (batch, tokens), capacity = graph.shapes["tokens"], graph.shapes["past_key_values.0.key"][2]
    position = rng.integers(0, capacity - tokens + 1, batch)
    inputs = {"tokens": rng.integers(0, WORDS, (batch, tokens)), "position": position}
    valid = (np.arange(capacity) < position[:, None])[:, None, :, None]
    for name in graph.inputs[2:]:
        noise = rng.standard_normal(graph.shapes[name]).astype(np.float32)
        inputs[name] = np.where(valid, noise, np.float32(np.inf))
    bundle = compile_graph(graph, Options(backend, precision), Limits(), spirv_cache=shaders)  # type: ignore[arg-type]
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    wanted = evaluate(graph, inputs)
    written = np.arange(capacity) < position[:, None] + tokens
    for index, port in enumerate(bundle.plan.outputs):
        found = ended.output(index).reshape(port.shape)
        kept = np.broadcast_to(written[:, None, :, None] if port.name != "logits" else True, port.shape)
        error = relative_error(np.where(kept, found, 0), np.where(kept, wanted[port.name], 0))
        assert error <= 3 * TOLERANCE[precision], (graph.name, port.name)
