"""The division of a network between GPU and CPU that costs least.

Where the time of a frame is the sum of its layers' and its transfers' times, the cheapest division is a minimum cut of
a network of flows (H. S. Stone, "Multiprocessor Scheduling with the Aid of Network Flow Algorithms", IEEE Transactions
on Software Engineering SE-3(1), 1977): exact for every graph, branches and tensors that several layers read too.
A tensor's transfer counts once; a plan sends it to every later segment that reads it, also of its own side.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from kernels.ir.graph import Graph
from kernels.ir.placement import deciders

GPU, CPU = "gpu", "cpu"
Arcs = Mapping[object, Mapping[object, float]]


@dataclass(frozen=True)
class Times:
    """The time of a layer on either side, with what is placed beside it; in milliseconds."""

    gpu: float
    cpu: float


@dataclass(frozen=True)
class Division:
    """One side or the other for each layer."""

    on_cpu: frozenset[str]
    ms: float
    """The time of a frame by the times that were given."""


@dataclass(frozen=True)
class Tensor:
    """A tensor that one layer makes and others read, by the layers that decide where it lies."""

    bytes: int
    maker: str
    readers: frozenset[str]


def tensors(graph: Graph) -> list[Tensor]:
    """Return the tensors that may have to be transferred. Bytes are those of a transfer: row-major fp32."""
    beside = deciders(graph)
    readers: dict[str, set[str]] = defaultdict(set)
    for node in graph.nodes:
        for name in node.inputs:
            readers[name].add(beside[node.output])
    found = []
    for node in graph.nodes:
        for name in node.outputs:
            others = readers[name] - {beside[node.output]}
            if others:
                size = 4
                for extent in graph.shapes[name]:
                    size *= extent
                found.append(Tensor(size, beside[node.output], frozenset(others)))
    return found


def divided(
    times: Mapping[str, Times], between: Iterable[Tensor], transfer_ms: Callable[[int], float]
) -> tuple[Division, Division]:
    """The cheapest division of all, which may leave a side nothing, and the cheapest that leaves each side a layer.

    `transfer_ms`: of so many bytes. Of a single layer both are the same.
    """
    arcs = _arcs(times, list(between), transfer_ms)
    best = _cut(arcs, times)
    if 0 < len(best.on_cpu) < len(times):
        return best, best
    first, *others = times  # it is on one side, and in a division of two parts some other layer on the other
    tries = [_cut(_forced(arcs, *pair), times) for other in others for pair in ((first, other), (other, first))]
    return best, min(tries, key=lambda each: each.ms, default=best)


def _arcs(times: Mapping[str, Times], between: Iterable[Tensor], transfer_ms: Callable[[int], float]) -> Arcs:
    """A layer on the GPU's side of a cut has its arc to the CPU cut, which costs its time on the GPU, and vice versa.

    A tensor has a vertex for either direction: its transfer is paid once, however many read it there.
    """
    arcs: dict[object, dict[object, float]] = defaultdict(lambda: defaultdict(float))
    for layer, each in times.items():
        arcs[layer][CPU] += each.gpu
        arcs[GPU][layer] += each.cpu
    for number, tensor in enumerate(between):
        cost = transfer_ms(tensor.bytes)
        arcs[tensor.maker][number, CPU] = cost
        arcs[number, GPU][tensor.maker] = cost
        for reader in tensor.readers:
            arcs[number, CPU][reader] = inf
            arcs[reader][number, GPU] = inf
    return arcs


def _forced(arcs: Arcs, gpu: str, cpu: str) -> Arcs:
    """A layer on each side."""
    return {**arcs, GPU: {**arcs[GPU], gpu: inf}, cpu: {**arcs[cpu], CPU: inf}}


def _cut(arcs: Arcs, times: Mapping[str, Times]) -> Division:
    """Cut by the shortest augmenting paths (J. Edmonds and R. M. Karp, Journal of the ACM 19(2), 1972)."""
    left: dict[object, dict[object, float]] = defaultdict(lambda: defaultdict(float))
    left |= {vertex: defaultdict(float, own) for vertex, own in arcs.items()}
    total = 0.0
    while True:
        before = _reached(left)
        if CPU not in before:
            return Division(frozenset(layer for layer in times if layer not in before), total)
        path: list[tuple[object, object]] = []
        vertex: object = CPU
        while vertex != GPU:
            path.append((before[vertex], vertex))
            vertex = before[vertex]
        flow = min(left[a][b] for a, b in path)
        total += flow
        for a, b in path:
            left[a][b] -= flow
            left[b][a] += flow


def _reached(left: Arcs) -> dict[object, object]:
    """Vertex -> the one before it on a shortest way from the GPU, where there is one."""
    before: dict[object, object] = {GPU: GPU}
    queue: deque[object] = deque([GPU])
    while queue and CPU not in before:
        vertex = queue.popleft()
        for follower, room in list(left[vertex].items()):
            if room > 0.0 and follower not in before:
                before[follower] = vertex
                queue.append(follower)
    return before
