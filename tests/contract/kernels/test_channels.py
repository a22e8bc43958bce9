"""Channels of images, shuffled or in rows between images: only another order of them is no copy by itself."""

from __future__ import annotations

import random
from collections import Counter
from math import prod
from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Dispatch, Plan
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, covering, shuffled_units, side_by_side
from tests.unit.kernels.back.norms import layer_norm

from .test_agreement import check

GPUS = ("opencl", "vulkan")
APIS = pytest.mark.parametrize("api", GPUS)
DESKTOP = Limits(unified_memory=False, compute_units=128, max_work_group=1024, local_bytes=32768)


def kernels(plan: Plan) -> Counter[str]:
    names = {program.id: program.kernel for program in plan.programs}
    return Counter(names[step.program] for step in plan.steps if isinstance(step, Dispatch))


@pytest.mark.parametrize(("api", "precision"), covering("shuffled", GPUS, ["fp32", "fp16"]))
def test_1x1_convolutions_alone_read_shuffled_channels_where_they_lie(
    agent: Agent, api: Backend, precision: str, shaders: Path
) -> None:
    graph = side_by_side({f"{n}_{half}": shuffled_units(n, half, units=3) for n, half in ((1, 3), (3, 7), (2, 8))})
    found = kernels(check(agent, graph, Options(api, precision), DESKTOP, shaders))  # type: ignore[arg-type]
    assert found["take_channels"] == found["conv_taking"] == 6
    assert not {"transpose_tiled", "transpose", "copy_channels", "take_block"} & set(found)


def convnext(images: int, channels: int, *, blocks: int) -> Graph:
    """Blocks of ConvNeXt, and what makes the image smaller behind them."""
    build = Builder()
    shape = h, w = 6, 10
    x = build.conv(build.input(images, 5, *shape), channels, (1, 1))
    for _ in range(blocks):
        rows = layer_norm(
            build,
            _rows(build, build.conv(x, channels, (7, 7), pads=(3, 3, 3, 3), groups=channels)),
            (images, h, w, channels),
        )
        wide = build.node("relu", [_dense(build, rows, 2 * channels)], (images, h, w, 2 * channels))
        image = _image(build, _dense(build, wide, channels))
        scaled = build.node("mul", [image, build.constant(channels, 1, 1)], (images, channels, h, w))
        x = build.node("add", [scaled, x], (images, channels, h, w))
    x = _image(build, layer_norm(build, _rows(build, x), (images, h, w, channels)))
    x = build.conv(x, 2 * channels, (2, 2), (2, 2))
    return build.outputs(build.conv(x, 2 * channels, (3, 3), groups=2 * channels))


def _rows(build: Builder, x: str) -> str:
    n, c, h, w = build.graph.shapes[x]
    return build.node("transpose", [x], (n, h, w, c), perm=(0, 2, 3, 1))


def _image(build: Builder, x: str) -> str:
    n, h, w, c = build.graph.shapes[x]
    return build.node("transpose", [x], (n, c, h, w), perm=(0, 3, 1, 2))


def _dense(build: Builder, x: str, columns: int) -> str:
    shape = build.graph.shapes[x]
    flat = prod(shape[:-1]), shape[-1]
    rows = build.node("reshape", [x], flat, shape=flat)
    rows = build.node("dense", [rows, build.constant(shape[-1], columns, scale=shape[-1] ** -0.5)], (flat[0], columns))
    return build.node("reshape", [rows], (*shape[:-1], columns), shape=(*shape[:-1], columns))


@pytest.mark.parametrize(("api", "precision"), covering("rows", GPUS, ["fp32", "fp16"]))
def test_rows_of_channels_are_made_images_only_where_a_convolution_reads_them(
    agent: Agent, api: Backend, precision: str, shaders: Path
) -> None:
    graph = side_by_side({"one": convnext(1, 8, blocks=2), "several": convnext(3, 76, blocks=3)})
    found = kernels(check(agent, graph, Options(api, precision), DESKTOP, shaders))  # type: ignore[arg-type]
    assert found["binary"] == 0, "scaled and added where the rows end"
    assert not {"transpose_tiled", "transpose", "affine"} & set(found)
    assert found["row_norm_image" if precision == "fp32" else "turn_vectors"]


def _turn(build: Builder, x: str, shape: tuple[int, ...], *, flat: bool) -> str:
    """Turn rows of channels into an image. `flat`: over three axes, as exporters of PVT write it."""
    n, *middle, last = shape
    if not flat:
        return _image(build, x) if len(build.graph.shapes[x]) == 4 else _image(build, _reshaped(build, x, shape))
    rows = _reshaped(build, x, (n, prod(middle), last))
    turned = build.node("transpose", [rows], (n, last, prod(middle)), perm=(0, 2, 1))
    return _reshaped(build, turned, (n, last, *middle))


def _reshaped(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    return build.node("reshape", [x], shape, shape=shape)


def depthwise_between_rows(rng: random.Random) -> Graph:
    """A dense layer, an image with filters of each channel's own, and another dense layer."""
    build = Builder()
    n, h, w, c = rng.choice((1, 2, 3)), rng.randint(5, 9), rng.randint(5, 12), 4 * rng.randint(1, 20)
    kernel, stride = (rng.choice((2, 3, 5)), rng.choice((1, 3, 4))), rng.choice((1, 1, 2))
    rows = _dense(build, build.input(n, h, w, 12), c)
    x = _turn(build, rows, (n, h, w, c), flat=rng.random() < 0.5)
    added = rng.random() < 0.5
    strides, pads = (stride, stride), (rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2), rng.randint(0, 2))
    if added:
        strides, pads = (1, 1), (kernel[0] // 2, (kernel[1] - 1) // 2, (kernel[0] - 1) // 2, kernel[1] // 2)
    out = build.conv(x, c, kernel, strides, pads, groups=c, bias=rng.random() < 0.5)
    _, _, oh, ow = shape = build.graph.shapes[out]
    out = build.node("add", [out, x], shape) if added else out
    out = build.node("relu", [out], shape) if rng.random() < 0.5 else out
    if rng.random() < 0.5:
        flat = _reshaped(build, out, (n, c, oh * ow))
        rows = build.node("transpose", [flat], (n, oh * ow, c), perm=(0, 2, 1))
    else:
        rows = _rows(build, out)
    return build.outputs(_dense(build, rows, 8))


@pytest.mark.parametrize(("api", "precision"), covering("own filters", GPUS, ["fp32", "fp16"]))
def test_filters_of_each_channel_read_and_write_rows(
    agent: Agent, api: Backend, precision: str, shaders: Path, seed: int
) -> None:
    rng = random.Random(f"{seed} {api}")
    graph = side_by_side({str(i): depthwise_between_rows(rng) for i in range(8)})
    limits = Limits(cpu_device=True) if rng.random() < 0.5 else DESKTOP
    found = kernels(check(agent, graph, Options(api, precision), limits, shaders))  # type: ignore[arg-type]
    assert found["conv_depthwise_of_rows"] == 8
    assert not {name for name in found if "transpose" in name or "turn" in name or "pack" in name}


@APIS
def test_other_devices_make_rows_of_an_image_first(agent: Agent, api: Backend, shaders: Path) -> None:
    cpu_device = api == "vulkan"
    found = kernels(check(agent, convnext(2, 12, blocks=1), Options(api), Limits(cpu_device=cpu_device), shaders))
    assert found["row_norm"] == 2
    assert bool(found["turn_vectors"]) != cpu_device
    assert not found["row_norm_image"]


def test_heads_that_a_function_reads_behind_their_transposition_are_written_in_place(shaders: Path) -> None:
    """LeViT's block keeps its heads in place: attention, its heads side by side, an activation, a dense layer."""
    build, shape = Builder(), (1, 4, 16, 8)
    q, k, v = (build.input(*shape, name=name) for name in "qkv")
    turned = build.node("transpose", [k], (1, 4, 8, 16), perm=(0, 1, 3, 2))
    scores = build.node("softmax", [build.node("matmul", [q, turned], (1, 4, 16, 16))], (1, 4, 16, 16), axis=3)
    heads = build.node("transpose", [build.node("matmul", [scores, v], shape)], (1, 16, 4, 8), perm=(0, 2, 1, 3))
    rows = build.node("reshape", [heads], (1, 16, 32), shape=(1, 16, 32))
    graph = build.outputs(_dense(build, build.node("hard_swish", [rows], (1, 16, 32)), 24))
    found = kernels(compile_graph(graph, Options("opencl"), DESKTOP, spirv_cache=shaders).plan)
    assert found["attention"] == 1 and not {name for name in found if "transpose" in name or "pack" in name}
