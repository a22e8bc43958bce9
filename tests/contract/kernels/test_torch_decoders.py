"""Decoders of transformers, exported here and now, end in as many steps a layer as those of GGUF files, and generate
the tokens of transformers on every backend."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernels.compile import compile_generation
from kernels.frontend.load import load_decoder
from kernels.options import Backend, Limits, Options
from orchestrator.model.event import Sample
from tests.contract.agent.driver import Agent
from tests.contract.agent.test_generation import generate

from .test_decoders import GEMMA, PIECE, TOKEN
from .torch_decoders import ARCHITECTURES, COUNT, LAYERS, WAYS

ROOT = Path(__file__).resolve().parents[3]
AROUND = {"gemma2": 6, "gemma3": 5}
"""Steps before the layers and behind them, where they are not 4: words are multiplied, and logits have a soft cap. A
product of the CPU computes the last norm, and one of a GPU the first factor of the cap."""

pytestmark = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("transformers") and find_spec("onnxscript")),
    reason="torch, transformers and onnxscript are not installed: nothing exports a decoder",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_exported_decoder_takes_few_steps(
    agent: Agent, tmp_path: Path, seed: int, architecture: str, way: str, shaders: Path
) -> None:
    argv = [sys.executable, "-m", "tests.contract.kernels.torch_decoders", tmp_path, architecture, way, seed]
    ended = subprocess.run(list(map(str, argv)), cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-2000:]
    path = tmp_path / f"{architecture}.{way}.onnx"
    said = json.loads(path.with_suffix(".json").read_text())
    steps = load_decoder(path, 40, (4, 1))
    backends: tuple[Backend, ...] = ("cpu", "opencl", "vulkan")
    for backend in backends:
        bundle = compile_generation(steps, Options(backend), Limits(), spirv_cache=shaders)
        assert bundle.plan.generation is not None
        kind = "cpu" if backend == "cpu" else "opencl"
        more = GEMMA[kind] if architecture.startswith("gemma") else (0, 0)
        around = AROUND.get(architecture, 4) - (architecture == "gemma2" or backend == "cpu")
        piece, token = (each.end - each.begin for each in bundle.plan.generation.passes)
        assert piece == LAYERS * (PIECE[kind] + more[0]) + around
        divided = architecture == "phi3" and backend != "cpu"  # its gate is half of a product
        assert token <= LAYERS * (TOKEN[kind] + more[1] + divided) + around
        ended_run = generate(agent, bundle, tuple(said["prompt"]), COUNT, "--warmup", 0, "--samples", 1)
        assert [e.tokens for e in ended_run.events if isinstance(e, Sample)] == [tuple(said["tokens"])], backend
