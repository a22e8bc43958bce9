"""One network, exported once, on every backend: what each answers, how wrong it is, what it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
import torch

from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.case import relative_error
from benchmarks.engine.ours import find_device
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import load_workload
from kernels.options import Backend, Options

from .modules import make

Arrays = dict[str, np.ndarray[Any, Any]]
TIMES_WORSE = 10.0
"""Than onnxruntime's own error to double precision an error may be."""
FLOOR = 2e-6
"""The error that is allowed whatever onnxruntime's is, which may happen to be nearly nothing."""
SEED, DEADLINE_S = 1, 400


def export(name: str, exporter: str, batch: int, file: Path) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Write the network as ONNX, by PyTorch's exporter `legacy` (TorchScript) or `dynamo`."""
    module, inputs = make(name, batch, SEED)
    torch.onnx.export(module, inputs, str(file), dynamo=exporter == "dynamo", verbose=False)
    return module, inputs


def run_one(
    name: str, exporter: str, batch: int, backends: Sequence[Backend], binary: Path, folder: Path, seconds: float
) -> dict[str, Any]:
    """A row of the table: for each backend `ok`, `refused: ...` or `WRONG ...`; times where wanted."""
    file = folder / "model.onnx"
    row: dict[str, Any] = {"network": name, "exporter": exporter, "batch": batch, "backends": {}}
    try:
        module, inputs = export(name, exporter, batch, file)
    except Exception as e:  # whatever an exporter raises: the row says so
        return row | {"exporter_failed": f"{type(e).__name__}: {e}"[:300]}
    with torch.no_grad():
        wide = module.double()(*(x.double() if x.is_floating_point() else x for x in inputs))
        module.float()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 0 if seconds else 1
    theirs = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in theirs.get_outputs()]
    wide = (wide,) if isinstance(wide, torch.Tensor) else wide
    wanted: Arrays = {name: part.numpy() for name, part in zip(names, wide, strict=True)}
    if not all(np.isfinite(part).all() and part.any() for part in wanted.values()):
        return row | {"exporter_failed": "PyTorch's own result is not finite, or nothing but zeros"}
    fed = {port.name: x.numpy() for port, x in zip(theirs.get_inputs(), inputs, strict=True)}
    row["onnxruntime_error"] = relative_error(dict(zip(names, theirs.run(None, fed), strict=True)), wanted)
    try:
        graph = load_workload(network=None, onnx=file, seed=0)
    except CompileError as e:
        row["backends"] = dict.fromkeys(backends, f"refused: {e}"[:2000])
        return row
    for backend in backends:
        row["backends"][backend], ms = _on(
            backend, graph, fed, wanted, row["onnxruntime_error"], binary, folder, seconds
        )
        row |= {f"{backend}_ms": ms} if ms else {}
    if seconds:
        row["onnxruntime_ms"] = _timed(lambda: theirs.run(None, fed), seconds)
        row |= {"torch_cuda_graph_ms": _cuda_graph(module, inputs, seconds)} if torch.cuda.is_available() else {}
    return row


def _on(
    backend: Backend, graph: Any, fed: Arrays, wanted: Arrays, theirs: float, binary: Path, folder: Path, seconds: float
) -> tuple[str, float | None]:
    agent = Agent(binary, folder / "cache")
    try:
        limits = limits_of(find_device(agent, backend))
        bundle = compile_graph(graph, Options(backend), limits, spirv_cache=folder / "spirv")
        counts = {"warmup": 3, "samples": 10, "threads": 0} if seconds else {"warmup": 0, "samples": 1, "threads": 1}
        ran = agent.run(bundle, fed, **counts, limit_s=DEADLINE_S)
    except CompileError as e:
        word = "FAULT" if str(e).endswith("the deadline") else "refused"
        return f"{word}: {e}"[:2000], None
    except Exception as e:  # a fault of ours: the row says so, and the others are still tried
        return f"FAULT {type(e).__name__}: {e}"[:600], None
    found = {name: ran.outputs[name].reshape(part.shape) for name, part in wanted.items()}
    error = relative_error(found, wanted)
    word = "ok" if error <= max(TIMES_WORSE * theirs, FLOOR) else "WRONG"
    return f"{word} {error:.1e}", median(ran.samples_ms) if seconds else None


def _timed(call: Any, seconds: float) -> float:
    found: list[float] = []
    end = time.monotonic() + seconds
    while len(found) < 5 or time.monotonic() < end:
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1e3)
    return median(found)


def _cuda_graph(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], seconds: float) -> float | None:
    """The better layout's median time of a replay, in fp32 without TF32."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    times = []
    for layout in (torch.contiguous_format, torch.channels_last):
        try:
            there = module.cuda().to(memory_format=layout)
            at = [x.cuda() for x in inputs]
            side = torch.cuda.Stream()
            with torch.no_grad(), torch.cuda.stream(side):
                for _ in range(3):
                    there(*at)
            side.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(graph):
                there(*at)

            def replay(graph: torch.cuda.CUDAGraph = graph) -> None:
                graph.replay()
                torch.cuda.synchronize()

            times.append(_timed(replay, seconds))
        except RuntimeError:  # a layout or a graph that this network cannot have
            continue
    return min(times, default=None)
