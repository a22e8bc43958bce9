"""Matrix products n x n x n through the agent: every algorithm, and with `--tiles` every tile, beside a library.

    python -m benchmarks.engine.products --sizes 256,1024,4096 --api opencl,vulkan [--tiles] [-o raw.json] [--resume]

Each result is compared with a double precision product on sampled rows of fresh random inputs; what is wrong is said
and ends with exit status 1. Times are device times of profiled passes. The library is cuBLAS where PyTorch finds CUDA
(in fp32 with TF32 off, or in halves where ours are), else NumPy's BLAS on the host's cores, measured in the same run.
Needs numpy and pydantic.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.kept_rows import KeptRows, Row, add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from kernels.catalog.product import ALGORITHMS, Product
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.ir.graph import Graph, Node
from kernels.options import HALF, Choice, Limits, Options

Array = npt.NDArray[Any]

PAIRS = (("x", "y"), ("y", "x"), ("x", "x"), ("y", "y"))
"""Neighbours in a plan multiply different operands: what one leaves in memory is not another's result."""
SAMPLED = 4
"""Rows of a sample; there are three: at the start, at the end, and anywhere."""
BOUNDS = {"fp32": 1e-5, "relaxed": 1e-5, "fp16": 3e-3}
"""Largest error in norm, relative to the result's."""
LIBRARY = "library"
"""The word in place of an API: the row of what ours is compared with."""
BATCH = 6
"""Choices of one plan, at most."""


def graph_of(size: int, count: int, starts: Sequence[int]) -> Graph:
    """`count` products of two inputs; of each only the sampled rows are outputs."""
    nodes: list[Node] = []
    shapes: dict[str, tuple[int, ...]] = {"x": (size, size), "y": (size, size)}
    for index in range(count):
        nodes.append(Node(str(index), "matmul", pair_of(index, count), (f"{index}:0",), {}))
        shapes[f"{index}:0"] = (size, size)
        for start in starts:
            sampled = f"{index}:{start}-"
            attributes = {"axis": 0, "start": start, "stop": start + SAMPLED}
            nodes.append(Node(f"rows {sampled}", "slice", (f"{index}:0",), (sampled,), attributes))
            shapes[sampled] = (SAMPLED, size)
    outputs = tuple(node.outputs[0] for node in nodes if node.op == "slice")
    return Graph("products", ("x", "y"), outputs, nodes, constants={}, shapes=shapes)


def pair_of(index: int, count: int) -> tuple[str, str]:
    """Operands of the index-th product: never those of its neighbours, the last and the first are neighbours too."""
    is_like_first = index == count - 1 and index % len(PAIRS) == 0 and index > 0
    return PAIRS[1] if is_like_first else PAIRS[index % len(PAIRS)]


def choices_of(size: int, options: Options, limits: Limits, names: Sequence[str], *, tiles: bool) -> list[Choice]:
    """Every algorithm that fits, with its default tile or with each."""
    product = Product(1, size, size, size)
    found = []
    for name in names:
        words = ALGORITHMS[name].tiles(product, options, limits)
        found += [Choice(name, word) for word in (words if tiles else words[:1])]
    return found


def measured(
    agent: Agent, size: int, choices: Sequence[Choice], options: Options, limits: Limits, inputs: Mapping[str, Array],
    device: str, passes: int,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """One result a choice; a plan that fails is split until the culprit is alone."""
    rng = np.random.default_rng()
    starts = sorted({0, size - SAMPLED, int(rng.integers(0, size - SAMPLED + 1))})
    graph = graph_of(size, len(choices), starts)
    tuned = {str(index): choice for index, choice in enumerate(choices)}
    try:
        bundle = compile_graph(graph, Options(options.backend, options.precision, tuned=tuned), limits)
        ran = agent.run(bundle, inputs, warmup=1, samples=1, passes=passes, device=device, limit_s=280)
    except CompileError as e:
        if len(choices) == 1:
            yield {"choice": choices[0].words, "failed": str(e)[:500]}
            return
        middle = len(choices) // 2
        for part in (choices[:middle], choices[middle:]):
            yield from measured(agent, size, part, options, limits, inputs, device, passes)
        return
    wide = {name: array.astype(np.float64) for name, array in inputs.items()}
    for index, choice in enumerate(choices):
        left, right = pair_of(index, len(choices))
        off = rms = 0.0
        for start in starts:
            wanted = wide[left][start : start + SAMPLED] @ wide[right]
            got = ran.outputs[f"{index}:{start}-"].astype(np.float64)
            off, rms = off + float(((got - wanted) ** 2).sum()), rms + float((wanted**2).sum())
        times = ran.layers_ms[str(index)]
        yield {"choice": choice.words, "ms": times, "error": float(np.sqrt(off / rms))}


def library(inputs: Mapping[str, Array], precision: str) -> dict[str, Any]:
    """cuBLAS through PyTorch, in halves for ours in halves, else NumPy's BLAS: ms a product, several measurements."""
    try:
        import torch

        has_cuda = torch.cuda.is_available()
    except ImportError:
        has_cuda = False
    if not has_cuda:
        return {"name": f"NumPy {np.__version__}'s BLAS, {os.cpu_count()} cores", "ms": _numpy_ms(inputs)}
    torch.backends.cuda.matmul.allow_tf32 = False
    word, dtype = ("half", torch.half) if precision in HALF else ("fp32", torch.float)
    x, y = (torch.from_numpy(inputs[name]).cuda().to(dtype) for name in ("x", "y"))
    calls = max(1, min(100, int(4e12 / (2 * len(x) ** 3))))
    out, times = torch.empty_like(x), []
    for _ in range(8):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            torch.mm(x, y, out=out)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / calls)
    return {"name": f"cuBLAS {word}, PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", "ms": times[2:]}


def _numpy_ms(inputs: Mapping[str, Array]) -> list[float]:
    times = []
    ends_at = time.perf_counter() + 2
    while len(times) < 3 or (time.perf_counter() < ends_at and len(times) < 20):
        start = time.perf_counter()
        np.matmul(inputs["x"], inputs["y"])
        times.append((time.perf_counter() - start) * 1e3)
    return times


def compare(agent: Agent, arguments: argparse.Namespace, kept: KeptRows) -> None:
    """Every size on every API, as far as it is not kept yet; prints as it goes."""
    for size in map(int, arguments.sizes.split(",")):
        inputs = {name: np.random.default_rng().standard_normal((size, size), dtype=np.float32) for name in ("x", "y")}
        if not kept.has(size=size, api=LIBRARY):
            theirs = library(inputs, arguments.precision)
            kept.add({"size": size, "api": LIBRARY, "library": theirs["name"], "ms": theirs["ms"]})
        (theirs,) = kept.of(size=size, api=LIBRARY)
        flops, best = 2 * size**3, min(theirs["ms"])
        print(f"\n{size}^3   {theirs['library']}: {best:.3f} ms, {flops / best / 1e6:.0f} GFLOP/s", flush=True)
        for api in arguments.api.split(","):
            for row in kept.of(size=size, api=api):
                print(_line(row, flops, best, BOUNDS[arguments.precision]))
            for row in _compared(agent, arguments, kept, size, api, inputs):
                kept.add(row)
                print(_line(row, flops, best, BOUNDS[arguments.precision]), flush=True)


def _compared(
    agent: Agent, arguments: argparse.Namespace, kept: KeptRows, size: int, api: str, inputs: Mapping[str, Array]
) -> Iterator[Row]:
    """A row a choice that is not kept."""
    devices = [facts for facts in agent.devices(api) if arguments.device.lower() in facts["device_name"].lower()]
    if not devices:
        print(f"  {api}: no device is called {arguments.device!r}", file=sys.stderr)
        return
    limits, options = limits_of(devices[0]), Options(api, arguments.precision)  # type: ignore[arg-type]
    names = arguments.products.split(",") if arguments.products else list(ALGORITHMS)
    found = choices_of(size, options, limits, names, tiles=arguments.tiles)
    choices = [choice for choice in found if not kept.has(size=size, api=api, choice=choice.words)]
    chosen = str(devices[0]["device_name"]) if arguments.device else ""
    for start in range(0, len(choices), BATCH):
        part = choices[start : start + BATCH]
        words = ", ".join(choice.words for choice in part)
        print(f"{size}^3 {api}, {start + 1} of {len(choices)}: {words}", file=sys.stderr, flush=True)
        for one in measured(agent, size, part, options, limits, inputs, chosen, arguments.passes):
            yield {"size": size, "api": api, "device": devices[0]["device_name"], **one}


def _line(one: Mapping[str, Any], flops: int, best: float, bound: float) -> str:
    head = f"  {one['api']:7} {one['choice']:28}"
    if "failed" in one:
        return f"{head} FAILED: {one['failed']}"
    ms = min(one["ms"])
    words = f"{ms:10.3f} ms {flops / ms / 1e6:10.1f} GFLOP/s {best / ms:7.1%} of the library"
    wrong = "" if one["error"] <= bound else "   WRONG"
    return f"{head} {words}   median {median(one['ms']):.3f}   error {one['error']:.1e}{wrong}"


def main() -> int:
    """Measure and print; 1 where a result was wrong or did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="256,1024")
    parser.add_argument("--api", default="opencl,vulkan")
    parser.add_argument("--device", default="", help="part of the device's name; default: the API's first")
    parser.add_argument("--products", default="", help="algorithms; default: all")
    parser.add_argument("--tiles", action="store_true", help="every tile worth trying, not the default ones only")
    parser.add_argument("--precision", default="fp32", choices=sorted(BOUNDS))
    parser.add_argument("--passes", type=int, default=5, help="profiled passes; the least counts")
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"precision": arguments.precision, "passes": arguments.passes}
    kept = kept_rows(arguments, {"machine": describe_machine(), "at": time.time(), **settings}, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="products-") as cache:
        compare(Agent(arguments.agent, Path(cache)), arguments, kept)
    bad = [one for one in kept.rows if "failed" in one or one.get("error", 0) > BOUNDS[arguments.precision]]
    return 1 if bad else 0


if __name__ == "__main__":
    run_command(main)
