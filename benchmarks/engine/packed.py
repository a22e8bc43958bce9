"""A language model's packed weights beside the same in fp32, or beside llama.cpp, on the CPU, in turns.

    python -m benchmarks.engine.packed model.gguf --threads 1 --tokens 64 --rounds 3
    python -m benchmarks.engine.packed model.gguf --threads 2 --prompt 512 --against path/to/llama-bench

Both plans generate the same tokens behind a drawn prompt, which is checked; llama-bench does not tell its own. Printed
are the least and the median over the turns of the prompt's time and of a token's, and the processor's time of a whole
turn with its start and a warm-up, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.command_line import run_command
from device_agent.build import binary
from kernels.compile import compile_generation
from kernels.frontend.load import load_decoder
from kernels.ir.decoder import DecoderStep
from kernels.options import Limits, Options

PIECE = 64


@dataclass(frozen=True)
class Turn:
    """Times in ms: of a prompt, of a token, of the processor in all; and the tokens, where they are told."""

    prompt: float
    token: float
    processor: float
    tokens: tuple[int, ...] = ()


def in_fp32(step: DecoderStep) -> DecoderStep:
    """Return the step with arrays in place of packed matrices."""
    constants = {name: np.asarray(array) for name, array in step.graph.constants.items()}
    return replace(step, graph=replace(step.graph, constants=constants))


def ours(plan: Path, tokens: Path, asked: argparse.Namespace) -> Turn:
    """Run the agent once, behind a warm-up."""
    words = [binary(), "run", "--plan", plan, "--output-dir", plan / "out", "--tokens", tokens]
    words += ["--generate", asked.tokens, "--warmup", 1, "--samples", 1, "--threads", asked.threads]
    text, spent = run(words)
    sample = [event for event in map(json.loads, text.splitlines()) if event["event"] == "sample"][-1]
    times = [(late - early) / 1e6 for early, late in pairwise(sample["token_ns"])]
    prompt = (sample["token_ns"][0] - sample["start_ns"]) / 1e6
    return Turn(prompt, fmean(times), spent, tuple(sample["tokens"]))


def llama_bench(asked: argparse.Namespace) -> Turn:
    """Run llama-bench once, which warms up by itself, and has its cache in halves."""
    words = [asked.against, "-m", asked.model.resolve(), "-o", "jsonl", "-r", 1, "-t", asked.threads, "-ngl", 0]
    words += ["-p", asked.prompt, "-n", asked.tokens]
    text, spent = run(words, cwd=Path(asked.against).parent)
    prompt, answer = (json.loads(line)["samples_ns"][0] / 1e6 for line in text.splitlines() if line.startswith("{"))
    return Turn(prompt, answer / asked.tokens, spent)


def run(words: Sequence[object], cwd: Path | None = None) -> tuple[str, float]:
    """Return what a program prints, and its processor's time in ms."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    for name, usual in (("threads", 1), ("prompt", 16), ("tokens", 64), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--against", default="fp32", help="fp32, or the program llama-bench")
    asked = parser.parse_args(arguments)
    piece = min(PIECE, asked.prompt)
    steps = load_decoder(asked.model, asked.prompt + asked.tokens, (piece, 1) if piece > 1 else (1,))
    with tempfile.TemporaryDirectory() as name:
        folder, tokens, found = Path(name), Path(name) / "tokens.bin", dict[str, list[Turn]]()
        np.random.default_rng(1).integers(0, steps[-1].words, asked.prompt).astype("<i8").tofile(tokens)
        for kind in ("packed", "fp32")[: 2 if asked.against == "fp32" else 1]:
            given = steps if kind == "packed" else [in_fp32(step) for step in steps]
            bundle = compile_generation(given, Options("cpu"), Limits())
            bundle.write(folder / kind)
            print(f"{kind}: {bundle.plan.blob_bytes / 1e6:.0f} MB of weights")
        for _ in range(asked.rounds):
            for kind in ("packed", asked.against):
                done = ours(folder / kind, tokens, asked) if kind in ("packed", "fp32") else llama_bench(asked)
                found.setdefault(kind, []).append(done)
    for kind, turns in found.items():
        parts = (sorted(getattr(each, part) for each in turns) for part in ("prompt", "token", "processor"))
        prompt, token, processor = (f"{times[0]:.2f} (median {median(times):.2f}) ms" for times in parts)
        print(f"{kind}: prompt {prompt}, token {token}, processor {processor}")
    same = {turn.tokens for turns in found.values() for turn in turns if turn.tokens}
    print("the same tokens" if len(same) == 1 else "tokens differ")
    return int(len(same) > 1)


if __name__ == "__main__":
    run_command(main)
