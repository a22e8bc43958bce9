"""Study C on this machine: frames per second of streams, every variant once a round, each round in the reverse order.

    python -m benchmarks.engine.study_c [--networks lenet,cifar10_quick,caffenet] [--samples N] [--rounds N]
        [-o raw.json] [--resume]

Every variant's outputs are compared with the sequential reference on the same frames before its time counts. Raw times
go to a JSON file; the table is printed with the published speed-ups (Gao, Zhang and Mei, 2018), of other devices.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.engine.kept_rows import KeptRows, add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.model import Bundle
from orchestrator.spec import load_study

FRAMES = {"lenet": 100, "cifar10_quick": 100, "caffenet": 5}
"""The frames of a stream, as in the study."""
NAMES = {"lenet": "MNIST", "cifar10_quick": "Cifar-10", "caffenet": "CaffeNet"}
"""The names of the networks in the study's tables."""
STUDY = Path("experiments/published/study_c.yaml")
AGENT = Path("device_agent/build") / platform.machine() / "pocketfarm-agent"


@dataclass(frozen=True)
class Variant:
    name: str
    algorithm: str
    options: tuple[str, ...]


VARIANTS = (
    Variant("im2col, 1 thread", "im2col", ("--threads", "1")),
    Variant("im2col, 2 threads per call", "im2col", ("--threads", "2", "--threads-per-call")),
    Variant("im2col, 2 threads kept", "im2col", ("--threads", "2")),
    Variant("im2col, 2 threads pinned", "im2col", ("--threads", "2", "--pin-threads")),
    Variant("pipeline by kind", "im2col", ("--threads", "2", "--pipeline", "by_kind", "--pin-threads")),
    Variant("pipeline balanced", "im2col", ("--threads", "2", "--pipeline", "balanced", "--pin-threads")),
    Variant("default, 1 thread", "auto", ("--threads", "1")),
    Variant("default, 2 threads", "auto", ("--threads", "2")),
    Variant("default, pipeline balanced", "auto", ("--threads", "2", "--pipeline", "balanced", "--pin-threads")),
)
REFERENCE = "sequential"
BASE = "im2col, 1 thread"
"""The variant that the study's speed-ups compare with: Caffe on one thread."""


@dataclass(frozen=True)
class Ran:
    samples_ms: tuple[float, ...]
    outputs: np.ndarray[Any, Any]


def main() -> None:
    arguments = _arguments()
    about = {"machine": describe_machine(), "frames": FRAMES, "samples": arguments.samples}
    kept = kept_rows(arguments, about, same=("frames", "samples"))
    for network in arguments.networks.split(","):
        measure(arguments, network, kept)
        print(table(network, streams(kept, network)), flush=True)


def measure(arguments: argparse.Namespace, network: str, kept: KeptRows) -> None:
    """Measure what is not kept yet: a row a process, with the times of its streams in ms."""
    left = [step for step in in_turn(arguments.rounds) if not _is_kept(kept, network, *step)]
    if not left:
        return
    graph = load_workload(network=network, onnx=None, seed=1)
    algorithms = {REFERENCE, *(variant.algorithm for variant in VARIANTS)}
    plans = {name: compile_graph(graph, Options("cpu", algorithm=name, fuse="none"), Limits()) for name in algorithms}
    shape = graph.shapes[graph.inputs[0]]
    frames = np.random.default_rng(7).standard_normal((FRAMES[network], *shape), dtype=np.float32)
    reference = run(arguments.agent, plans[REFERENCE], frames, ("--threads", "1", "--warmup", "0"), 1)
    if not kept.has(network=network, variant=REFERENCE):
        kept.add(_row(network, 0, REFERENCE, reference))
    for number, variant in left:
        print(f"{network}, round {number + 1}: {variant.name}", file=sys.stderr, flush=True)
        options = (*variant.options, "--warmup", "1")
        ran = run(arguments.agent, plans[variant.algorithm], frames, options, arguments.samples)
        error = np.linalg.norm(ran.outputs - reference.outputs) / np.linalg.norm(reference.outputs)
        if not error <= 1e-5:
            raise SystemExit(f"{network}, {variant.name}: its outputs differ from the reference by {error:.1e}")
        kept.add(_row(network, number, variant.name, ran))


def _row(network: str, number: int, variant: str, ran: Ran) -> dict[str, Any]:
    load = os.getloadavg()[0]
    return {"network": network, "variant": variant, "round": number, "stream_ms": ran.samples_ms, "load_average": load}


def _is_kept(kept: KeptRows, network: str, number: int, variant: Variant) -> bool:
    return kept.has(network=network, variant=variant.name, round=number)


def streams(kept: KeptRows, network: str) -> dict[str, list[float]]:
    """Variant -> times of all its streams in ms."""
    names = (REFERENCE, *(variant.name for variant in VARIANTS))
    return {name: [ms for row in kept.of(network=network, variant=name) for ms in row["stream_ms"]] for name in names}


def in_turn(rounds: int) -> Iterator[tuple[int, Variant]]:
    """Every variant once a round, each round in the reverse order of the last."""
    for number in range(rounds):
        yield from ((number, variant) for variant in (VARIANTS if number % 2 == 0 else reversed(VARIANTS)))


def run(agent: Path, bundle: Bundle, frames: np.ndarray[Any, Any], options: tuple[str, ...], samples: int) -> Ran:
    """One process: streams of all frames."""
    with tempfile.TemporaryDirectory(prefix="study-c-") as temporary:
        folder = Path(temporary)
        bundle.write(folder / "plan")
        frames.tofile(folder / "in.bin")
        argv = [str(agent), "run", "--plan", str(folder / "plan"), "--output-dir", str(folder), *options]
        argv += ["--input", f"{bundle.plan.inputs[0].name}={folder}/in.bin", "--inferences", str(len(frames))]
        done = subprocess.run(
            [*argv, "--samples", str(samples)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        if events[-1]["event"] != "result":
            raise SystemExit(events[-1].get("message", done.stderr))
        timed = [e["duration_ns"] / 1e6 for e in events if e["event"] == "sample" and e["phase"] == "timed"]
        return Ran(tuple(timed), np.fromfile(folder / "0.bin", np.float32))


def table(network: str, found: dict[str, list[float]]) -> str:
    """Medians, and the best stream of each variant: what others on the machine disturb least."""
    base = found[BASE]
    lines = [
        f"\n{network}: streams of {FRAMES[network]} frames",
        "| variant | frames/s, median | best | against one thread, median | best |",
        "|---|---|---|---|---|",
    ]
    for name, times in found.items():
        rates = (1000 * FRAMES[network] / figure for figure in (median(times), min(times)))
        ratios = (median(base) / median(times), min(base) / min(times))
        lines.append("| " + " | ".join([name, *(f"{x:.4g}" for x in rates), *(f"{x:.2f}" for x in ratios)]) + " |")
    parts = [each for each in load_study(STUDY).cells if each.table in ("2", "3", "4")]
    published = [(each.title, dict(zip(each.columns, *each.rows.values(), strict=True))) for each in parts]
    lines += [f"| published: {title} | | | {ratios[NAMES[network]]} | |" for title, ratios in published]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default=",".join(FRAMES))
    parser.add_argument("--samples", type=int, default=8, help="streams of a process")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each variant")
    parser.add_argument("--agent", type=Path, default=AGENT)
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)
