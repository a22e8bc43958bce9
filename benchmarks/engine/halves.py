"""Networks in half precision through Vulkan, with and without matrix units, beside fp32 and PyTorch's halves on CUDA.

    python -m benchmarks.engine.halves --networks resnet50:1,mobilenet_v2:1,resnet50:8 [-o raw.json]

Each row has the samples of one network in milliseconds: ours from the input's being there to the result's being there,
PyTorch's of a CUDA graph of the same nodes in both memory formats. Ours are taken in turns, there and back. Errors are
the norm of the difference to PyTorch in double precision, over the norm of that. Needs numpy, pydantic and PyTorch with
CUDA.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.kept_rows import add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from benchmarks.engine.torch_graph import TorchGraph, evaluate_wide, in_layout
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.options import Limits, Options

Array = npt.NDArray[Any]
FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
WARMUP = 5


def entrants(limits: Limits) -> dict[str, tuple[Options, Limits]]:
    """Return what is compared, by name."""
    half = Options("vulkan", "fp16")
    return {
        "fp32": (Options("vulkan"), limits),
        "fp16": (half, limits),
        "fp16 without units": (half, replace(limits, matrix_units=())),
    }


def ours(
    agent: Agent, graph: Graph, inputs: Mapping[str, Array], wanted: Mapping[str, Array], limits: Limits, samples: int
) -> dict[str, Any]:
    """Samples and errors of each entrant, and how many of its steps use matrix units."""
    row: dict[str, Any] = {}
    chosen = entrants(limits)
    for name in [*chosen, *reversed(chosen)]:
        options, known = chosen[name]
        try:
            bundle = compile_graph(graph, options, known)
            ran = agent.run(bundle, inputs, warmup=WARMUP, samples=samples)
        except CompileError as e:
            row[f"{name}: failed"] = str(e)[:300]
            continue
        row.setdefault(name, []).append(ran.samples_ms)
        row[f"{name}: error"] = max(_error(ran.outputs[port], wanted[port]) for port in wanted)
        row[f"{name}: steps on units"] = sum("_units" in getattr(step, "program", "") for step in bundle.plan.steps)
    return row


def peers(graph: Graph, inputs: Mapping[str, Array], wanted: Mapping[str, Array], samples: int) -> dict[str, Any]:
    """PyTorch's samples in half precision, by memory format."""
    row: dict[str, Any] = {}
    for name, layout in FORMATS.items():
        module = TorchGraph(graph, "cuda", torch.half, layout=layout)
        given = {port: _on_cuda(array, layout) for port, array in inputs.items()}
        run, outputs = graphed(lambda module=module, given=given: module(given))  # type: ignore[misc]
        row[f"torch {name}"] = [run() for _ in range(WARMUP + samples)][WARMUP:]
        row[f"torch {name}: error"] = max(_error(outputs[port].float().cpu().numpy(), wanted[port]) for port in wanted)
    return row


def _on_cuda(array: Array, layout: torch.memory_format) -> torch.Tensor:
    return in_layout(torch.from_numpy(array).cuda().half(), layout)


def graphed(call: Callable[[], dict[str, torch.Tensor]]) -> tuple[Callable[[], float], dict[str, torch.Tensor]]:
    """A CUDA graph of one call: what replays it and tells the time in ms, and its outputs."""
    torch.backends.cudnn.benchmark = True
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = call()

    def run() -> float:
        began = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) * 1e3

    return run, outputs


def _error(got: Array, wanted: Array) -> float:
    difference = got.astype(np.float64).ravel() - wanted.astype(np.float64).ravel()
    return float(np.linalg.norm(difference) / np.linalg.norm(wanted))


def _line(row: Mapping[str, Any]) -> str:
    times = {
        name: min(map(median, value)) if isinstance(value[0], list) else median(value)
        for name, value in row.items()
        if isinstance(value, list)
    }
    return f"{row['network']}: " + ", ".join(f"{name} {ms:.3f} ms" for name, ms in times.items())


def compare(agent: Agent, arguments: argparse.Namespace, keep: Any) -> None:
    """Every network; prints as it goes."""
    facts = next(each for each in agent.devices("vulkan") if arguments.device.lower() in each["device_name"].lower())
    for words in arguments.networks.split(","):
        network, _, batch = words.partition(":")
        graph = load_workload(network=network, onnx=None, seed=1, batch=int(batch or 1))
        inputs = random_inputs(graph, 1)
        wanted = evaluate_wide(graph, inputs)
        row = {"network": words, "device": facts["device_name"], "matrix_units": facts["matrix_units"]}
        row |= ours(agent, graph, inputs, wanted, limits_of(facts), arguments.samples)
        row |= peers(graph, inputs, wanted, arguments.samples)
        keep.add(row)
        print(_line(row), flush=True)


def main() -> int:
    """Measure and print; 1 where something did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="resnet50:1,mobilenet_v2:1", help="name:batch, several between commas")
    parser.add_argument("--device", default="", help="part of the device's name; default: Vulkan's first")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"samples": arguments.samples}
    kept = kept_rows(arguments, {"machine": describe_machine(), "at": time.time(), **settings}, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="halves-") as cache:
        compare(Agent(arguments.agent, Path(cache)), arguments, kept)
    return int(any(name.endswith("failed") for row in kept.rows for name in row))


if __name__ == "__main__":
    run_command(main)
