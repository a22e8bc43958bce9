"""The search for the best split of a network, on a device of which everything is known."""

from __future__ import annotations

from itertools import combinations

import pytest

from farm.cli.engine import split as cli
from kernels.compile import divide
from kernels.compile.cheapest import Times
from kernels.frontend.load import load_workload
from kernels.ir.placement import NOTHING, Placement, owners, words_of
from orchestrator.model.device import DeviceFacts
from orchestrator.model.errors import Unsupported
from tests.unit.kernels.back.graphs import generator
from workers.tuning.plan_comparison import Change, PlanRun
from workers.tuning.split_network import CPU, Split, Try, _Search, fitted

GRAPH = load_workload(network="lenet", onnx=None, seed=1)
LAYERS = [name for name, by in owners(GRAPH).items() if name == by]


class Device:
    """A frame takes what its layers take, and each border a fixed time and one by its bytes."""

    def __init__(self, gpu: dict[str, float], cpu: dict[str, float], fixed: float, per_byte: float) -> None:
        self.gpu, self.cpu, self.fixed, self.per_byte = gpu, cpu, fixed, per_byte
        self.ran: list[str] = []

    def frame_ms(self, on_cpu: str) -> float:
        if on_cpu in (NOTHING, CPU):
            return sum((self.gpu if on_cpu == NOTHING else self.cpu).values())
        placed = Placement.of(on_cpu).on_cpu(GRAPH)
        parts = divide(GRAPH, placed)
        moved = [name for part in parts for name in part.graph.inputs if name not in GRAPH.inputs]
        size = sum(4 * int(_numbers(name)) for name in moved)
        layers = sum((self.cpu if placed[name] else self.gpu)[name] for name in LAYERS)
        return layers + self.fixed * len(moved) + self.per_byte * size

    def run(self, on_cpu: str) -> PlanRun:
        self.ran.append(on_cpu)
        return PlanRun((self.frame_ms(on_cpu),), self.cpu if on_cpu == CPU else self.gpu)


def _numbers(name: str) -> float:
    size = 1.0
    for extent in GRAPH.shapes[name]:
        size *= extent
    return size


@pytest.mark.parametrize(("fixed", "per_byte"), [(0.0, 0.0), (0.3, 0.0), (0.1, 1e-4), (4.0, 1e-3)])
def test_the_best_of_all_splits_is_found(fixed: float, per_byte: float) -> None:
    """Few runs are enough: what was learnt of transfers holds for the splits that were not measured."""
    rng = generator()
    gpu, cpu = ({name: float(rng.uniform(0.1, 2.0)) for name in LAYERS} for _ in range(2))
    device = Device(gpu, cpu, fixed, per_byte)
    best = _Search(GRAPH, device.run, lambda *_: None).best()
    every = [words_of(GRAPH, some) for count in range(1, len(LAYERS)) for some in combinations(LAYERS, count)]
    assert best.ms == pytest.approx(min(map(device.frame_ms, every)))
    assert len(set(device.ran)) <= 2 + 5


def test_one_layer_is_refused() -> None:
    alone = load_workload(network="matmul_16", onnx=None, seed=1)
    with pytest.raises(Unsupported, match="one layer"):
        _Search(alone, lambda _: PlanRun((1.0,), {}), lambda *_: None)


def test_the_cost_of_transfers_is_fitted() -> None:
    true = [(1, 4000, 0.5 + 0.4), (2, 1000, 1.0 + 0.1), (3, 9000, 1.5 + 0.9)]
    assert fitted(true) == pytest.approx((0.5, 1e-4))
    assert fitted(true[:1]) == pytest.approx((0.45, 0.45 / 4000)), "one split: half and half"
    fixed, per_byte = fitted([(1, 9000, 0.1), (1, 1000, 0.9)])
    assert (fixed, per_byte) == pytest.approx((0.5, 0.0)), "no transfer takes less time because it is larger"


@pytest.mark.parametrize(
    ("over_gpu", "over_cpu", "cpu_over_gpu", "fastest"),
    [
        ((-0.3, -0.1), (-0.4, -0.2), (0.1, 0.2), "split"),
        ((0.1, 0.2), (-0.4, -0.2), (0.2, 0.9), "gpu"),
        ((-0.3, -0.1), (0.2, 0.4), (-0.4, -0.2), "cpu"),
        ((-0.3, 0.1), (-0.4, -0.2), (0.1, 0.2), ""),
        ((0.1, 0.2), (0.1, 0.4), (-0.1, 0.1), ""),
    ],
)
def test_it_says_which_is_fastest_only_where_that_is_told(
    over_gpu: tuple[float, float], over_cpu: tuple[float, float], cpu_over_gpu: tuple[float, float], fastest: str
) -> None:
    changes = [Change(sum(each) / 2, *each) for each in (over_gpu, over_cpu, cpu_over_gpu)]
    facts, times = DeviceFacts.model_construct(serial="x"), {"conv1": Times(1.0, 2.0)}
    found = Split(facts, (Try("layers a[b", 1.0, 1.0),), "layers a[b", 1.0, 1.0, 1.0, *changes, times, 0.1, 0.0)
    assert found.fastest == fastest and found.gains == (fastest == "split")
    assert cli.render(found)
