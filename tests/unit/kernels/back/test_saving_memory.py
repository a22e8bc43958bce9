"""Ways to save memory change how much of it a plan takes, never what it computes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compile import compile_graph
from kernels.errors import OptionError, PlanError
from kernels.frontend.networks import NETWORKS
from kernels.frontend.networks.builder import NetworkBuilder
from kernels.frontend.networks.pynet import pynet
from kernels.ir.graph import Graph
from kernels.lower.gpu import lower_gpu
from kernels.memory.fit_to_budget import lower_to_fit
from kernels.memory.layout import lives_of, plan_memory
from kernels.memory.swap import Swaps
from kernels.options import Limits, Options
from kernels.passes import optimise, prepare
from kernels.passes.channels.split_channels import packed_elements, split_channels
from kernels.passes.order import order, peak_elements
from kernels.plan.live_memory import live_memory
from kernels.plan.model import Plan, SwapIn, SwapOut
from kernels.plan.opencl_interpreter import run_opencl
from kernels.plan.validate import validate
from kernels.reference import evaluate
from tests.unit.kernels.front.test_passes import assert_same_meaning

from .graphs import Builder, check, generator, inputs_of, relative_error, some

pytestmark = pytest.mark.slow


@st.composite
def pyramids(draw: st.DrawFn) -> Graph:
    """Small networks in PyNET's manner: blocks of several windows, concats of concats, residuals, up and down."""
    net = NetworkBuilder("pyramid", draw(st.integers(1, 99)), (draw(st.integers(1, 2)), draw(st.integers(2, 9)), 8, 12))
    full, half = [_layer(net, "start", net.input, draw(st.sampled_from([4, 6, 8])), 3, True)], []
    for index in range(draw(st.integers(2, 5))):
        name, kind = f"n{index}", draw(st.sampled_from(["block", "residual", "down", "up", "join", "sum"]))
        x, other = draw(st.sampled_from(full)), draw(st.sampled_from(full))
        match kind:
            case "block":
                full.append(_block(net, name, x, draw(st.sampled_from([4, 6])), draw(st.booleans())))
            case "residual":
                block = _block(net, f"{name}.block", x, 4, True)
                matching = _layer(net, f"{name}.match", x, net.channels(block), 1, False)
                full.append(net.add(name, block, matching))
            case "down":
                half.append(net.max_pool(name, x, 2))
            case "up" if half:
                full.append(_layer(net, name, net.upsample(f"{name}.up", draw(st.sampled_from(half))), 4, 3, False))
            case "sum":
                full.append(net.add(name, x, _layer(net, f"{name}.match", other, net.channels(x), 3, False)))
            case _:
                full.append(net.concat(name, (x, other) if x != other else (x, full[0])) if x != full[0] else x)
    outputs = dict.fromkeys([full[-1], *([full[-2]] if draw(st.booleans()) and len(full) > 1 else [])])
    return net.finish(*(net.sigmoid(_layer(net, f"end{i}", x, 3, 3, False)) for i, x in enumerate(outputs)))


def _block(net: NetworkBuilder, name: str, x: str, k: int, norm: bool) -> str:
    return net.concat(name, [_layer(net, f"{name}_{window}", x, k, window, norm) for window in (3, 5)])


def _layer(net: NetworkBuilder, name: str, x: str, k: int, window: int, norm: bool) -> str:
    padded = net.reflect_pad(f"{name}.pad", x, window // 2) if window > 1 else x
    out = net.conv(name, padded, k, window)
    return net.relu(net.instance_norm(f"{name}.norm", out) if norm else out)


def small_pyramid() -> Graph:
    """PyNET's ways at two sizes: features read late, concats of concats, blocks that add their input."""
    net = NetworkBuilder("small_pyramid", 5, (1, 4, 24, 32))
    own = _layer(net, "own", net.input, 16, 3, False)
    below = _layer(net, "below", net.max_pool("pool", own, 2), 16, 3, True)
    a, b = (_layer(net, f"up{way}", net.upsample(f"up{way}.up", below), 16, 3, False) for way in "ab")
    x = _block(net, "d5", net.concat("d4", (_block(net, "d3", net.concat("d2", (own, a)), 16, False), own)), 16, True)
    for name in ("d7", "d8"):
        x = net.add(name, _block(net, f"{name}.block", x, 16, True), x)
    x = _layer(net, "d10", net.concat("d9", (x, b, own)), 16, 3, False)
    images = [net.sigmoid(_layer(net, name, y, 3, 3, False)) for name, y in (("image1", x), ("image2", below))]
    return net.finish(*images)


@settings(max_examples=50, deadline=None)
@given(graph=pyramids(), concats=st.booleans(), stacks=st.integers(0, 3))
def test_parts_and_another_order_keep_the_meaning(graph: Graph, concats: bool, stacks: int) -> None:
    fused = optimise(graph, reflect=True)
    nodes, largest = list(fused.nodes), 4 * 8 * 12 * 2 * stacks
    parts = split_channels(fused, concats=concats, largest=largest)
    assert fused.nodes == nodes
    assert_same_meaning(graph, parts)
    ordered = order(parts)
    assert_same_meaning(graph, ordered)
    assert peak_elements(ordered) <= peak_elements(parts)
    ends = {*graph.inputs, *graph.outputs}
    if concats:
        assert not [node for node in parts.nodes if node.op == "concat" and node.output not in ends]
    if stacks > 0:
        sizes = [packed_elements(parts.shapes[node.output]) for node in parts.nodes if node.output not in ends]
        assert max(sizes) <= max(largest, 4 * 8 * 12 * 2)


@pytest.mark.parametrize(
    "options",
    [{"concat": "split"}, {"concat": "join"}, {"in_place": False}, {"concat": "split", "algorithm": "implicit_gemm"}],
    ids=str,
)
def test_a_pyramid_runs_with_every_choice(options: dict[str, Any]) -> None:
    graph = small_pyramid()
    bundle = compile_graph(graph, Options("opencl", **options), Limits(cpu_device=True))
    _agrees(graph, bundle)


def _agrees(graph: Graph, bundle: Any) -> None:
    inputs = inputs_of(graph, generator(4))
    wanted = evaluate(graph, inputs)
    for name, got in run_opencl(bundle, inputs, repeats=2).outputs.items():
        assert relative_error(got, wanted[name]) <= 5e-5, name


def test_each_way_takes_less_memory() -> None:
    graph = pynet(None, size=(64, 64))
    sizes = {
        words: arena_bytes(graph, Options("opencl", **options))
        for words, options in (
            ("as it is", {"in_place": False, "concat": "join"}),
            ("in place", {"concat": "join"}),
            ("split", {"concat": "split"}),
        )
    }
    assert sizes["split"] < 0.8 * sizes["in place"] < 0.8 * 0.8 * sizes["as it is"]


def arena_bytes(graph: Graph, options: Options) -> int:
    draft = lower_gpu(prepare(graph, options, split=options.concat == "split"), options, Limits())
    pools = plan_memory(draft, alignment=256, largest=0).pools
    return next(pool.bytes for pool in pools if pool.id == "arena")


def test_a_flattened_tensor_is_not_overwritten_before_it_is_read() -> None:
    """The dense layer reads the image itself, after a sigmoid that would take its place."""
    build = Builder()
    image = build.conv(build.input(1, 8, 4, 4), 8, (1, 1))
    flat = build.node("reshape", [image], (1, 128), shape=(1, 128))
    sigmoid = build.node("sigmoid", [image], (1, 8, 4, 4))
    dense = build.node("dense", [flat, build.constant(128, 8)], (1, 8))
    check(build.outputs(sigmoid, dense), "fp32", order="memory")


def test_a_budget_is_met_by_swapping_and_the_plan_says_so() -> None:
    graph = small_pyramid()
    options = Options("opencl", algorithm="window")  # one without a workspace, which a budget would make smaller
    free = compile_graph(graph, options, Limits(cpu_device=True)).plan
    budget = free.requires.total_bytes - arena(free) * 3 // 5
    options = replace(options, memory_budget=budget)
    bundle = compile_graph(graph, options, Limits(cpu_device=True))
    assert bundle.plan.requires.total_bytes <= budget
    assert "swap" in str(bundle.plan.options["memory"])
    assert any(isinstance(step, SwapIn) for step in bundle.plan.steps)
    _agrees(graph, bundle)
    words = rf"needs at least \d+ bytes .* more than the memory budget of {budget}; .*switched off"
    with pytest.raises(PlanError, match=words):
        compile_graph(graph, replace(options, swap="never"), Limits())


def test_tensors_may_be_larger_where_the_device_has_its_own_memory() -> None:
    options = Options("opencl", algorithm="window", memory_budget=100_000)
    found = {
        unified: compile_graph(small_pyramid(), options, Limits(unified_memory=unified)) for unified in (True, False)
    }
    words = {unified: bundle.plan.options["memory"] for unified, bundle in found.items()}
    assert words == {True: "split, parts of 12500 bytes, swap", False: "split, parts of 20000 bytes, swap"}
    assert all(bundle.plan.requires.total_bytes <= 100_000 for bundle in found.values())


@pytest.mark.parametrize("backend", some(("opencl", "vulkan"), 1, "offload"))
def test_weights_wait_in_host_memory_where_the_budget_demands_it(backend: str) -> None:
    graph = small_pyramid()
    limits = Limits(cpu_device=backend == "opencl")
    bundle = compile_graph(graph, Options(backend, memory_budget=60_000), limits)  # type: ignore[arg-type]
    plan = bundle.plan
    weights = sum(buffer.bytes for buffer in plan.buffers if buffer.role == "offloaded")
    assert plan.requires.total_bytes <= 60_000 < weights
    live = live_memory(plan)
    assert live.most <= live.allocated == plan.requires.total_bytes
    if backend == "opencl":
        _agrees(graph, bundle)


@pytest.mark.parametrize("unified", [True, False])
def test_weights_stay_on_the_device_as_far_as_the_budget_allows(unified: bool) -> None:
    """Six layers of equal weights, each read once: a layer runs beside as many of the others' as there is room for."""
    net = NetworkBuilder("chain", 3, (1, 32, 8, 8))
    x = net.input
    for index in range(6):
        x = _layer(net, f"layer{index}", x, 32, 3, False)
    graph, limits = net.finish(x), Limits(unified_memory=unified)
    options = Options("opencl", algorithm="window")
    weight = 32 * 32 * 9 * 4
    moved = []
    for budget in range(2 * weight, 9 * weight, weight // 2):
        plan = compile_graph(graph, replace(options, memory_budget=budget), limits).plan
        moved.append(swapped_bytes(plan))
        live = live_memory(plan)
        assert live.most <= plan.requires.total_bytes <= budget and max(live.activations) < weight
        assert (max(live.swapped_weights) >= weight) == (moved[-1] > 0)
        assert not moved[-1] or budget - plan.requires.total_bytes < weight, "another would have stayed"
    assert moved == sorted(moved, reverse=True) and moved[0] >= 4 * weight and moved[-1] == 0


def swapped_bytes(plan: Plan) -> int:
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    return sum(sizes[step.buffer] for step in plan.steps if isinstance(step, SwapIn | SwapOut))


def arena(plan: Plan) -> int:
    return sum(pool.bytes for pool in plan.pools if pool.id.startswith("arena"))


def test_no_allocation_is_above_the_largest() -> None:
    graph = small_pyramid()
    largest = 4 * 12 * 24 * 32  # less than a tensor of 16 channels
    bundle = compile_graph(graph, Options("opencl"), Limits(max_buffer_bytes=largest, cpu_device=True))
    pools = [pool.bytes for pool in bundle.plan.pools if pool.id != "ports"]
    assert max(pools) <= largest and len(pools) > 2
    _agrees(graph, bundle)


def test_a_budget_that_nothing_meets_is_refused_with_the_figures() -> None:
    graph = small_pyramid()
    words = r"at least \d+ bytes .*\(weights \d+, inputs 12288, outputs 11520, .* than the memory budget of 30000"
    with pytest.raises(PlanError, match=words):
        compile_graph(graph, Options("opencl", memory_budget=30_000), Limits())


@settings(max_examples=25, deadline=None)
@given(graph=pyramids(), share=st.floats(0.3, 1.0), offload=st.booleans(), ahead=st.booleans())
def test_swapping_keeps_to_the_budget_and_to_the_rules(graph: Graph, share: float, offload: bool, ahead: bool) -> None:
    options = Options("opencl")
    draft = lower_gpu(prepare(graph, options, split=True), options, Limits())
    peak = _peak(draft)
    weights = {name for name, buffer in draft.buffers.items() if offload and buffer.role == "weight"}
    peak += sum(draft.buffers[name].size for name in weights)
    try:
        swapped = Swaps(draft).swapped(int(peak * share), offloaded=weights, ahead=ahead)
    except PlanError as e:
        assert "alone needs" in str(e)
        return
    assert _peak(swapped) <= peak * share
    away = set(weights)
    assert {name for name, buffer in swapped.buffers.items() if buffer.role == "offloaded"} == away
    for step in swapped.steps:
        if isinstance(step, SwapOut):
            away.add(str(step.host))
        if isinstance(step, SwapIn):
            assert step.host in away
    moves = [step for step in swapped.steps if isinstance(step, SwapOut | SwapIn)]
    kept = [step for step in swapped.steps if step not in moves]
    assert [step.layer for step in kept] == [step.layer for step in draft.steps]
    if not ahead:
        moved = Swaps(draft).moved_bytes(int(peak * share), offloaded=weights)
        assert moved == sum(swapped.buffers[step.buffer].size for step in moves)


def _peak(draft: Any) -> int:
    lives = lives_of(draft)
    changes = [0] * (len(draft.steps) + 1)
    for name, buffer in draft.buffers.items():
        if name in lives and buffer.role in ("activation", "scratch", "offloaded"):
            changes[lives[name].first] += buffer.size
            changes[lives[name].last + 1] -= buffer.size
    peak = now = 0
    for change in changes:
        now += change
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize(("split", "precision"), [("rows", "fp32"), ("channels", "fp32"), ("channels", "fp16")])
def test_winograds_workspace_is_kept_and_gives_the_same(split: str, precision: str) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(2, 22, 25, 31), 9, (3, 3), (1, 1), (1, 1, 1, 1), activation=("relu",)))
    limit = {"rows": 200_000, "channels": 500_000}[split] // (2 if precision == "fp16" else 1)
    options = {"algorithm": "winograd", "workspace": limit, "workspace_split": split}
    tolerance = {"fp32": 1e-4, "fp16": 2e-2}[precision]
    check(graph, precision, tolerance=tolerance, **options)
    plan = compile_graph(graph, Options("opencl", precision, **options), Limits()).plan  # type: ignore[arg-type]
    scratch = [buffer.bytes for buffer in plan.buffers if buffer.role == "scratch"]
    assert len(scratch) == 2 and sum(scratch) <= limit
    whole = compile_graph(graph, Options("opencl", precision, algorithm="winograd"), Limits()).plan  # type: ignore[arg-type]
    assert len(plan.steps) > len(whole.steps)
    with pytest.raises(OptionError, match=rf"workspace of 1000 bytes is too small .* split by {split} it needs \d+"):
        compile_graph(graph, Options("opencl", precision, **{**options, "workspace": 1000}), Limits())  # type: ignore[arg-type]


def test_a_swap_without_its_counterpart_is_refused() -> None:
    graph = small_pyramid()
    plan = compile_graph(graph, Options("opencl"), Limits()).plan
    buffer = next(b for b in plan.buffers if b.role == "activation")
    wrong = plan.model_copy(update={"steps": (*plan.steps, SwapIn(layer="l", buffer=buffer.id))})
    with pytest.raises(PlanError, match="swapped in before it was swapped out"):
        validate(wrong, Limits())
    other = next(b for b in plan.buffers if b.bytes != buffer.bytes)
    wrong = plan.model_copy(update={"steps": (*plan.steps, SwapOut(layer="l", buffer=buffer.id, host=other.id))})
    with pytest.raises(PlanError, match="no place"):
        validate(wrong, Limits())


@cache
def pynet_full() -> Graph:
    return NETWORKS["pynet_full"](1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "precision", "budget", "swap"),
    [
        ("implicit_gemm", "fp32", 4 << 30, "never"),
        ("implicit_gemm", "fp32", 2 * 10**9, "auto"),
        ("winograd", "fp32", 4 * 10**9, "auto"),
    ],
)
def test_pynet_whole_fits_as_on_study_ms_phone(algorithm: str, precision: str, budget: int, swap: str) -> None:
    """Study M: 2 GB with implicit GEMM only, 4 GB with Winograd, no object above 1 GB."""
    options = Options("vulkan", precision, algorithm=algorithm, memory_budget=budget, swap=swap)  # type: ignore[arg-type]
    limits = Limits(max_buffer_bytes=1 << 30)
    draft, layout = lower_to_fit(pynet_full(), options, limits)
    pools = layout.pools
    assert sum(pool.bytes for pool in pools) <= budget
    assert max(pool.bytes for pool in pools) <= 1 << 30
    assert any(isinstance(step, SwapOut) for step in draft.steps) == (budget <= 2 * 10**9 or algorithm == "winograd")
