"""PyTorch + cuDNN in fp32 without TF32, or in half; cuDNN's benchmark mode, the better layout's CUDA graph."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from kernels.ir.graph import Graph
from workers.engines.torch.torch_graph import TorchGraph, in_layout

from .engine import Arrays, Model, PeerError
from .torch_cpu import prepare

__all__ = ["load", "prepare"]

_WARMUP, _TRIED = 3, 10
_LAYOUTS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}


@dataclass(frozen=True)
class _Captured:
    """The whole network in one layout."""

    layout: str
    module: TorchGraph
    """Kept: the graph reads its weights where they lie."""
    graph: torch.cuda.CUDAGraph
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]

    def run(self) -> None:
        self.graph.replay()
        torch.cuda.synchronize()

    def median_s(self) -> float:
        times = []
        for _ in range(_TRIED):
            began = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - began)
        return median(times)


class _TorchCuda:
    copies_inside = False

    def __init__(self, model: Model, graph: Graph) -> None:
        if not torch.cuda.is_available():
            raise PeerError("PyTorch finds no CUDA device")
        self.device = torch.cuda.get_device_name()
        if model.device.lower() not in self.device.lower():
            raise PeerError(f"PyTorch's device is {self.device}, not {model.device}")
        self.version = f"{torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        dtype = torch.float16 if model.precision == "fp16" else torch.float32
        self._captured = min((_captured(graph, dtype, layout) for layout in _LAYOUTS), key=_Captured.median_s)
        self.remarks = [f"CUDA graph, {self._captured.layout}, TF32 off"]

    def put(self, inputs: Arrays) -> None:
        for name, array in inputs.items():
            self._captured.inputs[name].copy_(torch.from_numpy(array))
        torch.cuda.synchronize()

    def run(self) -> None:
        self._captured.run()

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: value.float().cpu().numpy() for name, value in self._captured.outputs.items()}


def _captured(graph: Graph, dtype: torch.dtype, layout: str) -> _Captured:
    module = TorchGraph(graph, "cuda", dtype, layout=_LAYOUTS[layout])
    inputs = {
        name: in_layout(torch.randn(graph.shapes[name]).to("cuda", dtype), _LAYOUTS[layout]) for name in graph.inputs
    }
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(_WARMUP):
            module(inputs)
    side.synchronize()
    replayed = torch.cuda.CUDAGraph()
    with torch.cuda.graph(replayed):
        outputs = module(inputs)
    return _Captured(layout, module, replayed, inputs, outputs)


def load(model: Model, graph: Graph) -> _TorchCuda:
    """Return an `engine.Engine`."""
    return _TorchCuda(model, graph)
