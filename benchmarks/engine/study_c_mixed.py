"""Study C's heterogeneous versions on this machine: where im2col, products, pooling and dense layers are.

    python -m benchmarks.engine.study_c_mixed [--api opencl] [--networks lenet,cifar10_quick] [--samples N] [--rounds N]

Frames per second of the median stream of 100 frames, every variant once a round, each round in the reverse order; the
outputs are compared with the sequential reference's first. Prints a line of JSON for each network and variant.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.study_c import AGENT, FRAMES, run
from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options

ON_CPU = ("none", "products", "gemm+pooling+products", "im2col")
PIPELINES = ("none", "across")


def measure(arguments: argparse.Namespace, network: str) -> None:
    """Every variant of one network."""
    graph = load_workload(network=network, onnx=None, seed=1)
    with tempfile.TemporaryDirectory(prefix="study-c-") as cache:
        limits = limits_of(Agent(arguments.agent, Path(cache)).devices(arguments.api)[0])
    reference_plan = compile_graph(graph, Options("cpu", algorithm="sequential"), Limits())
    plans = {
        words: compile_graph(graph, Options(arguments.api, algorithm="im2col", on_cpu=words), limits)
        for words in ON_CPU
    }
    shape = graph.shapes[graph.inputs[0]]
    frames = np.random.default_rng(7).standard_normal((FRAMES[network], *shape), dtype=np.float32)
    reference = run(arguments.agent, reference_plan, frames, ("--threads", "1"), 1).outputs
    variants = [(words, way) for words in ON_CPU for way in PIPELINES if words != "none" or way == "none"]
    times: dict[tuple[str, str], list[float]] = {variant: [] for variant in variants}
    spent: dict[tuple[str, str], list[float]] = {variant: [] for variant in variants}
    for number in range(arguments.rounds):
        for variant in variants if number % 2 == 0 else reversed(variants):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            ran = run(arguments.agent, plans[variant[0]], frames, ("--warmup", "1", "--pipeline", variant[1]),
                      arguments.samples)  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            error = np.linalg.norm(ran.outputs - reference) / np.linalg.norm(reference)
            if not error <= 1e-5:
                raise SystemExit(f"{network}, {variant}: its outputs differ from the reference by {error:.1e}")
            times[variant] += ran.samples_ms
            spent[variant].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    for (words, way), found in times.items():
        fps = 1000 * FRAMES[network] / median(found)
        told = {"network": network, "api": arguments.api, "on_cpu": words, "pipeline": way, "fps": round(fps, 1)}
        processor_s = [round(each, 3) for each in spent[words, way]]
        print(json.dumps({**told, "stream_ms": found, "processor_s": processor_s, "load": os.getloadavg()[0]}))


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api", default="opencl", choices=("opencl", "vulkan"))
    parser.add_argument("--networks", default="lenet,cifar10_quick")
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--agent", type=Path, default=AGENT)
    arguments = parser.parse_args()
    for network in arguments.networks.split(","):
        measure(arguments, network)


if __name__ == "__main__":
    run_command(main)
