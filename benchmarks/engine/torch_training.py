"""The stages of a training in PyTorch: the same batches, rates and losses, on the host's cores or on CUDA."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kernels.ir.graph import Graph, Node
from kernels.training import TrainingOptions
from kernels.training.shuffle import order_of
from kernels.training.stages import TIED, TrainingStage

_WARM = 3
"""Batches on a stream of its own before a CUDA graph is captured."""


@dataclass(frozen=True)
class Way:
    """A way in which PyTorch runs."""

    name: str
    device: str
    graph: bool = False


def ways(words: str) -> list[Way]:
    """Return those of `cpu`, `cuda`, `cuda-graph` that are asked for and are there."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    known = [Way(f"torch {torch.__version__} cpu, {torch.get_num_threads()} threads", "cpu")]
    asked = {"cpu": known[0]}
    if torch.cuda.is_available():
        gpu = torch.cuda.get_device_name()
        asked["cuda"] = Way(f"torch {torch.__version__} eager ({gpu})", "cuda")
        asked["cuda-graph"] = Way(f"torch {torch.__version__} CUDA graph ({gpu})", "cuda", graph=True)
    return [asked[word] for word in words.split(",") if word in asked]


def epochs_of(stage: TrainingStage, training: TrainingOptions, data: Any, labels: Any, way: Way) -> list[float]:
    """Seconds of each epoch; the losses are summed up on the device and read once an epoch, as the agent does."""
    run = Run(stage, training, data, labels, way.device)
    step = run.captured() if way.graph else run.step
    found = []
    for epoch in range(stage.epochs):
        batches = run.batches(epoch)
        run.finish()
        start = time.perf_counter()
        run.loss.zero_()
        for places in batches:
            run.places.copy_(places)
            step()
        float(run.loss)  # waits
        run.finish()
        found.append(time.perf_counter() - start)
    return found


class Run:
    """One stage on one device: data, weights, and the step of a batch whose places lie in a tensor of their own."""

    def __init__(self, stage: TrainingStage, training: TrainingOptions, data: Any, labels: Any, device: str) -> None:
        self._stage, self._training, self._device = stage, training, device
        graph = stage.graph
        self._batch = graph.shapes[graph.inputs[0]][0]
        self._data = torch.from_numpy(data).to(device).float() * training.input_scale
        self._labels = torch.from_numpy(labels).to(device).long()
        self.weights = {name: torch.tensor(array, device=device) for name, array in graph.constants.items()}
        self._trained = [self.weights[name].requires_grad_() for name in sorted(stage.trained)]
        self._velocities = [torch.zeros_like(weight) for weight in self._trained]
        self.places = torch.zeros(self._batch, dtype=torch.long, device=device)
        self.loss = torch.zeros((), device=device)
        self._rate = training.rates(stage.epochs)[0]

    def batches(self, epoch: int) -> list[Any]:
        """Places of an epoch's batches, on the device."""
        order = order_of(self._training.samples, self._training.seed, epoch)
        whole = order[: len(order) // self._batch * self._batch].astype("int64")
        return list(torch.from_numpy(whole).to(self._device).view(-1, self._batch))

    def finish(self) -> None:
        """Wait for the device."""
        if self._device != "cpu":
            torch.cuda.synchronize()

    def step(self) -> None:
        """Forward, loss, gradients, descent."""
        loss = self._loss(self._data.index_select(0, self.places))
        gradients = torch.autograd.grad(loss, self._trained)
        with torch.no_grad():
            if self._training.momentum:
                torch._foreach_mul_(self._velocities, self._training.momentum)
                torch._foreach_add_(self._velocities, gradients)
                gradients = tuple(self._velocities)
            torch._foreach_add_(self._trained, gradients, alpha=-self._rate)
            self.loss += loss

    def captured(self) -> Callable[[], None]:
        """The step as a CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def _loss(self, batch: Any) -> Any:
        stage, graph = self._stage, self._stage.graph
        values = {graph.inputs[0]: batch}
        live = set(stage.trained)
        for node in graph.nodes:
            live |= {node.output} if live & set(node.inputs) else set()
            values[node.output] = _apply(graph, node, [values.get(n, self.weights.get(n)) for n in node.inputs])
        output = values[stage.output]
        if stage.target:
            return 0.5 * (output - values[stage.target].detach()).square().sum(1).mean()
        return torch.nn.functional.cross_entropy(output, self._labels.index_select(0, self.places))


def _apply(graph: Graph, node: Node, inputs: list[Any]) -> Any:
    f, a = torch.nn.functional, node.attributes
    if node.op == "dense":
        out = torch.addmm(inputs[2], inputs[0], inputs[1].t() if TIED in a else inputs[1])
    elif node.op == "conv":
        out = f.conv2d(inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None, a["strides"], a["pads"][:2])
    elif node.op in ("max_pool", "average_pool"):
        out = _pool(graph, node, inputs[0])
    else:
        out = inputs[0].flatten(1) if node.op == "reshape" else getattr(torch, node.op)(inputs[0])
    return getattr(torch, a["activation"][0])(out) if a.get("activation") else out


def _pool(graph: Graph, node: Node, x: Any) -> Any:
    f, a = torch.nn.functional, node.attributes
    room = [x.shape[2 + i] + 2 * a["pads"][i] - a["kernel"][i] for i in (0, 1)]
    ceil = any(room[i] // a["strides"][i] + 1 != graph.shapes[node.output][2 + i] for i in (0, 1))
    if node.op == "max_pool":
        return f.max_pool2d(x, a["kernel"], a["strides"], a["pads"][:2], ceil_mode=ceil)
    return f.avg_pool2d(x, a["kernel"], a["strides"], a["pads"][:2], ceil_mode=ceil, count_include_pad=False)
