"""PyNET whole (study M's network) through the native agent, in the memory of a phone, beside PyTorch in the same run.

    python -m benchmarks.engine.pynet --agent device_agent/build/x86_64/pocketfarm-agent -o raw.json [--resume]

A case is an algorithm with a memory budget in bytes (0: the device's): `--cases auto:0,implicit_gemm:2e9,winograd:4e9`.
Each is compiled for the device that the agent finds, run, and its images compared with PyTorch's of the same random
input and weights (`--reference`: fp64 or fp32; TF32 is off). `--weights`: trained ones, of `pynet_weights`, and a
picture as input; seeded ones magnify rounding. Times are medians of whole inferences, without input and
output. Needs NumPy, pydantic and PyTorch, and glslc for Vulkan; `--peers none`: without PyTorch's own times.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from benchmarks.command_line import run_command
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.networks.pynet import FULL, pynet
from kernels.ir.graph import Graph, Node
from kernels.options import Options
from kernels.plan.model import Plan, SwapIn, SwapOut

from .agent_process import Agent, limits_of
from .kept_rows import KeptRows, add_options, kept_rows
from .machine import describe_machine
from .pictures import mosaic, pictures

Tensors = dict[str, torch.Tensor]
Stored = Callable[[torch.Tensor], torch.Tensor]
TYPES = {"fp32": torch.float32, "fp16": torch.float16}
STRIP_ELEMENTS = 1 << 29
"""The elements of the windows that are laid out at once."""
_SAME = ("size", "reference", "samples", "weights")
"""Options that the rows of a file share."""
LARGEST = 1 << 30
"""Bytes of one allocation where a budget is given: study M's phone."""


def torch_constants(graph: Graph, device: str, dtype: torch.dtype) -> Tensors:
    return {name: torch.tensor(np.array(array)).to(device, dtype) for name, array in graph.constants.items()}


def run_torch(graph: Graph, constants: Tensors, x: torch.Tensor, stored: Stored = lambda value: value) -> Tensors:
    """PyTorch's own operations in the network's order; what nobody reads later is freed. `stored`: of each result."""
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    values: Tensors = {graph.inputs[0]: x}
    for index, node in enumerate(graph.nodes):
        result = _OPERATIONS[node.op](node, [values.get(n, constants.get(n)) for n in node.inputs])
        values[node.output] = stored(result)
        for name in set(node.inputs) & values.keys():
            if last[name] == index and name not in graph.outputs:
                del values[name]
    return {name: values[name] for name in graph.outputs}


def _mirrored(node: Node, inputs: Sequence[Any]) -> torch.Tensor:
    top, left, bottom, right = node.attributes["pads"]
    return functional.pad(inputs[0], (left, right, top, bottom), mode="reflect")


def convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolve in strips of rows in double precision: PyTorch would lay out every window of the whole image there."""
    if x.dtype != torch.float64:
        return functional.conv2d(x, weight, bias)
    window, rows = weight.shape[2], x.shape[2] - weight.shape[2] + 1
    step = max(1, STRIP_ELEMENTS // (x.shape[1] * x.shape[3] * window * window))
    strips = [functional.conv2d(x[:, :, at : at + step + window - 1], weight, bias) for at in range(0, rows, step)]
    return torch.cat(strips, 2)


_OPERATIONS: dict[str, Callable[[Node, Sequence[Any]], torch.Tensor]] = {
    "conv": lambda _, i: convolution(i[0], i[1], i[2]),
    "pad": _mirrored,
    "instance_norm": lambda n, i: functional.instance_norm(i[0], weight=i[1], bias=i[2], eps=n.attributes["epsilon"]),
    "relu": lambda _, i: torch.relu(i[0]),
    "sigmoid": lambda _, i: torch.sigmoid(i[0]),
    "add": lambda _, i: i[0] + i[1],
    "concat": lambda _, i: torch.cat(list(i), 1),
    "max_pool": lambda n, i: functional.max_pool2d(i[0], n.attributes["kernel"], n.attributes["strides"]),
    "resize": lambda n, i: functional.interpolate(i[0], size=n.attributes["size"], mode="bilinear", align_corners=True),
}


def reference(
    graph: Graph, x: np.ndarray[Any, Any], device: str, dtype: torch.dtype, stored_as: torch.dtype | None = None
) -> dict[str, Any]:
    """Its images. `stored_as`: weights and every result are rounded to it, and arithmetic stays in `dtype`."""

    def stored(value: torch.Tensor) -> torch.Tensor:
        return value.to(stored_as).to(dtype) if stored_as else value

    with torch.no_grad(), torch.backends.cudnn.flags(benchmark=False, allow_tf32=False):
        constants = {name: stored(value) for name, value in torch_constants(graph, device, dtype).items()}
        out = run_torch(graph, constants, torch.tensor(x).to(device, dtype), stored)
    found = {name: value.double().cpu().numpy() for name, value in out.items()}
    _release(device)
    return found


def peer(graph: Graph, x: np.ndarray[Any, Any], device: str, dtype: torch.dtype, samples: int) -> dict[str, Any]:
    """PyTorch's time and peak memory."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times = []
    with torch.no_grad():
        constants, data = torch_constants(graph, device, dtype), torch.tensor(x).to(device, dtype)
        for _ in range(samples + 1):
            _synchronise(device)
            start = time.perf_counter()
            out = run_torch(graph, constants, data)
            _synchronise(device)
            times.append(time.perf_counter() - start)
        found = {name: value.float().cpu().numpy() for name, value in out.items()}
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    del constants, data, out
    _release(device)
    return {"ms": 1e3 * statistics.median(times[1:]), "peak_bytes": peak, "outputs": found}


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _release(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()


def agreement(outputs: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, float]:
    """Largest relative error in norm over the images, and the PSNR in dB of the largest one (values from 0 to 1)."""
    errors = [float(np.linalg.norm(outputs[n] - wanted[n]) / np.linalg.norm(wanted[n])) for n in wanted]
    name = max(wanted, key=lambda n: wanted[n].size)
    square = float(np.mean((outputs[name] - wanted[name]) ** 2))
    return {"error": max(errors), "psnr_db": float(10 * np.log10(1 / max(square, 1e-300)))}


def plan_facts(plan: Plan) -> dict[str, Any]:
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    swaps = [sizes[step.buffer] for step in plan.steps if isinstance(step, SwapIn | SwapOut)]
    return {
        "plan_bytes": plan.requires.total_bytes,
        "largest_pool_bytes": plan.requires.max_buffer_bytes,
        "largest_buffer_bytes": max(b.bytes for b in plan.buffers),
        "swapped_bytes": sum(swaps),
        "steps": len(plan.steps),
        "memory": plan.options["memory"],
    }


def measure(
    agent: Agent, graph: Graph, x: np.ndarray[Any, Any], facts: Mapping[str, Any], options: Options, samples: int
) -> dict[str, Any]:
    """Compile, run, and what the run gave."""
    limits = limits_of(facts)
    if options.memory_budget:
        limits = replace(limits, max_buffer_bytes=min(limits.max_buffer_bytes or LARGEST, LARGEST))
    start = time.perf_counter()
    bundle = compile_graph(graph, options, limits)
    compiled = time.perf_counter() - start
    ran = agent.run(bundle, {graph.inputs[0]: x}, warmup=1, samples=samples, limit_s=500, device=facts["device_name"])
    return {
        "ms": statistics.median(ran.samples_ms),
        "samples_ms": ran.samples_ms,
        "compile_s": compiled,
        "setup_ms": ran.setup_ms,
        "driver": facts["driver"],
        "outputs": ran.outputs,
        **plan_facts(bundle.plan),
    }


def main(argv: Sequence[str] | None = None) -> None:
    options = _arguments(argv)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    machine = {
        "machine": describe_machine(),
        "torch": torch.__version__,
        "torch_device": torch.cuda.get_device_name() if device == "cuda" else platform.processor(),
    }
    about = {**machine, **{name: getattr(options, name) for name in _SAME}}
    kept = kept_rows(options, about, same=_SAME)
    rows, columns = map(int, options.size.split("x"))
    graph = pynet(1, size=(rows, columns))
    x = np.random.default_rng().random((1, 4, rows, columns), np.float32)
    if options.weights:
        graph.constants = dict(np.load(options.weights))
        random = torch.Generator(device).manual_seed(int(np.random.default_rng().integers(1 << 30)))
        x = mosaic(pictures(1, 2 * rows, 2 * columns, random), random).cpu().numpy()
    wanted = reference(graph, x, device, torch.float64 if options.reference == "fp64" else torch.float32)
    _stored(options, graph, x, device, wanted, kept)
    _peers(options, graph, x, device, wanted, kept)
    _ours(options, graph, x, wanted, kept)


def _stored(
    options: argparse.Namespace, graph: Graph, x: np.ndarray[Any, Any], device: str, wanted: Mapping[str, Any],
    kept: KeptRows,
) -> None:  # fmt: skip
    """Keep what no engine can undo: double precision, with every tensor rounded where it is stored."""
    for word in options.precisions.split(",") if options.storage else ():
        key = {"engine": "storage", "api": device, "precision": word, "case": ""}
        if _is_left(kept, key):
            kept.add(_shown({**key, "outputs": reference(graph, x, device, torch.float64, TYPES[word])}, wanted))


def _peers(
    options: argparse.Namespace, graph: Graph, x: np.ndarray[Any, Any], device: str, wanted: Mapping[str, Any],
    kept: KeptRows,
) -> None:  # fmt: skip
    for word in options.precisions.split(",") if options.peers == "torch" else ():
        key = {"engine": "torch", "api": device, "precision": word, "case": ""}
        if _is_left(kept, key):
            row = peer(graph, x, device, TYPES[word], options.samples)
            kept.add(_shown({**key, **row}, wanted))


def _ours(
    options: argparse.Namespace, graph: Graph, x: np.ndarray[Any, Any], wanted: Mapping[str, Any], kept: KeptRows
) -> None:
    agent = Agent(options.agent, options.cache)
    for api in options.apis.split(","):
        facts = next(facts for facts in agent.devices(api) if options.device.lower() in facts["device_name"].lower())
        for precision in options.precisions.split(","):
            for case in options.cases.split(","):
                algorithm, budget = case.split(":")
                chosen = Options(api, precision, algorithm=algorithm, memory_budget=int(float(budget)))  # type: ignore[arg-type]
                row: dict[str, Any] = {"engine": "pocketfarm", "api": api, "precision": precision, "case": case}
                if not _is_left(kept, row):
                    continue
                try:
                    row |= measure(agent, graph, x, facts, chosen, options.samples)
                except CompileError as e:
                    row["refused"] = str(e)
                kept.add(_shown(row, wanted))


def _is_left(kept: KeptRows, key: dict[str, Any]) -> bool:
    """Says what is measured next."""
    is_left = not kept.has(**key)
    print(*key.values(), "..." if is_left else "is kept", file=sys.stderr, flush=True)
    return is_left


def _shown(row: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Print a row; the images are compared and left out."""
    outputs = row.pop("outputs", None)
    row |= agreement(outputs, wanted) if outputs else {}
    words = [f"{row[key]}" for key in ("engine", "api", "precision", "case")]
    if "refused" in row:
        print(*words, "refused:", row["refused"], flush=True)
        return row
    size = row.get("plan_bytes", row.get("peak_bytes", 0)) / 1e9
    cost = f"{row['ms']:.1f} ms, {size:.2f} GB, " if "ms" in row else ""
    print(*words, f"{cost}error {row['error']:.1e}, PSNR {row['psnr_db']:.1f} dB", end="")
    if "plan_bytes" in row:
        largest, swapped = row["largest_pool_bytes"] / 1e9, row["swapped_bytes"] / 1e9
        print(f"; largest {largest:.2f} GB, swapped {swapped:.2f} GB ({row['memory']})", end="")
    print(flush=True)
    return row


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=Path, required=True, help="the native agent")
    parser.add_argument("--cache", type=Path, default=Path("build/bench-cache"), help="folder of compiled programs")
    parser.add_argument("--apis", default="opencl,vulkan")
    parser.add_argument("--device", default="", help="part of the device's name")
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--cases", default="auto:0,implicit_gemm:2e9,winograd:4e9", help="algorithm:budget in bytes")
    parser.add_argument("--size", default="x".join(map(str, FULL)), help="rows x columns of a plane, multiples of 16")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--reference", choices=("fp64", "fp32"), default="fp64")
    parser.add_argument("--weights", default="", help="of `pynet_weights`, instead of seeded ones")
    parser.add_argument("--storage", action="store_true", help="also what storing alone loses")
    parser.add_argument("--peers", choices=("torch", "none"), default="torch")
    add_options(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_command(main)
