"""A decoder's layer ends in as few steps, whoever wrote its file, and its tokens are those of onnxruntime.

`exports/decoders/` has decoders of one layer, of transformers (5.24), as PyTorch's two exporters (2.13) wrote them,
and of onnxruntime-genai's builder (0.18), which leaves a head's width open: ARCHITECTURE.WAY.onnx. The test adds what
onnxruntime's optimiser makes of each, and nodes written anew at random.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from kernels.compile import compile_generation
from kernels.frontend.load import load_decoder
from kernels.ir.decoder import DecoderStep
from kernels.options import Backend, Limits, Options
from kernels.passes.rows.decoders import few_steps

from .decoders import Drawn
from .respelling import respelt
from .test_decoder import greedy

FILES = sorted((Path(__file__).parent / "exports" / "decoders").glob("*.onnx"))
SIZES, SIZE, WORDS, CAPACITY, COUNT = {"builder": 16}, 8, 24, 24, 10
"""Sizes of each of the decoders, some by who wrote it; of its state and of a text."""
AROUND, PIECE = {"cpu": 3, "opencl": 4}, {"cpu": 8, "opencl": 9}
"""Steps before the layer and behind it, and of the layer: as many as of a GGUF file."""
GEMMA = {"cpu": 3, "opencl": 1}
"""More of Gemma, whose words are multiplied; a GPU computes its two further norms with those before products."""
COUNTED = {"builder": {"cpu": 5, "opencl": 3}}
"""Steps that count what a mask shows, once for all layers, by who asks for them."""
TOKEN = {"gemma3": 12}
"""All steps of one token on a GPU, at most, where they are not 9: some spellings keep a norm, or a gate, as a step."""


def spellings(path: Path, rng: np.random.Generator, folder: Path) -> list[Path]:
    found = [path]
    if path.stem.endswith("builder"):  # it is optimised already, in operators that onnx, which checks, does not know
        return found
    for level in ("BASIC", "EXTENDED"):
        found.append(folder / f"{path.stem}.{level}.onnx")
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(found[-1])
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found.append(folder / f"{path.stem}.respelt.onnx")
    onnx.save(respelt(onnx.load(path), rng), found[-1])
    return found


def in_few(step: DecoderStep) -> DecoderStep:
    return replace(step, graph=few_steps(step.graph))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_layer_takes_as_few_steps_and_gives_the_same_tokens(path: Path, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, zlib.crc32(path.stem.encode())])
    prompt = tuple(map(int, rng.integers(0, WORDS, int(rng.integers(2, 9)))))
    architecture, way, _ = path.name.split(".")
    wanted = Drawn(path, "", 1, 1, SIZES.get(way, SIZE), WORDS, prompt).greedy(COUNT)
    backends = "cpu", "opencl"
    for each in spellings(path, rng, tmp_path):
        steps = load_decoder(each, CAPACITY, (int(rng.integers(2, 6)), 1))
        backend: Backend = backends[int(rng.integers(2))]  # type: ignore[assignment]
        generation = compile_generation(steps, Options(backend), Limits()).plan.generation
        assert generation is not None
        counted = COUNTED.get(way, {}).get(backend, 0)
        beside = GEMMA[backend] * (architecture == "gemma3") + counted
        few = PIECE[backend] + AROUND[backend] + beside
        piece, token = (one.end - one.begin for one in generation.passes)
        assert piece == few and (token == few if backend == "cpu" else token <= TOKEN.get(architecture, 9) + counted), (
            each.name
        )
        assert greedy([in_few(step) for step in steps], prompt, COUNT) == wanted, each.name
