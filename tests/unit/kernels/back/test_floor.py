"""The lower bound of a plan's memory: never above what some plan takes, and what is below it is refused at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kernels.compile import compile_graph
from kernels.errors import CompileError, PlanError, interruptible
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph
from kernels.lower.gpu import lower_gpu
from kernels.memory.choose_layout import place_memory, total_bytes
from kernels.memory.fit_to_budget import lower_to_fit
from kernels.memory.floor import floor_of
from kernels.memory.swap import Swaps
from kernels.options import Limits, Options
from kernels.passes import prepare
from kernels.passes.channels.split_channels import MOST_PARTS
from kernels.plan.model import Pool

from .any_graph import any_graph, any_limits, any_options
from .graphs import Builder
from .test_saving_memory import pyramids

pytestmark = pytest.mark.slow

graphs = any_graph() | pyramids()
gpu_options = st.one_of(any_options("opencl"), any_options("vulkan")).flatmap(
    lambda options: st.sampled_from(["auto", "direct"]).map(lambda algorithm: replace(options, algorithm=algorithm))
)


def fixed(pools: list[Pool]) -> int:
    return total_bytes([pool for pool in pools if not pool.id.startswith("arena")])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs, gpu_options, any_limits("opencl"), st.sampled_from([0, 1, 2, 4, 9]))
def test_no_plan_takes_less(graph: Graph, options: Options, limits: Limits, stacks: int) -> None:
    prepared = prepare(graph, options, split=options.concat == "split", largest_bytes=stacks * 4 * 8 * 12 * 4)
    try:
        draft = lower_gpu(prepared, options, limits)
    except CompileError:
        assume(False)
    pools = place_memory(draft, options, limits).pools
    floor, swapped = floor_of(prepared, options), floor_of(prepared, options, swap=True)
    assert floor.total <= total_bytes(pools)
    assert floor.total - floor.activations <= fixed(pools)
    assert swapped.total <= floor.total
    _check_swapped(swapped.total, draft, options, limits)


def _check_swapped(floor: int, draft: object, options: Options, limits: Limits) -> None:
    """Compare the floor with the least that swapping can do with."""
    low, high = 1, 1 << 24
    while low < high:
        middle = (low + high) // 2
        try:
            Swaps(draft).swapped(middle)  # type: ignore[arg-type]
            high = middle
        except PlanError:
            low = middle + 1
    assert floor <= total_bytes(place_memory(Swaps(draft).swapped(low), options, limits).pools)  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs, gpu_options, any_limits("opencl"), st.floats(0.05, 1.0))
def test_what_the_search_meets_is_never_refused(graph: Graph, options: Options, limits: Limits, share: float) -> None:
    """The same plan with and without the bound, or none."""
    options = replace(options, order="memory")
    try:
        whole = total_bytes(lower_to_fit(graph, options, limits)[1].pools)
    except CompileError:
        assume(False)
    tight = replace(options, memory_budget=max(1, int(whole * share)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kernels.memory.fit_to_budget._Search.may_fit", lambda *_: True)
        searched = outcome(graph, tight, limits)
    assert outcome(graph, tight, limits) == searched


def outcome(graph: Graph, options: Options, limits: Limits) -> str:
    try:
        return lower_to_fit(graph, options, limits)[0].saved
    except PlanError:
        return "refused"


@pytest.mark.parametrize(("budget", "swap"), [(100_000, "auto"), (1_000_000, "never"), (4_000_000, "never")])
def test_a_budget_that_no_plan_can_meet_is_refused_before_one_is_sought(budget: int, swap: str) -> None:
    graph = load_workload(network="squeezenet_v1_0", onnx=None, seed=1)
    asked: list[int] = []
    words = rf"needs at least \d+ bytes .*\(weights \d+, inputs 618352, outputs 4000.*\), \d+ more than .* {budget};"
    with pytest.raises(PlanError, match=words), interruptible(lambda: asked.append(1)):
        compile_graph(graph, Options("opencl", memory_budget=budget, swap=swap), Limits())  # type: ignore[arg-type]
    assert len(asked) < 12 * MOST_PARTS


def test_more_parts_than_are_tried_are_told() -> None:
    """Two layers between wide tensors: parts of parts."""
    build = Builder()
    wide = build.conv(build.input(1, 4, 64, 64), 2048, (1, 1))
    graph = build.outputs(build.conv(build.conv(wide, 2048, (1, 1)), 4, (1, 1)))
    weights = 2048 * 2048 * 4
    with pytest.raises(PlanError, match=rf"smaller parts were not tried: .* more than {MOST_PARTS} further steps"):
        compile_graph(graph, Options("opencl", memory_budget=weights + 600_000, swap="never"), Limits())


def test_weights_that_are_the_same_count_once() -> None:
    build = Builder()
    x = build.conv(build.input(1, 8, 5, 5), 8, (3, 3))
    same = replace_weights(build.outputs(build.conv(x, 8, (3, 3))))
    bound, plan = floor_of(same, Options("opencl")), compile_graph(same, Options("opencl"), Limits()).plan
    assert bound.weights == 8 * 8 * 9 * 4
    assert bound.total <= plan.requires.total_bytes


def replace_weights(graph: Graph) -> Graph:
    """Return the graph with the first layer's weights in every layer."""
    names = [node.inputs[1] for node in graph.nodes]
    return replace(graph, constants={**graph.constants, **dict.fromkeys(names, graph.constants[names[0]])})
