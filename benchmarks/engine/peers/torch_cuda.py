"""PyTorch + cuDNN in fp32 without TF32, cuDNN's benchmark mode, replayed from a CUDA graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.engine.torch_graph import TorchGraph
from kernels.ir.graph import Graph

from .engine import Arrays, Model, PeerError
from .torch_cpu import prepare

__all__ = ["load", "prepare"]

_WARMUP = 3


class _TorchCuda:
    copies_inside = False

    def __init__(self, model: Model, graph: Graph) -> None:
        if not torch.cuda.is_available():
            raise PeerError("PyTorch finds no CUDA device")
        self.device = torch.cuda.get_device_name()
        if model.device.lower() not in self.device.lower():
            raise PeerError(f"PyTorch's device is {self.device}, not {model.device}")
        self.version = f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
        self.remarks = ["CUDA graph, TF32 off"]
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        module = TorchGraph(graph, "cuda", torch.float32)
        self._inputs = {name: torch.zeros(graph.shapes[name], device="cuda") for name in graph.inputs}
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(_WARMUP):
                module(self._inputs)
        side.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._outputs = module(self._inputs)

    def put(self, inputs: Arrays) -> None:
        for name, array in inputs.items():
            self._inputs[name].copy_(torch.from_numpy(array))
        torch.cuda.synchronize()

    def run(self) -> None:
        self._graph.replay()
        torch.cuda.synchronize()

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: value.cpu().numpy() for name, value in self._outputs.items()}


def load(model: Model, graph: Graph) -> _TorchCuda:
    """As `engine.Engine`."""
    return _TorchCuda(model, graph)
