"""Decoders with a cache, on each backend: the agent computes what the reference does, in few steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_generation, compile_graph
from kernels.frontend.gguf import load_gguf
from kernels.frontend.load import load_decoder
from kernels.ir.graph import Graph
from kernels.ir.packed import FORMATS
from kernels.options import Backend, Limits, Options, Precision
from kernels.reference import evaluate
from orchestrator.model.event import Sample
from tests.contract.agent.driver import Agent
from tests.contract.kernels.matrices import HELD
from tests.unit.kernels.back.graphs import TOLERANCE, relative_error, some
from tests.unit.kernels.front.gguf_models import CONTEXT, SAID, WORDS, write_decoder

PIECE, TOKEN = {"cpu": 8, "opencl": 9}, {"cpu": 8, "opencl": 6}
"""Steps a layer of a piece of a prompt, and of a token: products of the CPU compute norms; of one row a GPU's do, and
gates, and attention appends, and joins what it found in parts of the past."""
GEMMA = {"cpu": (2, 2), "opencl": (0, 2)}
"""More of Gemma, of a piece and of a token: it has two norms more, which a GPU computes with those before products."""


def drawn(folder: Path, architecture: str, rng: np.random.Generator) -> Graph:
    path, tokens = folder / "m.gguf", int(rng.choice([1, rng.integers(2, 9)]))
    write_decoder(path, architecture, rng)
    capacity = int(rng.integers(tokens + 1, CONTEXT))
    return load_gguf(path, sizes={"tokens": tokens, "capacity": capacity, "batch": int(rng.integers(1, 3))})


@pytest.mark.parametrize("architecture", SAID)
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_a_layer_takes_few_steps(tmp_path: Path, seed: int, architecture: str, backend: Backend) -> None:
    """Count the steps of a piece of a prompt and of a token, whose cache is state, of weights that may be packed;
    matrix units multiply by copies, which a step unpacks for several products."""
    found, path, rng = [], tmp_path / "m.gguf", np.random.default_rng([seed, len(architecture)])
    more_of = GEMMA[backend] if architecture.startswith("gemma") else (0, 0)
    tokens, capacity = (int(each) for each in rng.integers((5, 33), (33, CONTEXT)))  # four rows are four tokens
    kind, copied = str(rng.choice(["F32", *FORMATS][:6])), backend == "opencl" and bool(rng.integers(2))
    device = replace(HELD, unified_memory=False) if copied else Limits(unified_memory=bool(rng.integers(2)))
    options = Options(backend, *(("fp16",) if copied else ()))
    if backend == "opencl" and rng.random() < 0.5:
        options = replace(options, order="waves")
    for layers in (2, 5):
        write_decoder(path, architecture, np.random.default_rng(seed), kind, layers=layers)
        steps = load_decoder(path, capacity, (tokens, 1))
        generation = compile_generation(steps, options, device).plan.generation
        found.append([each.end - each.begin for each in generation.passes] if generation else [])
    for few, more, wanted in zip(*found, (PIECE[backend] + more_of[0], TOKEN[backend] + more_of[1]), strict=True):
        assert wanted <= (more - few) / 3 <= wanted + (copied and wanted == PIECE[backend])
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


@pytest.mark.parametrize(
    ("backend", "desktop"), *some([[("opencl", i), ("vulkan", not i)] for i in (0, 1)], 1, "split")
)
def test_a_gpu_shares_out_any_past(
    agent: Agent, tmp_path: Path, seed: int, backend: Backend, desktop: bool, shaders: Path
) -> None:
    """Draw an architecture, a device (one interface has a phone, the other a desktop) and a text, or several side by
    side, whose past goes into several splits, the last one ragged: each token that the agent generates is one of the
    best by the reference's logits of the whole text."""
    rng = np.random.default_rng([seed, len(backend), desktop])
    path, sequences = tmp_path / "m.gguf", int(rng.choice([1, rng.integers(2, 5), rng.integers(5, 9)]))
    most = int(rng.integers(70, 80 + 320 // sequences))
    precision: Precision = "fp16" if rng.random() < 0.5 else "fp32"
    kind = str(rng.choice(["F32", *FORMATS][:6]))
    write_decoder(path, str(rng.choice([*SAID])), rng, kind, context_length=most)
    on_cpu = backend == "opencl" and bool(rng.integers(2))  # its products read copies of packed weights
    limits = Limits(
        unified_memory=not desktop, compute_units=int(rng.integers(2, 140)), max_work_group=1024, cpu_device=on_cpu
    )
    steps = load_decoder(path, most, (int(rng.integers(8, 33)), 1), sequences=sequences)
    bundle = compile_generation(steps, Options(backend, precision), limits, spirv_cache=shaders)
    count = int(rng.integers(2, 6))
    prompts = rng.integers(0, WORDS, (sequences, int(rng.integers(33, most - count))))
    prompts.astype("<i8").tofile(file := agent.folder / "tokens.bin")
    ended = agent.run(bundle, {}, "--tokens", file, "--generate", count)
    assert ended.code == 0, ended.events[-1]
    (found,) = [np.array(event.answers) for event in ended.events if isinstance(event, Sample)]
    texts = np.concatenate([prompts, found[:, :-1]], 1)
    sizes = {"tokens": texts.shape[1], "capacity": most, "logits": count, "batch": sequences}
    graph = load_gguf(path, sizes=sizes)
    cache = {name: np.zeros(graph.shapes[name], np.float32) for name in graph.inputs[2:]}
    logits = evaluate(graph, {"tokens": texts, "position": np.zeros(sequences, np.int64), **cache})["logits"]
    behind = logits.max(-1) - np.take_along_axis(logits, found[..., None], -1)[..., 0]
    assert (behind <= 30 * TOLERANCE[precision] * logits.std(-1)).all(), (graph.name, behind)
