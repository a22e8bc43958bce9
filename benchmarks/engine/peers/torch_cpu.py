"""PyTorch on the CPU, eager, batch normalisation folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph
from kernels.passes.fuse_residuals import fuse_residuals
from kernels.passes.simplified import simplified
from workers.engines.torch.torch_graph import TorchGraph

from .engine import Arrays, Model


class _TorchCpu:
    copies_inside = True
    version = torch.__version__

    def __init__(self, model: Model, graph: Graph) -> None:
        torch.set_num_threads(model.threads)
        self._module = TorchGraph(graph, "cpu", torch.float32)
        self.device = f"CPU, {torch.get_num_threads()} threads"
        self.remarks: list[str] = []
        self._inputs: dict[str, torch.Tensor] = {}
        self._outputs: dict[str, torch.Tensor] = {}

    def put(self, inputs: Arrays) -> None:
        self._inputs = {name: torch.from_numpy(array) for name, array in inputs.items()}

    def run(self) -> None:
        self._outputs = self._module(self._inputs)

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: value.numpy() for name, value in self._outputs.items()}


def prepare(model: Model) -> Graph:
    """The network with its weights in memory."""
    graph = load_workload(network=model.network, onnx=None, seed=model.seed, batch=model.batch)
    return fuse_residuals(simplified(graph))


def load(model: Model, graph: Graph) -> _TorchCpu:
    """Return an `engine.Engine`."""
    return _TorchCpu(model, graph)
