"""Activations in images: every operation and small networks through OpenCL, where they lie, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels.catalog.convolution import ALGORITHMS, convolution_of
from kernels.catalog.convolution.winograd import OUTPUT
from kernels.compile import compile_graph
from kernels.errors import OptionError, PlanError
from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.fusion import FUSIONS
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.data_movement import movements
from kernels.plan.model import Copy, Plan
from kernels.plan.opencl_interpreter import run_opencl
from kernels.plan.validate import validate
from kernels.reference import evaluate

from .graphs import Builder, check, relative_error, relu_of, side_by_side, some
from .test_convolution import SHAPES
from .test_fusion import block
from .test_operations import CASES, concat_of

pytestmark = pytest.mark.slow


IN_BUFFERS = ("scalar", "dot", "matrix_units")
"""Algorithms that write to buffers only begin so."""


def _plan(graph: Graph, limits: Limits = Limits(), **options: str) -> Plan:  # noqa: B008  (frozen)
    return compile_graph(graph, Options("opencl", layout="image", **options), limits).plan  # type: ignore[arg-type]


def _inside(plan: Plan) -> set[str]:
    return {buffer.id for buffer in plan.buffers if buffer.image is not None}


def _case(name: str) -> Graph:
    build = Builder()
    return build.outputs(CASES[name](build))


def test_operations() -> None:
    check(side_by_side({name: _case(name) for name in CASES}), layout="image")


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if not name.startswith(IN_BUFFERS)])
def test_convolutions_that_an_algorithm_fits(algorithm: str) -> None:
    """Four of them side by side, other ones in every run."""
    graphs, options = {}, Options("opencl", layout="image")
    for name, (size, *rest) in SHAPES.items():
        build = Builder()
        graph = build.outputs(build.conv(build.input(*size), *rest, activation=relu_of(size)))
        if ALGORITHMS[algorithm].why_not(convolution_of(graph, graph.nodes[0]), options, Limits()) is None:
            graphs[name] = graph
    chosen = {name: graphs[name] for name in some(graphs, 4, algorithm)}
    tolerance = 1e-4 if algorithm.startswith("winograd") else None
    run = check(side_by_side(chosen), layout="image", algorithm=algorithm, cpu_device=False, tolerance=tolerance)
    assert len(run.outputs) == len(chosen) >= 2


@pytest.mark.parametrize("parts", [[4, 8], [3, 5, 4], [4, 3, 5, 8]])
def test_concats(parts: list[int]) -> None:
    check(concat_of(parts), layout="image")


@pytest.mark.parametrize("fuse", ["all", "none", *FUSIONS])
def test_with_fusions_on_and_off(fuse: str) -> None:
    check(block(), layout="image", fuse=fuse)


def test_every_tensor_can_be_kept() -> None:
    check(block(), layout="image", keep_all=True)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["lenet", "cifar10_quick", "squeezenet_v1_1", "mobilenet_v2"])
def test_networks(network: str) -> None:
    graph = load_workload(network=network, onnx=None, seed=3)
    inputs = random_inputs(graph, 5)
    run = run_opencl(compile_graph(graph, Options("opencl", layout="image"), Limits(cpu_device=True)), inputs)
    wanted = evaluate(graph, inputs)
    assert all(relative_error(got, wanted[name]) <= 5e-5 for name, got in run.outputs.items())


@pytest.mark.parametrize("network", ["squeezenet_v1_1", "mobilenet_v2", "resnet18", "googlenet"])
def test_a_network_of_convolutions_moves_nothing_and_has_its_activations_in_images(network: str) -> None:
    plan = _plan(load_workload(network=network, onnx=None, seed=1))
    assert {one.kind for one in movements(plan)} == {"input"}
    outside = {b.id for b in plan.buffers if b.role in ("activation", "output") and b.image is None}
    assert outside == {k.removeprefix("buffer:") for k in plan.options if k.startswith("buffer:")}
    assert all(plan.options[f"buffer:{name}"] == "it has one pixel" for name in outside)
    assert len(_inside(plan)) > 5 * len(outside)


def test_images_of_one_width_share_objects_at_different_times() -> None:
    plan = _plan(load_workload(network="squeezenet_v1_1", onnx=None, seed=1))
    pools = {pool.id: pool for pool in plan.pools if pool.image is not None}
    members = {name: [b for b in plan.buffers if b.pool == name] for name in pools}
    assert max(map(len, members.values())) > 2
    for name, pool in pools.items():
        assert pool.image is not None
        assert pool.image.height == max(b.image.height for b in members[name] if b.image)
        assert {b.image.width for b in members[name] if b.image} == {pool.image.width}


def test_pixels_of_a_stack_are_rows_of_the_image() -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(3, 6, 5, 7), 10, (1, 1)))
    images = {b.id: (b.image.width, b.image.height, b.image.format) for b in _plan(graph).buffers if b.image}
    assert images == {"x~1": (7, 3 * 2 * 5, "rgba32f"), "conv0:0": (7, 3 * 3 * 5, "rgba32f")}
    assert {i.format for b in _plan(graph, precision="fp16").buffers if (i := b.image)} == {"rgba16f"}


def test_what_does_not_fit_an_image_stays_in_a_buffer_and_says_why() -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 64, 6, 6), 64, (3, 3), (1, 1), (1, 1, 1, 1)))
    plan = _plan(graph, replace(Limits(), image_size=(64, 90)))
    assert plan.options["buffer:conv0:0"] == "its image of 6 x 96 exceeds the device's 64 x 90"
    assert _inside(plan) == set()
    in_lanes = _plan(graph, algorithm="winograd").options
    assert in_lanes["buffer:conv0:0"] == "conv0: winograd writes channels singly"


@pytest.mark.parametrize(
    ("options", "limits", "message"),
    [
        (Options("cpu", layout="image"), Limits(), "layout is an option of opencl and vulkan, not of cpu"),
        (Options("vulkan", layout="image"), Limits(image_size=(0, 0)), "the device has no images for vulkan"),
        (Options("opencl", "fp16_arithmetic", layout="image"), Limits(), "compute in halves read no images"),
        (Options("opencl", layout="image"), Limits(opencl_c="1.1"), "needs OpenCL C 1.2; use: buffer"),
        (Options("opencl", layout="texture"), Limits(), "there is no layout 'texture'; there are: buffer, image"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(options: Options, limits: Limits, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        compile_graph(_case("max_pool"), options, limits)


def test_a_kernel_that_writes_lanes_takes_no_image() -> None:
    with pytest.raises(ValueError, match="winograd_output: dst cannot lie in an image"):
        OUTPUT.with_images({"dst"})


def test_plans_that_misuse_images_are_refused() -> None:
    plan = _plan(_case("max_pool"))
    name = min(_inside(plan))
    image = next(b for b in plan.buffers if b.id == name)
    other = next(b for b in plan.buffers if b.image is None)
    assert image.image is not None

    def with_buffer(**changes: object) -> Plan:
        changed = image.model_copy(update=changes)
        return plan.model_copy(update={"buffers": tuple(changed if b is image else b for b in plan.buffers)})

    copy = Copy(layer="c", source=name, target=other.id, bytes=16)
    high = image.image.model_copy(update={"height": image.image.height + 1})
    for bad, message in (
        (with_buffer(image=None), "are not both images"),
        (with_buffer(image=high), "is not the top of its pool"),
        (with_buffer(role="weight"), "weights do not lie in images"),
        (plan.model_copy(update={"steps": (*plan.steps, copy)}), "only kernels read and write images"),
    ):
        with pytest.raises(PlanError, match=message):
            validate(bad, Limits())
    with pytest.raises(PlanError, match=r"pool 'image0': an image's width of 9 texels exceeds"):
        validate(plan, Limits(image_size=(1, 16384)))
