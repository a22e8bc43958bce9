"""torchvision's networks through OpenCL and Vulkan beside the same modules in PyTorch on CUDA.

    python -m benchmarks.engine.modules --networks vit_b_16,densenet121 --batches 1,32 -o raw.json

Each network is exported by PyTorch (`legacy`), compiled for every API and precision by several processes, and run once
by several agents, which keep what drivers compile. Then all is timed alone, ours there and back: from the input's being
there to the result's being there, in ms. PyTorch's are replays of a CUDA graph of the module in both memory formats,
batch normalisation folded where `torch.fx` can, TF32 off. Errors are the norm of the difference to the module in double
precision over the norm of that: ours may be ten times PyTorch's. Needs PyTorch with CUDA, torchvision, onnx, pydantic.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, nan
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, Ran, limits_of
from benchmarks.engine.case import relative_error
from benchmarks.engine.cuda_graph import FORMATS, WARMUP, graphed
from benchmarks.engine.kept_rows import KeptRows, add_options, kept_rows
from benchmarks.engine.machine import describe_machine
from benchmarks.engine.ours import find_device
from benchmarks.engine.zoo.modules import make
from benchmarks.engine.zoo.one import SEED, TIMES_WORSE
from benchmarks.engine.zoo.torch_export import export
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.model import Plan

DTYPES = {"fp32": torch.float, "fp16": torch.half}
AT_ONCE = 12
SPAWNED = get_context("spawn")


@dataclass(frozen=True)
class Entrant:
    """One of our plans."""

    network: str
    batch: int
    api: str
    precision: str
    folder: Path

    @property
    def name(self) -> str:
        """Column of a row."""
        return f"ours {self.api} {self.precision}"


def compiled(entrant: Entrant, onnx: Path, limits: Limits) -> Plan | str:
    """The plan, whose bundle lies in the entrant's folder then; or why there is none."""
    try:
        graph = load_workload(network=None, onnx=onnx, seed=0)
        bundle = compile_graph(graph, Options(entrant.api, entrant.precision), limits)  # type: ignore[arg-type]
    except CompileError as e:
        return str(e)[:500]
    bundle.write(entrant.folder)
    return bundle.plan


class Ours:
    """Plans of all networks, compiled and tried; `run` is timed."""

    def __init__(self, agent: Agent, arguments: argparse.Namespace, folder: Path) -> None:
        self._agent, self._device = agent, arguments.device
        self._samples, self._passes = arguments.samples, arguments.passes
        cases = [(name, batch) for name in arguments.networks.split(",") for batch in batches_of(arguments)]
        limits = {api: limits_of(find_device(agent, api, self._device)) for api in arguments.api.split(",")}
        self.entrants = [
            Entrant(name, batch, api, precision, folder / f"{name}-{batch}-{api}-{precision}")
            for name, batch in cases
            for precision in arguments.precisions.split(",")
            for api in limits
        ]
        with ProcessPoolExecutor(AT_ONCE, SPAWNED) as pool:
            files = {case: folder / f"{case[0]}-{case[1]}.onnx" for case in cases}
            unwritten = dict(zip(files, pool.map(_export, files, files.values()), strict=True))
            onnx = [files[each.network, each.batch] for each in self.entrants]
            plans = list(pool.map(compiled, self.entrants, onnx, [limits[each.api] for each in self.entrants]))
        whys = [unwritten[each.network, each.batch] for each in self.entrants]
        self.plans = {each: why or plan for each, why, plan in zip(self.entrants, whys, plans, strict=True)}
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(self._try, self.entrants))

    def run(self, entrant: Entrant, x: npt.NDArray[Any], samples: int, passes: int = 0) -> Ran:
        """Raises CompileError with the agent's words, or the compiler's."""
        plan = self.plans[entrant]
        if isinstance(plan, str):
            raise CompileError(plan)
        inputs = {plan.inputs[0].name: x}
        return self._agent.run_stored(
            plan, entrant.folder, inputs, warmup=WARMUP, samples=samples, passes=passes, device=self._device, limit_s=60
        )

    def row(self, network: str, batch: int, x: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> dict[str, Any]:
        """Samples and errors of each entrant of a case, in turns there and back."""
        mine = [each for each in self.entrants if (each.network, each.batch) == (network, batch)]
        row: dict[str, Any] = {}
        for entrant in [*mine, *reversed(mine)]:
            try:
                ran = self.run(entrant, x, self._samples)
            except CompileError as e:
                row[f"{entrant.name}: failed"] = str(e)[:500]
                continue
            row.setdefault(entrant.name, []).append(ran.samples_ms)
            (found,) = ran.outputs.values()
            row[f"{entrant.name}: error"] = relative_error({"": found.reshape(wanted.shape)}, {"": wanted})
        for entrant in mine if self._passes else ():
            plan = self.plans[entrant]
            if isinstance(plan, Plan):
                ran = self.run(entrant, x, 0, self._passes)
                row[f"{entrant.name}: layers"] = {layer: median(times) for layer, times in ran.layers_ms.items()}
                row[f"{entrant.name}: choices"] = dict(plan.options)
        return row

    def _try(self, entrant: Entrant) -> None:
        plan = self.plans[entrant]
        if isinstance(plan, str):
            return
        try:
            self.run(entrant, np.zeros(plan.inputs[0].shape, np.float32), 1)  # times of this run are not kept
        except CompileError as e:
            self.plans[entrant] = str(e)[:500]


def _export(case: tuple[str, int], file: Path) -> str:
    """Return why there is no file; empty: there is one."""
    try:
        export(case[0], "legacy", case[1], SEED, file)
    except Exception as e:  # whatever an exporter raises: the others are still measured
        return str(e)[:500]
    return ""


def peers(
    module: torch.nn.Module, x: torch.Tensor, wanted: npt.NDArray[Any], precisions: Sequence[str], samples: int
) -> dict[str, Any]:
    """PyTorch's samples and errors by precision and memory format."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    row: dict[str, Any] = {}
    for precision in precisions:
        for name, layout in FORMATS.items():
            there = copy.deepcopy(module).cuda().to(DTYPES[precision], memory_format=layout)
            given = x.cuda().to(DTYPES[precision]).contiguous(memory_format=layout)
            run, outputs = graphed(_called(there, given))
            row[f"torch {name} {precision}"] = [run() for _ in range(WARMUP + samples)][WARMUP:]
            found = {"": outputs["output"].float().cpu().numpy()}
            row[f"torch {name} {precision}: error"] = relative_error(found, {"": wanted})
    return row


def _called(module: torch.nn.Module, given: torch.Tensor) -> Callable[[], dict[str, torch.Tensor]]:
    def call() -> dict[str, torch.Tensor]:
        with torch.inference_mode():
            return {"output": module(given)}

    return call


def folded(module: torch.nn.Module) -> torch.nn.Module:
    """Batch normalisation in the convolution before it; the module itself where it cannot be traced."""
    from torch.fx.experimental.optimization import fuse

    try:
        whole: torch.nn.Module = fuse(module)
    except Exception:  # what a trace meets is any exception of the module's own
        return module
    return whole


def batches_of(arguments: argparse.Namespace) -> list[int]:
    """Return the batches that are asked for."""
    return [int(each) for each in arguments.batches.split(",")]


def line(row: Mapping[str, Any], precisions: Sequence[str]) -> str:
    """Return what it took and what that is of PyTorch's best, and errors that are too large."""
    parts = []
    for precision in precisions:
        torches = [name for name in row if name.startswith("torch") and name.endswith(precision)]
        best = min((median(row[name]) for name in torches), default=nan)
        error = min((row[f"{name}: error"] for name in torches), default=inf)
        parts.append(f"torch {precision} {best:.3f}")
        for name in [each for each in row if each.startswith("ours") and each.endswith(precision)]:
            took = min(map(median, row[name]))
            wrong = "" if row[f"{name}: error"] <= TIMES_WORSE * error else f" WRONG {row[f'{name}: error']:.1e}"
            parts.append(f"{name.split()[1]} {took:.3f} ({took / best:.2f}){wrong}")
    failed = [f"{name} {row[name][:160]}" for name in row if name.endswith("failed")]
    return f"{row['network']} batch {row['batch']}: " + ", ".join(parts + failed)


def compare(agent: Agent, arguments: argparse.Namespace, kept: KeptRows, folder: Path) -> None:
    """Every network and batch; prints as it goes."""
    precisions = arguments.precisions.split(",")
    began = time.monotonic()
    ours = Ours(agent, arguments, folder)
    print(f"compiled and tried in {time.monotonic() - began:.0f} s", flush=True)
    for network in arguments.networks.split(","):
        for batch in batches_of(arguments):
            row = {"network": network, "batch": batch}
            try:
                module, (x,) = make(network, batch, SEED)
                with torch.no_grad():
                    wanted = copy.deepcopy(module).double().cuda()(x.double().cuda()).cpu().numpy()
                row |= ours.row(network, batch, x.numpy(), wanted)
                row |= peers(folded(module), x, wanted, precisions, arguments.samples)
            except Exception as e:  # whatever PyTorch raises, as where it cannot capture: the others are still measured
                row["failed"] = str(e)[:500]
            kept.add(row)
            print(line(row, precisions), flush=True)


def main() -> int:
    """Measure and print; 1 where something did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="resnet50,mobilenet_v2,vit_b_16,densenet121")
    parser.add_argument("--batches", default="1,32")
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--api", default="opencl,vulkan")
    parser.add_argument("--device", default="NVIDIA", help="part of the device's name")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--passes", type=int, default=0, help="passes that time every layer on the device, kept in -o")
    parser.add_argument("--agent", type=Path, default=Path("device_agent/build/x86_64/pocketfarm-agent"))
    add_options(parser)
    arguments = parser.parse_args()
    settings = {"samples": arguments.samples}
    about = {"machine": describe_machine(), "gpu": torch.cuda.get_device_name(), "at": time.time(), **settings}
    kept = kept_rows(arguments, about, same=tuple(settings))
    with tempfile.TemporaryDirectory(prefix="modules-") as folder:
        compare(Agent(arguments.agent, Path(folder, "cache")), arguments, kept, Path(folder))
    return int(any(name.endswith("failed") for row in kept.rows for name in row))


if __name__ == "__main__":
    run_command(main)
