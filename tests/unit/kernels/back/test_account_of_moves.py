"""The moves of plans, which compute nothing: the account is complete, and networks that need no moves have none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.frontend.networks import NETWORKS
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.data_movement import PORTS, Movement, movements
from kernels.plan.model import Dispatch, Plan

from .graphs import Builder, check, densely_connected, generator, inputs_of, some

pytestmark = pytest.mark.slow

PHONE, DESKTOP = Limits(local_bytes=32 << 10), Limits(unified_memory=False, local_bytes=48 << 10)
WITHOUT_MOVES = ("squeezenet_v1_1", "mobilenet_v2", "resnet18", "googlenet")


def _plan(graph: Graph, precision: str = "fp32", algorithm: str = "auto", limits: Limits = PHONE) -> Plan:
    return compile_graph(graph, Options("opencl", precision, algorithm), limits).plan  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "network",
    some([*WITHOUT_MOVES, "squeezenet_v1_0", "mobilenet_v1", "cifar10_quick"], 3, "moved"),
)
@pytest.mark.parametrize("limits", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_a_network_moves_nothing_but_its_input(network: str, limits: Limits) -> None:
    """It holds in halves: the classifier writes the output in single. On a desktop the first layer reads the input."""
    graph = NETWORKS[network](None)  # without weights: what a plan moves does not depend on them
    for precision in ("fp32", "fp16"):
        moved = [one.kind for one in movements(_plan(graph, precision, limits=limits))]
        assert moved == (["input"] if limits is PHONE else []), precision


@pytest.mark.parametrize("network", some([*WITHOUT_MOVES, "inception_v3"], 2, "cpu"))
def test_blocks_of_sixteen_channels_stay_from_layer_to_layer_on_the_cpu(network: str) -> None:
    plan = compile_graph(NETWORKS[network](None), Options("cpu"), Limits()).plan
    assert movements(plan) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "sizes"), [("resnet50", {}), ("inception_v3", {}), ("alexnet", {"size": 99}), ("vgg16", {"size": 32})]
)
def test_a_large_network_moves_nothing_between_its_layers(network: str, sizes: dict[str, int]) -> None:
    """Two for small pictures: their first dense layers alone would take the compiler a gigabyte more."""
    plan = _plan(NETWORKS[network](None, **sizes))
    assert {one.kind for one in movements(plan)} == {"input"}


def test_every_step_that_computes_nothing_is_in_the_account() -> None:
    """A network's kernels are those of its layers; whatever else runs is listed."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    plan = _plan(graph)
    listed = {one.index for one in movements(plan)}
    layers = {node.name for node in graph.nodes}
    others = {i for i, step in enumerate(plan.steps) if step.layer not in layers}
    assert others == listed != set()
    assert all(plan.steps[i].flops == 0 for i in listed if isinstance(plan.steps[i], Dispatch))  # type: ignore[union-attr]


def test_bytes_at_the_ports_are_those_of_the_tensors() -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(2, 6, 5, 7), 10, (3, 3), (1, 1), (1, 1, 1, 1)))
    given, made = movements(_plan(graph))
    assert (given.kind, given.bytes) == ("input", 4 * 2 * 5 * 7 * (6 + 8))
    assert (made.kind, made.bytes) == ("output", 4 * 2 * 5 * 7 * (12 + 10))
    given, made = movements(_plan(graph, "fp16"))
    assert (given.bytes, made.bytes) == (2 * 5 * 7 * (4 * 6 + 2 * 8), 2 * 5 * 7 * (2 * 12 + 4 * 10))


def _transposed(b: Builder) -> str:
    x = b.conv(b.input(1, 8, 4, 6), 8, (1, 1))
    return b.conv(b.node("transpose", [x], (1, 8, 6, 4), perm=(0, 1, 3, 2)), 4, (1, 1))


def _odd_concat(b: Builder) -> str:
    x = b.input(1, 8, 4, 6)
    parts = [b.conv(x, 6, (1, 1)), b.conv(x, 5, (1, 1))]
    return b.node("concat", parts, (1, 11, 4, 6), axis=1)


def _odd_slice(b: Builder) -> str:
    x = b.conv(b.input(1, 8, 4, 6), 8, (1, 1))
    return b.conv(b.node("slice", [x], (1, 3, 4, 6), axis=1, start=2, stop=5), 4, (1, 1))


@pytest.mark.parametrize(
    ("case", "algorithm", "wanted", "why"),
    [
        (_transposed, "auto", ["layout", "transpose", "layout"], "the graph transposes"),
        (_odd_concat, "auto", ["concat", "concat"], "it starts at channel 6, in the middle of a stack"),
        (_odd_slice, "auto", ["layout", "slice", "layout"], "does not begin and end at whole stacks"),
        (lambda b: b.conv(b.input(1, 8, 4, 6), 8, (3, 3)), "im2col", ["workspace"], "taps side by side"),
    ],
    ids=["transpose", "concat", "slice", "im2col"],
)
def test_what_a_graph_forces_is_listed_with_its_reason(
    case: Callable[[Builder], str], algorithm: str, wanted: list[str], why: str
) -> None:
    build = Builder()
    beyond = _beyond_ports(_plan(build.outputs(case(build)), algorithm=algorithm))
    assert [one.kind for one in beyond] == wanted
    assert all(one.bytes > 0 for one in beyond)
    assert any(why in one.why for one in beyond)


def test_a_change_of_layout_names_both_sides() -> None:
    build = Builder()
    first, _, last = _beyond_ports(_plan(build.outputs(_transposed(build))))
    assert first.why == "`conv0` leaves stacks of four channels f32, `transpose1` reads row-major f32"
    assert last.why == "`transpose1` leaves row-major f32, `conv2` reads stacks of four channels f32"


@pytest.mark.parametrize(("channels", "moved"), [(8, []), (12, []), (6, ["layout"])])
@pytest.mark.parametrize("images", [1, 3])
def test_a_dense_layer_behind_a_flatten_reads_whole_stacks_as_they_lie(
    channels: int, moved: list[str], images: int
) -> None:
    build = Builder()
    x = build.conv(build.input(images, 5, 3, 4), channels, (1, 1))
    flat = build.node("reshape", [x], (images, channels * 12), shape=(images, channels * 12))
    graph = build.outputs(build.node("dense", [flat, build.constant(channels * 12, 9), build.constant(9)], (images, 9)))
    for precision in ("fp32", "fp16"):
        assert [one.kind for one in _beyond_ports(_plan(graph, precision))] == moved
    check(graph, *some(("fp32", "fp16"), 1, f"{channels}{images}"))


def test_a_dense_layer_reads_its_part_of_a_concat() -> None:
    build = Builder()
    x = build.input(2, 4, 3, 5)
    part = build.conv(x, 8, (1, 1))
    whole = build.node("concat", [build.conv(x, 4, (1, 1)), part], (2, 12, 3, 5), axis=1)
    flat = build.node("reshape", [part], (2, 120), shape=(2, 120))
    graph = build.outputs(whole, build.node("dense", [flat, build.constant(120, 7)], (2, 7)))
    assert _beyond_ports(_plan(graph)) == []
    check(graph)


@pytest.mark.parametrize("images", [1, 2])
def test_layers_that_read_all_layers_before_them_move_nothing(images: int) -> None:
    graph = densely_connected(images, 8)
    assert _beyond_ports(_plan(graph)) == []
    check(graph)


def test_layers_that_read_all_layers_before_them_move_nothing_on_the_cpu() -> None:
    plan = compile_graph(densely_connected(1, 16), Options("cpu"), Limits()).plan
    assert {step.program for step in plan.steps if isinstance(step, Dispatch)} == {"affine", "conv2d_nc16", "from_nc16"}
    assert _beyond_ports(plan) == []


def test_a_flattened_image_that_is_wanted_too_stays_row_major() -> None:
    build = Builder()
    flat = build.node("reshape", [build.conv(build.input(1, 4, 3, 5), 8, (1, 1))], (1, 120), shape=(1, 120))
    check(build.outputs(flat, build.node("dense", [flat, build.constant(120, 7)], (1, 7))))


def test_infinities_reach_a_dense_layer_as_ieee_says() -> None:
    """A lane beyond the last channel is NaN here; it must not reach the results."""
    from kernels.plan.opencl_interpreter import run_opencl

    build = Builder()
    x = build.conv(build.input(1, 4, 2, 2), 6, (1, 1))
    flat = build.node("reshape", [x], (1, 24), shape=(1, 24))
    graph = build.outputs(build.node("dense", [flat, build.constant(24, 5)], (1, 5)))
    inputs = inputs_of(graph, generator(7))
    inputs["x"][0, 1, 0, 0] = np.inf
    weight, dense = (graph.constants[node.inputs[1]].astype(np.float64) for node in (graph.nodes[0], graph.nodes[2]))
    bias = graph.constants[graph.nodes[0].inputs[2]]
    with np.errstate(invalid="ignore"):
        image = np.einsum("kc,chw->khw", weight[:, :, 0, 0], inputs["x"][0].astype(np.float64)) + bias[:, None, None]
        wanted = image.reshape(-1) @ dense
    (got,) = run_opencl(compile_graph(graph, Options("opencl"), Limits(cpu_device=True)), inputs).outputs.values()
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted))
    assert np.array_equal(np.isposinf(got[0]), np.isposinf(wanted))


def _beyond_ports(plan: Plan) -> list[Movement]:
    return [one for one in movements(plan) if one.kind not in PORTS]
