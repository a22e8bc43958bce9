"""Memory by layer of a plan: what lives while a layer runs, against the definition written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.model import Buffer, Copy, Plan, Pool, Port, Requires, SwapIn, SwapOut
from workers.engines.pocketfarm.plans.layer_memory import layer_memory


def plan_of(*steps: Copy | SwapIn | SwapOut) -> Plan:
    roles = {"in": "input", "w": "weight", "a": "activation", "b": "activation", "c": "activation", "out": "output"}
    sizes = {"in": 1, "w": 10, "a": 100, "b": 1000, "c": 10_000, "out": 2}
    buffers = tuple(Buffer(id=n, pool="all", offset=0, bytes=sizes[n], role=role) for n, role in roles.items())
    return Plan(
        name="p",
        api="cpu",
        precision="fp32",
        blob_bytes=0,
        files={},
        programs=(),
        pools=(Pool(id="all", bytes=99_999),),
        requires=Requires(total_bytes=1, max_buffer_bytes=1),
        buffers=buffers,
        steps=steps,
        inputs=(Port(name="in", buffer="in", shape=(1,)),),
        outputs=(Port(name="out", buffer="out", shape=(1,)),),
    )


def copy(layer: str, source: str, target: str) -> Copy:
    return Copy(layer=layer, source=source, target=target, bytes=1)


def test_activations_live_from_their_first_use_to_their_last() -> None:
    found = layer_memory(
        plan_of(copy("l1", "in", "a"), copy("l2", "a", "b"), copy("l2", "w", "b"), copy("l3", "b", "out"))
    )
    assert [(each.layer, each.live_bytes, each.weight_bytes) for each in found] == [
        ("l1", 103, 0), ("l2", 1103, 10), ("l3", 1003, 0),
    ]  # fmt: skip


def test_what_is_swapped_out_is_not_on_the_device() -> None:
    steps = (
        copy("l1", "in", "a"), SwapOut(layer="l1", buffer="a"), copy("l2", "in", "c"), copy("l3", "c", "b"),
        SwapIn(layer="l4", buffer="a"), copy("l4", "a", "out"),
    )  # fmt: skip
    live = {each.layer: each.live_bytes for each in layer_memory(plan_of(*steps))}
    assert live == {"l1": 103, "l2": 10_003, "l3": 11_003, "l4": 103}


@pytest.mark.parametrize("fuse", ["all", "none"])
def test_a_real_network_stays_within_its_pools(tmp_path: Path, fuse: str) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    plan = compile_graph(graph, Options(backend="cpu", fuse=fuse), Limits(cpu_device=True), spirv_cache=tmp_path).plan
    found = layer_memory(plan)
    others = sum(pool.bytes for pool in plan.pools if not pool.id.startswith("weights"))
    weights = sum(buffer.bytes for buffer in plan.buffers if buffer.role == "weight")
    assert len(found) > 3 and max(each.live_bytes for each in found) <= others
    assert sum(each.weight_bytes for each in found) == weights
