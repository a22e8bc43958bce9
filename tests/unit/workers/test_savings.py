"""The memory that each way to save it saves."""

from __future__ import annotations

from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from workers.engines.pocketfarm.plans.savings import savings


def test_each_way_saves_and_the_budget_is_met() -> None:
    graph = load_workload(network="squeezenet_v1_0", onnx=None, seed=None)
    found = list(savings(graph, Options("opencl", memory_budget=9_000_000), Limits()))
    sizes = [one.memory.allocated for one in found if one.memory]
    assert len(sizes) == len(found) == 4 and sizes == sorted(sizes, reverse=True) and len(set(sizes)) >= 3
    assert sizes[-1] <= 9_000_000 and found[-1].way == "as asked for (split, parts of 1125000 bytes)"
    (*_, refused) = savings(graph, Options("opencl", memory_budget=1_000_000), Limits())
    assert refused.memory is None and "the network needs at least" in refused.why_not
