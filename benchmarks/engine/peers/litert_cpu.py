"""LiteRT (TensorFlow Lite) on the CPU, with XNNPACK as it comes."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from benchmarks.engine.tflite_file import write_tflite
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph

from .engine import Arrays, Model

Prepared = tuple[Path, Graph]


class _LiteRt:
    copies_inside = True
    version = version("ai-edge-litert")

    def __init__(self, model: Model, file: Path, graph: Graph) -> None:
        self._interpreter = Interpreter(str(file), num_threads=model.threads)
        self._interpreter.allocate_tensors()
        self.device = f"CPU, {model.threads} threads"
        self.remarks: list[str] = []
        self._graph = graph
        self._places = [port["index"] for port in self._interpreter.get_input_details()]
        self._inputs: list[np.ndarray[Any, Any]] = []

    def put(self, inputs: Arrays) -> None:
        arrays = [inputs[name] for name in self._graph.inputs]
        self._inputs = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) if a.ndim == 4 else a for a in arrays]

    def run(self) -> None:
        for place, array in zip(self._places, self._inputs, strict=True):
            self._interpreter.set_tensor(place, array)
        self._interpreter.invoke()

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        ports = self._interpreter.get_output_details()
        arrays = [self._interpreter.get_tensor(port["index"]) for port in ports]
        planes = [array.transpose(0, 3, 1, 2) if array.ndim == 4 else array for array in arrays]
        return dict(zip(self._graph.outputs, planes, strict=True))


def prepare(model: Model) -> Prepared:
    """Write the file."""
    graph = load_workload(network=model.network, onnx=None, seed=model.seed, batch=model.batch)
    file = model.folder / "net.tflite"
    if not file.is_file():
        write_tflite(graph, file)
    return file, graph


def load(model: Model, prepared: Prepared) -> _LiteRt:
    """Return an `engine.Engine`."""
    return _LiteRt(model, *prepared)
