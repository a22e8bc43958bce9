"""Study M's 35 layer shapes through the native agent, beside cuDNN in the same run.

    python -m benchmarks.engine.shapes --agent device_agent/build/x86_64/pocketfarm-agent -o raw.json [--resume]

Each shape is the workload `pynet_conv_<number>` of a fresh random input, compared with a convolution in double
precision. Times are the host's clock, the device waited for. Two of ours: `ms`, the median of whole inferences (the
input is packed and the output unpacked in it), and `layer_ms`, the convolution's own steps in the fastest profiled
pass. Of cuDNN the least of three, in whichever layout is faster, TF32 off. Needs NumPy, pydantic and PyTorch, and
glslc for Vulkan; without CUDA PyTorch on the processor stands in for cuDNN.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.command_line import run_command
from kernels.compile import compile_graph
from kernels.frontend.networks.pynet_layers import PYNET_LAYERS, SHAPES
from kernels.ir.graph import Graph
from kernels.options import Options

from .agent_process import Agent, limits_of
from .kept_rows import KeptRows, Row, add_options, kept_rows
from .machine import describe_machine
from .pynet import convolution

LAYOUTS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
REPEATS = 3
PEER = "cudnn"
"""The word in place of an API: the row of what ours is compared with."""


def operands(graph: Graph, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """A random input, the layer's weight and bias, and its padding."""
    (node,) = graph.nodes
    weight, bias = (torch.tensor(graph.constants[name], device=device) for name in node.inputs[1:])
    return torch.randn(graph.shapes[graph.inputs[0]], device=device), weight, bias, node.attributes["pads"][0]


def peer_ms(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, pad: int) -> dict[str, float]:
    """Least ms of PyTorch's convolution by layout."""
    found = {}
    for name, layout in LAYOUTS.items():
        one, own = (tensor.contiguous(memory_format=layout) for tensor in (x, weight))
        times = []
        for _ in range(REPEATS + 1):  # the first one chooses the algorithm
            _wait(x)
            start = time.perf_counter()
            torch.nn.functional.conv2d(one, own, bias, padding=pad)
            _wait(x)
            times.append(1e3 * (time.perf_counter() - start))
        found[name] = min(times[1:])
    return found


def _wait(x: torch.Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize()


def ours(agent: Agent, graph: Graph, x: Any, facts: Mapping[str, Any], options: Options) -> tuple[Row, Any]:
    """Return what a run of the agent gave, and its output."""
    bundle = compile_graph(graph, options, limits_of(facts))
    device = facts["device_name"]
    ran = agent.run(bundle, {graph.inputs[0]: x}, warmup=2, samples=5, passes=REPEATS, device=device)
    (node,) = graph.nodes
    chosen = {name: value for name, value in bundle.plan.options.items() if name.endswith(f":{node.name}")}
    row = {
        "ms": statistics.median(ran.samples_ms),
        "layer_ms": min(ran.layers_ms[node.name]),
        "layers_ms": ran.layers_ms,
        "chosen": chosen,
        "bytes": bundle.plan.requires.total_bytes,
        "device": device,
    }
    return row, ran.outputs[graph.outputs[0]]


def measure(agent: Agent, number: int, facts: Mapping[str, Any], arguments: argparse.Namespace, kept: KeptRows) -> None:
    """Both sides of one shape; a row each."""
    graph = PYNET_LAYERS[f"pynet_conv_{number}"](1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, weight, bias, pad = operands(graph, device)
    keys = [(api, algorithm) for api in facts for algorithm in arguments.algorithms.split(",")]
    left = [(a, b) for a, b in keys if not kept.has(shape=number, api=a, algorithm=b)]
    if not kept.has(shape=number, api=PEER):
        by_layout = peer_ms(x, weight, bias, pad)
        kept.add({"shape": number, "api": PEER, "ms": min(by_layout.values()), "by_layout": by_layout})
    padded = torch.nn.functional.pad(x.double(), [pad] * 4)
    wanted = convolution(padded, weight.double(), bias.double()) if left else None
    del padded
    if device == "cuda":
        torch.cuda.empty_cache()  # or there is no room for the agent
    for api, algorithm in left:
        key = {"shape": number, "api": api, "algorithm": algorithm}
        row, got = ours(agent, graph, x.cpu().numpy(), facts[api], Options(api, algorithm=algorithm))
        off = torch.from_numpy(got).to(device).double() - wanted
        kept.add({**key, **row, "error": float(off.norm() / wanted.norm())})
        _tell(kept, kept.rows[-1])


def _tell(kept: KeptRows, row: Row) -> None:
    (theirs,) = kept.of(shape=row["shape"], api=PEER)
    words = f"{row['shape']:2} {SHAPES[row['shape']]} {row['api']} {row['algorithm']} {row['chosen']}"
    times = f"{row['ms']:.3f} ms, layer {row['layer_ms']:.3f} ms, {PEER} {theirs['ms']:.3f} ms"
    print(f"{words}: {times}, error {row['error']:.1e}", flush=True)


def summary(kept: KeptRows) -> list[str]:
    """A line for each API: the sums, and how many shapes took longer than the peer's."""
    theirs = {row["shape"]: row["ms"] for row in kept.of(api=PEER)}
    lines = []
    for api in dict.fromkeys(row["api"] for row in kept.rows if row["api"] != PEER):
        best: dict[int, Row] = {}
        for row in kept.of(api=api):
            best[row["shape"]] = min(row, best.get(row["shape"], row), key=lambda each: each["ms"])
        whole, layer, total = (
            sum(values) for values in zip(*((r["ms"], r["layer_ms"], theirs[s]) for s, r in best.items()), strict=True)
        )
        slower = [s for s, r in best.items() if r["ms"] >= theirs[s]]
        sums = f"whole {whole:.1f} ms ({whole / total:.2f}), layers {layer:.1f} ms ({layer / total:.2f})"
        lines.append(f"{api}: {len(best)} shapes, {sums}, {PEER} {total:.1f} ms; not below it: {slower or 'none'}")
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; exit status 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=Path, required=True, help="the native agent")
    parser.add_argument("--cache", type=Path, default=Path("build/bench-cache"), help="folder of compiled programs")
    parser.add_argument("--apis", default="opencl,vulkan")
    parser.add_argument("--shapes", default=",".join(map(str, range(len(SHAPES)))))
    parser.add_argument("--algorithms", default="auto", help="by commas; of several the fastest counts")
    add_options(parser)
    arguments = parser.parse_args(argv)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    kept = kept_rows(arguments, {"machine": describe_machine(), "torch": torch.__version__})
    agent = Agent(arguments.agent, arguments.cache)
    facts = {api: next(iter(agent.devices(api))) for api in arguments.apis.split(",")}
    for number in map(int, arguments.shapes.split(",")):
        measure(agent, number, facts, arguments, kept)
    print(*summary(kept), sep="\n", file=sys.stdout, flush=True)


if __name__ == "__main__":
    run_command(main)
