"""Networks in 8 bits on a GPU beside fp32 and fp16, on OpenCL and Vulkan in turns, and beside the CPU backend's int8.

    python -m benchmarks.engine.int8_gpu --networks resnet50,mobilenet_v2 -o raw.json

Each row has the samples of one network and API in milliseconds, there and back. `int8` is of the network in fp32, by
ranges that are looked for in every inference; `int8 QDQ` of what onnxruntime's tool quantized (weights by channels),
by that model's steps. `apart` is how far outputs are from the CPU backend's int8 of the same model, of the largest
one; errors are of the largest output in fp64. Weights are random: errors say which arithmetic it is, no more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.case import Case, make_case
from benchmarks.engine.int8 import quantized
from benchmarks.engine.kept_rows import add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.model import Bundle

Array = npt.NDArray[Any]
APIS = ("opencl", "vulkan")
WARMUP = 5


def entrants(case: Case, model: Path) -> dict[str, tuple[Graph, str]]:
    """Graph and precision by name."""
    graph, given = load_onnx(case.onnx), load_onnx(model)
    return {
        "fp32": (graph, "fp32"), "fp16": (graph, "fp16"), "int8": (graph, "int8"), "int8 QDQ": (given, "int8"),
        "int8, byte by byte": (graph, "int8"),
    }  # fmt: skip


def _bundles(api: str, chosen: Mapping[str, tuple[Graph, str]], limits: Limits) -> dict[str, Bundle]:
    plain = replace(limits, dot_product="")
    return {
        name: compile_graph(graph, Options(api, precision), plain if "byte" in name else limits)  # type: ignore[arg-type]
        for name, (graph, precision) in chosen.items()
    }


def measured(agent: Agent, case: Case, model: Path, samples: int) -> Iterator[dict[str, Any]]:
    """A row for each API."""
    chosen, inputs = entrants(case, model), case.inputs[0]
    wanted = next(iter(case.wanted[0].values())).reshape(-1)
    of_cpu = {name: _output(agent, compile_graph(graph, Options("cpu", "int8"), Limits()), inputs, 0)[1]
              for name, (graph, precision) in chosen.items() if precision == "int8"}  # fmt: skip
    for api in APIS:
        facts = agent.devices(api)[0]
        bundles = _bundles(api, chosen, limits_of(facts))
        row: dict[str, Any] = {"network": case.network, "api": api, "device": facts["device_name"]}
        row |= {"driver": facts["driver"], "dot_product": facts["dot_product"], "samples_ms": {}, "error": {}}
        row |= {"apart": {}, "steps": {name: len(bundle.plan.steps) for name, bundle in bundles.items()}}
        for name in [*bundles, *reversed(bundles)]:
            spans, output = _output(agent, bundles[name], inputs, samples)
            row["samples_ms"].setdefault(name, []).append(spans)
            row["error"][name] = float(np.abs(output - wanted).max() / np.abs(wanted).max())
            if name in of_cpu:
                row["apart"][name] = float(np.abs(output - of_cpu[name]).max() / np.abs(of_cpu[name]).max())
        yield row


def _output(agent: Agent, bundle: Bundle, inputs: Mapping[str, Array], samples: int) -> tuple[list[float], Array]:
    ran = agent.run(bundle, inputs, warmup=WARMUP if samples else 1, samples=samples)
    return ran.samples_ms, next(iter(ran.outputs.values())).reshape(-1)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="squeezenet_v1_1,mobilenet_v2,resnet50")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"samples": arguments.samples}
    kept = kept_rows(arguments, {"machine": describe_machine(), "at": time.time(), **settings}, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="int8-") as name:
        agent = Agent(arguments.agent, Path(name) / "cache")
        for network in arguments.networks.split(","):
            case = make_case(network, Path(name))
            for row in measured(agent, case, quantized(case, Path(name))["quantize_static"], arguments.samples):
                kept.add(row)
                times = {each: min(map(median, spans)) for each, spans in row["samples_ms"].items()}
                words = ", ".join(f"{each} {ms:.3f}" for each, ms in times.items())
                print(f"{network} {row['api']} ({row['dot_product']}): {words}; apart {row['apart']}", flush=True)
    return 0


if __name__ == "__main__":
    run_command(main)
