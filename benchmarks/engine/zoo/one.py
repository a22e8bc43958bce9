"""One network, exported once, on every backend: what each answers, how wrong it is, what it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.case import relative_error
from benchmarks.engine.ours import find_device
from benchmarks.engine.statistics import timed
from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import load_workload
from kernels.options import Backend, Options

Arrays = dict[str, np.ndarray[Any, Any]]
TIMES_WORSE = 10.0
"""The multiple of onnxruntime's own error to double precision that an error may be."""
FLOOR = 2e-6
"""The error that is allowed whatever onnxruntime's is, which may happen to be nearly nothing."""
SEED, DEADLINE_S = 1, 400


def export(name: str, exporter: str, batch: int, file: Path) -> Exported:
    """Write the network as ONNX: by PyTorch's exporter `legacy` (TorchScript) or `dynamo`, or by tf2onnx (`tf2onnx15`:
    opset 15)."""
    if exporter.startswith("tf2onnx"):
        from . import keras_networks

        return Exported(*keras_networks.export(name, int(exporter[7:] or 15), batch, SEED, file))
    from . import torch_export

    return Exported(*torch_export.export(name, exporter, batch, SEED, file))


@dataclass(frozen=True)
class Exported:
    """An exported network: inputs, what computes its results in double precision, and what times PyTorch's graph."""

    inputs: list[np.ndarray[Any, Any]]
    in_double: Callable[[], list[np.ndarray[Any, Any]]]
    cuda_graph_ms: Callable[[float], float | None] = lambda _: None


def run_one(
    name: str, exporter: str, batch: int, backends: Sequence[Backend], binary: Path, folder: Path, seconds: float
) -> dict[str, Any]:
    """A row of the table: for each backend `ok`, `refused: ...` or `WRONG ...`; times where wanted."""
    file = folder / "model.onnx"
    row: dict[str, Any] = {"network": name, "exporter": exporter, "batch": batch, "backends": {}}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 0 if seconds else 1
    try:
        exported = export(name, exporter, batch, file)
        theirs = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as e:  # whatever an exporter raises, or onnxruntime of what it wrote: the row says so
        return row | {"exporter_failed": f"{type(e).__name__}: {e}"[:300]}
    names = [port.name for port in theirs.get_outputs()]
    wanted: Arrays = dict(zip(names, exported.in_double(), strict=True))
    if not all(np.isfinite(part).all() and part.any() for part in wanted.values()):
        return row | {"exporter_failed": "the framework's own result is not finite, or nothing but zeros"}
    fed = {port.name: x for port, x in zip(theirs.get_inputs(), exported.inputs, strict=True)}
    try:
        row["onnxruntime_error"] = relative_error(dict(zip(names, theirs.run(None, fed), strict=True)), wanted)
    except Exception as e:  # what it says of a model that it took
        row |= {"onnxruntime_error": 0.0, "onnxruntime_failed": f"{type(e).__name__}: {e}"[:300]}
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
        row["onnxruntime_ms"] = timed(lambda: theirs.run(None, fed), seconds)
        row |= {"torch_cuda_graph_ms": ms} if (ms := exported.cuda_graph_ms(seconds)) else {}
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
