"""Products n x n x n one after another, each of the one before: whole plans beside the library in a CUDA graph.

    python -m benchmarks.engine.product_chains --sizes 1024 --precision fp32 [-o raw.json]

`benchmarks.engine.products` times products one by one, and with each the wait for its end; the library's in a row have
none of that. Here both are in a row: the time of one inference of `COUNT` products, by the host's clock, over `COUNT`,
ours and the library's in turns. The last result is compared with double precision first; what is wrong is said and ends
with exit status 1. Needs PyTorch with CUDA.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.cuda_graph import WARMUP, graphed
from benchmarks.engine.kept_rows import KeptRows, add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from benchmarks.engine.ours import find_device
from benchmarks.engine.products import BOUNDS
from kernels.compile import compile_graph
from kernels.ir.graph import Graph, Node
from kernels.options import Choice, Options

Array = npt.NDArray[Any]

COUNT = 10
ROUNDS = 3


def chain(size: int) -> Graph:
    """`COUNT` products of two inputs, x y y ... y."""
    lefts = ["x", *(f"{index}:0" for index in range(COUNT - 1))]
    nodes = [Node(str(index), "matmul", (left, "y"), (f"{index}:0",)) for index, left in enumerate(lefts)]
    shapes = dict.fromkeys(("x", "y", *(node.output for node in nodes)), (size, size))
    return Graph("products", ("x", "y"), nodes[-1].outputs, nodes, constants={}, shapes=shapes)


def of_library(inputs: dict[str, Array], precision: str, samples: int) -> list[float]:
    """ms a product of cuBLAS in a CUDA graph, TF32 off."""
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = torch.half if precision == "fp16" else torch.float
    x, y = (torch.from_numpy(inputs[name]).cuda().to(dtype) for name in ("x", "y"))

    def call() -> dict[str, torch.Tensor]:
        result = x
        for _ in range(COUNT):
            result = result @ y
        return {"output": result}

    run, _ = graphed(call)
    return [run() / COUNT for _ in range(WARMUP + samples)][WARMUP:]


def compare(agent: Agent, arguments: argparse.Namespace, kept: KeptRows) -> None:
    """Every size on every API; prints as it goes."""
    for size in map(int, arguments.sizes.split(",")):
        rng = np.random.default_rng()
        x, y = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
        inputs = {"x": x, "y": (y / np.sqrt(size)).astype(np.float32)}  # so that results stay as large as x
        wide = torch.from_numpy(inputs["x"]).double().cuda()
        for _ in range(COUNT):
            wide = wide @ torch.from_numpy(inputs["y"]).double().cuda()
        row: dict[str, Any] = {"size": size, "library": []}
        for _ in range(ROUNDS):
            for api in arguments.api.split(","):
                _timed(agent, arguments, api, inputs, wide.cpu().numpy(), row)
            row["library"].append(of_library(inputs, arguments.precision, arguments.samples))
        kept.add(row)
        print(line(row, arguments), flush=True)


def _timed(
    agent: Agent, arguments: argparse.Namespace, api: str, inputs: dict[str, Array], wanted: Array, row: dict[str, Any]
) -> None:
    """Samples of one API, ms a product, and the error of the last result."""
    options = Options(api, arguments.precision)
    if arguments.choice:
        tuned = {str(index): Choice.of(arguments.choice) for index in range(COUNT)}
        options = Options(api, arguments.precision, tuned=tuned)
    limits = limits_of(find_device(agent, api, arguments.device))
    bundle = compile_graph(chain(inputs["x"].shape[0]), options, limits)
    ran = agent.run(bundle, inputs, warmup=WARMUP, samples=arguments.samples, device=arguments.device)
    (got,) = ran.outputs.values()
    row.setdefault(api, []).append([ms / COUNT for ms in ran.samples_ms])
    row[f"{api}: error"] = float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def line(row: dict[str, Any], arguments: argparse.Namespace) -> str:
    """Return what a product takes, the least median of the rounds, and how near ours comes to the library."""
    library = min(map(median, row["library"]))
    parts = [f"{row['size']}^3: library {library * 1e3:.1f} us"]
    for api in arguments.api.split(","):
        took, error = min(map(median, row[api])), row[f"{api}: error"]
        wrong = "" if error <= COUNT * BOUNDS[arguments.precision] else "   WRONG"
        parts.append(f"{api} {took * 1e3:.1f} us ({library / took:.1%}), error {error:.1e}{wrong}")
    return ", ".join(parts)


def main() -> int:
    """Measure and print; 1 where a result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1024")
    parser.add_argument("--api", default="opencl,vulkan")
    parser.add_argument("--device", default="NVIDIA", help="part of the device's name")
    parser.add_argument("--choice", default="", help="algorithm and tile of every product; default: as chosen untuned")
    parser.add_argument("--precision", default="fp32", choices=sorted(BOUNDS))
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"precision": arguments.precision, "samples": arguments.samples, "choice": arguments.choice}
    about = {"machine": describe_machine(), "gpu": torch.cuda.get_device_name(), "at": time.time(), **settings}
    kept = kept_rows(arguments, about, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="chains-") as cache:
        compare(Agent(arguments.agent, Path(cache)), arguments, kept)
    errors = [row[name] for row in kept.rows for name in row if name.endswith("error")]
    return int(any(error > COUNT * BOUNDS[arguments.precision] for error in errors))


if __name__ == "__main__":
    run_command(main)
