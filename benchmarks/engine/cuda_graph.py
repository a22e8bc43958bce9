"""A call of PyTorch as a CUDA graph, replayed by the host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
WARMUP = 5


def graphed(call: Callable[[], dict[str, torch.Tensor]]) -> tuple[Callable[[], float], dict[str, torch.Tensor]]:
    """A CUDA graph of one call: what replays it and tells the time in ms, and its outputs."""
    torch.backends.cudnn.benchmark = True
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = call()

    def run() -> float:
        began = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) * 1e3

    return run, outputs
