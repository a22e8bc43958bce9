"""A language model's packed weights beside the same in fp32, on the CPU, in turns: time of a token, bytes of a plan.

    python -m benchmarks.engine.packed model.gguf --threads 1 --tokens 64 --rounds 3

Both plans generate the same tokens behind a drawn prompt, which is checked. Printed are the least of the turns' medians
of a token's time, and the processor's time of a token, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.command_line import run_command
from device_agent.build import binary
from kernels.compile import compile_generation
from kernels.frontend.load import load_decoder
from kernels.ir.decoder import DecoderStep
from kernels.options import Limits, Options

PROMPT, CAPACITY, PIECE = 16, 512, 16


def in_fp32(step: DecoderStep) -> DecoderStep:
    """Return the step with arrays in place of packed matrices."""
    constants = {name: np.asarray(array) for name, array in step.graph.constants.items()}
    return replace(step, graph=replace(step.graph, constants=constants))


def turn(plan: Path, tokens: Path, count: int, threads: int) -> tuple[float, float, list[int]]:
    """Return ms of a token, its processor's ms with the load shared out, and the tokens."""
    words = [binary(), "run", "--plan", plan, "--output-dir", plan / "out", "--tokens", tokens, "--generate", count]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [*map(str, words), "--warmup", "0", "--samples", "1", "--threads", str(threads)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    (sample,) = (event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "sample")
    times = [(late - early) / 1e6 for early, late in pairwise(sample["token_ns"])]
    return median(times), spent * 1e3 / count, sample["tokens"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    for name, usual in (("threads", 1), ("tokens", 64), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args(arguments)
    steps = load_decoder(asked.model, CAPACITY, (PIECE, 1))
    words = steps[0].graph.shapes[steps[0].logits][-1]
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), dict[str, list[tuple[float, float, list[int]]]]()
        np.random.default_rng(1).integers(0, words, PROMPT).astype("<i8").tofile(folder / "tokens.bin")
        for kind in ("packed", "fp32"):
            given = steps if kind == "packed" else [in_fp32(step) for step in steps]
            bundle = compile_generation(given, Options("cpu"), Limits())
            bundle.write(folder / kind)
            print(f"{kind}: {bundle.plan.blob_bytes / 1e6:.0f} MB of weights")
        for _ in range(asked.rounds):
            for kind in ("packed", "fp32"):
                found.setdefault(kind, []).append(
                    turn(folder / kind, folder / "tokens.bin", asked.tokens, asked.threads)
                )
    for kind, turns in found.items():
        wall, processor = (min(each[i] for each in turns) for i in (0, 1))
        print(f"{kind}: {wall:.1f} ms a token, {processor:.1f} ms of the processor with a share of the start")
    same = {tuple(tokens) for turns in found.values() for *_, tokens in turns}
    print("the same tokens" if len(same) == 1 else "tokens differ")
    return int(len(same) > 1)


if __name__ == "__main__":
    run_command(main)
