"""A network of PyTorch's users as an ONNX file, its results in double precision, and PyTorch's CUDA graph's time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.engine.statistics import timed

from .modules import make

Array = np.ndarray[Any, Any]


def export(
    name: str, exporter: str, batch: int, seed: int, file: Path
) -> tuple[list[Array], Callable[[], list[Array]], Callable[[float], float | None]]:
    """Write it; see `one.Exported` for what is returned."""
    module, inputs = make(name, batch, seed)
    torch.onnx.export(module, inputs, str(file), dynamo=exporter == "dynamo", verbose=False)

    def in_double() -> list[Array]:
        with torch.no_grad(), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):  # RAFT names its type
            wide = module.double()(*(x.double() if x.is_floating_point() else x for x in inputs))
            module.float()
        return [part.numpy() for part in ((wide,) if isinstance(wide, torch.Tensor) else wide)]

    def cuda_graph_ms(seconds: float) -> float | None:
        return _cuda_graph(module, inputs, seconds) if torch.cuda.is_available() else None

    return [x.numpy() for x in inputs], in_double, cuda_graph_ms


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

            times.append(timed(replay, seconds))
        except RuntimeError:  # a layout or a graph that this network cannot have
            continue
    return min(times, default=None)
