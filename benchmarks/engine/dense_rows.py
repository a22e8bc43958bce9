"""Dense layers of few rows through the agent: what is chosen, and with `--tiles` every tile, beside PyTorch on CUDA.

    python -m benchmarks.engine.dense_rows --sizes 4096x4096 --rows 1,8,31 --api opencl,vulkan [--tiles] [-o raw.json]

Sizes are depth x columns. Each result is compared with a double precision product of fresh random inputs; a wrong one
ends with exit status 1. Ours are device times of profiled passes; PyTorch's are of a CUDA graph of twenty layers,
divided by twenty, which hides what a launch costs. Needs numpy and pydantic; without CUDA there is no peer.
"""

from __future__ import annotations

import argparse
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
from benchmarks.engine.kept_rows import add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from kernels.catalog.product import ALGORITHMS, PRODUCTS, Product
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.options import HALF, Choice, Limits, Options

Array = npt.NDArray[Any]
BOUNDS = {"fp32": 1e-5, "fp16": 3e-3}
"""Largest error in norm, relative to the result's."""
LAYERS = 20
"""The layers of PyTorch's CUDA graph."""
BATCH = 12
"""Choices of one plan, at most."""


def choices_of(
    product: Product, options: Options, limits: Limits, names: Sequence[str], *, tiles: bool
) -> list[Choice]:
    """Return what is chosen, and if wished all tiles of these algorithms; `choices_of` of products has one a size."""
    chosen = PRODUCTS.choose(options, limits, "", product)
    words = ALGORITHMS[chosen.algorithm].tiles(product, options, limits)
    first = Choice(chosen.algorithm, words[0])
    fitting = [name for name in names if ALGORITHMS[name].why_not(product, options, limits) is None]
    others = [Choice(name, tile) for name in fitting for tile in ALGORITHMS[name].tiles(product, options, limits)]
    return list(dict.fromkeys([first, *(others if tiles else [])]))


def measured(
    agent: Agent,
    product: Product,
    choices: Sequence[Choice],
    options: Options,
    limits: Limits,
    device: str,
    passes: int,
) -> Iterator[dict[str, Any]]:
    """One result a choice; a plan that fails is split until the culprit is alone."""
    names = [f"layer{index}" for index in range(len(choices))]
    graph = PRODUCTS.trial(product, names)
    graph.outputs = tuple(f"{name}:0" for name in names)
    weight, bias = (graph.constants[name].astype(np.float64) for name in ("weight", "bias"))
    x = np.random.default_rng().standard_normal((product.rows, product.depth), dtype=np.float32)
    try:
        tuned = dict(zip(names, choices, strict=True))
        bundle = compile_graph(graph, Options(options.backend, options.precision, tuned=tuned), limits)
        ran = agent.run(bundle, {"x": x}, warmup=1, samples=1, passes=passes, device=device, limit_s=120)
    except CompileError as e:
        if len(choices) == 1:
            yield {"choice": choices[0].words, "failed": str(e)[:300]}
            return
        for part in (choices[: len(choices) // 2], choices[len(choices) // 2 :]):
            yield from measured(agent, product, part, options, limits, device, passes)
        return
    wanted = x.astype(np.float64) @ weight + bias
    for name, choice in zip(names, choices, strict=True):
        off = np.linalg.norm(ran.outputs[f"{name}:0"].astype(np.float64) - wanted) / np.linalg.norm(wanted)
        yield {"choice": choice.words, "ms": ran.layers_ms[name], "error": float(off)}


def peer_ms(product: Product, precision: str) -> list[float]:
    """PyTorch's layer in a CUDA graph, several measurements; none without CUDA."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    torch.backends.cuda.matmul.allow_tf32 = False
    kind = torch.float16 if precision in HALF else torch.float32
    layer = torch.nn.Linear(product.depth, product.columns).cuda().to(kind)
    x = torch.randn(product.rows, product.depth, device="cuda", dtype=kind)
    with torch.no_grad():
        for _ in range(3):
            layer(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAYERS):
                layer(x)
    times = []
    for _ in range(9):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / LAYERS)
    return times[2:]


def compare(agent: Agent, arguments: argparse.Namespace, keep: Any) -> None:
    """Every size on every API; prints as it goes."""
    for size in arguments.sizes.split(","):
        for rows in map(int, arguments.rows.split(",")):
            depth, columns = map(int, size.split("x"))
            product = Product(1, rows, depth, columns, right_is_constant=True)
            place = {"rows": rows, "depth": depth, "columns": columns}
            theirs = peer_ms(product, arguments.precision)
            keep.add({**place, "api": "torch", "ms": theirs})
            print(f"{rows} x {size}: torch {min(theirs, default=float('nan')) * 1e3:.1f} us", flush=True)
            for api in arguments.api.split(","):
                for row in _measured_on(agent, arguments, api, product):
                    keep.add({**place, **row})
                    print(_line(row, theirs, BOUNDS[arguments.precision]), flush=True)


def _measured_on(agent: Agent, arguments: argparse.Namespace, api: str, product: Product) -> Iterator[dict[str, Any]]:
    devices = [facts for facts in agent.devices(api) if arguments.device.lower() in facts["device_name"].lower()]
    if not devices:
        print(f"  {api}: no device is called {arguments.device!r}", file=sys.stderr)
        return
    limits, options = limits_of(devices[0]), Options(api, arguments.precision)  # type: ignore[arg-type]
    names = arguments.products.split(",") if arguments.products else list(ALGORITHMS)
    choices = choices_of(product, options, limits, names, tiles=arguments.tiles)
    chosen = str(devices[0]["device_name"]) if arguments.device else ""
    for start in range(0, len(choices), BATCH):
        part = choices[start : start + BATCH]
        for index, one in enumerate(measured(agent, product, part, options, limits, chosen, arguments.passes)):
            yield {"api": api, "device": devices[0]["device_name"], "chosen": not start and not index, **one}


def _line(row: Mapping[str, Any], theirs: Sequence[float], bound: float) -> str:
    head = f"  {row['api']:7} {'*' if row['chosen'] else ' '} {row['choice']:24}"
    if "failed" in row:
        return f"{head} FAILED: {row['failed']}"
    ratio = f"{median(row['ms']) / median(theirs):6.2f} of torch" if theirs else ""
    wrong = "" if row["error"] <= bound else "   WRONG"
    least, middle = min(row["ms"]) * 1e3, median(row["ms"]) * 1e3
    return f"{head} least {least:9.1f} us median {middle:9.1f} {ratio} error {row['error']:.1e}{wrong}"


def main() -> int:
    """Measure and print; 1 where a result was wrong or did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="4096x4096", help="depth x columns, several between commas")
    parser.add_argument("--rows", default="1,2,4,8,16,31,32,64")
    parser.add_argument("--api", default="opencl,vulkan")
    parser.add_argument("--device", default="", help="part of the device's name; default: the API's first")
    parser.add_argument("--products", default="", help="algorithms whose tiles are tried; default: all")
    parser.add_argument("--tiles", action="store_true", help="every tile worth trying, not what is chosen only")
    parser.add_argument("--precision", default="fp32", choices=sorted(BOUNDS))
    parser.add_argument("--passes", type=int, default=15, help="profiled passes")
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"precision": arguments.precision, "passes": arguments.passes}
    kept = kept_rows(arguments, {"machine": describe_machine(), "at": time.time(), **settings}, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="dense-rows-") as cache:
        compare(Agent(arguments.agent, Path(cache)), arguments, kept)
    bad = [one for one in kept.rows if "failed" in one or one.get("error", 0) > BOUNDS[arguments.precision]]
    return 1 if bad else 0


if __name__ == "__main__":
    run_command(main)
