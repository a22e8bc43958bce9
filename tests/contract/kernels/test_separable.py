"""Depthwise layers, gates and choices of channels that 1x1 convolutions compute, on GPUs with memory of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.catalog.convolution import Convolution
from kernels.catalog.convolution.separable import separable_tile
from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.lower.activation import AT_END
from kernels.options import Backend, Limits, Options, Precision
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, covering, side_by_side

from .test_agreement import check
from .test_channels import DESKTOP, kernels

WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel": (3, 3), "pads": (1, 1, 1, 1)},
    {"kernel": (5, 5), "strides": (2, 2), "pads": (2, 2, 2, 2)},
    {"kernel": (3, 5), "strides": (2, 1), "pads": (0, 3, 1, 0), "dilations": (2, 1)},
    {"kernel": (1, 3)},
)
ACTIVATIONS: tuple[tuple[Any, ...], ...] = ((), ("relu",), ("clip", -0.4, 0.7), ("hard_swish",), (), ("sigmoid",))

MIRRORED, FUNCTIONS = 3, {0: "gelu", 4: "silu"}
"""The numbers of the blocks whose depthwise convolution reads and ends so."""


def block(images: int, channels: int, height: int, width: int, window: dict[str, Any], number: int) -> Graph:
    """1x1, depthwise, 1x1, depthwise, in every second block a gate, 1x1, which adds what goes by."""
    build = Builder()
    x = build.conv(build.input(images, 7, height, width), channels, (1, 1), activation=("relu",))
    if number == MIRRORED:
        x = build.node("pad", [x], (images, channels, height, width + 2), pads=(0, 1, 0, 1), mode="reflect", value=0.0)
    deep = build.conv(x, channels, **window, groups=channels, bias=number % 3 > 0, activation=ACTIVATIONS[number])
    if number in FUNCTIONS:
        deep = build.node("map", [deep], build.graph.shapes[deep], expression=AT_END[FUNCTIONS[number]][1])
    beside = build.conv(deep, 37, (1, 1), activation=("leaky_relu", 0.1) if number % 2 else ())
    n, k, *_ = shape = build.graph.shapes[beside]
    again = build.conv(beside, k, (3, 3), pads=(1, 1, 1, 1), groups=k, activation=("relu",))
    if number % 2:
        mean = build.node("global_average_pool", [again], (n, k, 1, 1))
        gate = build.conv(mean, k, (1, 1), activation=("sigmoid",))
        operands = [gate, again] if number > 1 else [again, gate]
        again = build.node("map", operands, shape, expression=("mul", "a", "b"))
    last = build.conv(again, k, (1, 1), residual=beside, activation=("relu",) if number % 2 else ())
    return build.outputs(build.node("global_average_pool", [last], (n, k, 1, 1)), last)


def taken(images: int, channels: int, *, residual: bool) -> Graph:
    """Channels in another order, one of them twice, beside an infinite first one that nobody takes; again of that."""
    build = Builder()
    x = build.conv(build.input(images, 5, 5, 7), channels, (1, 1))
    weight, bias = (build.graph.constants[name] for name in build.graph.nodes[0].inputs[1:])
    weight[0], bias[0] = 0.0, 100.0
    x = build.node("map", [x], build.graph.shapes[x], expression=("exp", "a"))
    for k in (channels, 13):
        order = [c for c in build.rng.permutation(channels) if c]
        y = channels_of(build, x, [*order, order[0]])
        x = build.conv(y, k, (1, 1), bias=k > 13, residual=x if residual and k > 13 else "", activation=("relu",))
        channels = k
    return build.outputs(x)


def channels_of(build: Builder, x: str, channels: list[int]) -> str:
    n, c, h, w = build.graph.shapes[x]
    table = f"{x}.table"
    build.graph.constants[table] = np.concatenate([np.arange(n), channels, np.arange(h), np.arange(w)], dtype="<f4")
    build.graph.shapes[table] = build.graph.constants[table].shape
    shape = n, len(channels), h, w
    return build.node("take", [x, table], shape, shape=shape, strides=(c * h * w, h * w, w, 1), value=0.0)


def blocks() -> Graph:
    """Each window and activation, few and many channels, full stacks and others, one picture and three."""
    sizes = ((1, 8, 9, 11), (3, 21, 6, 7), (1, 130, 5, 5), (2, 64, 14, 14), (1, 24, 1, 40), (3, 96, 7, 7))
    made = {
        f"block{i}": block(*size, WINDOWS[i % 4 if size[2] > 4 else 3], i)  # type: ignore[misc]
        for i, size in enumerate(sizes)
    }
    orders = {f"order{n}": taken(n, c, residual=n == 3) for n, c in ((1, 10), (2, 64), (3, 24))}
    return side_by_side(made | orders)


@pytest.mark.parametrize(("api", "precision"), covering("separable", ["opencl", "vulkan"], ["fp32", "fp16", "relaxed"]))
def test_the_1x1_convolution_computes_the_one_before_it(
    agent: Agent, api: Backend, precision: Precision, shaders: Path
) -> None:
    found = kernels(check(agent, blocks(), Options(api, precision), DESKTOP, shaders))
    assert found["conv_separable"] == 12 and found["conv_depthwise"] == 3, "gates and pools read these"
    assert found["conv_taking"] == 6 and not {"take", "take_channels"} & found.keys()
    kinds = [name.split("_")[0] for name in found.elements()]
    assert kinds.count("map") == 3 and not {"binary", "mul"} & set(kinds), "the exponentials"


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_a_gate_that_is_kept_in_single_beside_halves_is_read(agent: Agent, api: Backend, shaders: Path) -> None:
    """Squares of numbers around 300 are beyond halves; their mean, and what is computed of it alone, is a gate."""
    build, shape = Builder(), (2, 13, 9, 11)
    x = build.conv(build.input(2, 3, 9, 11), 13, (1, 1))
    large = build.node("map", [x], shape, expression=("mul", "a", 300.0))
    squares = build.node("map", [large], shape, expression=("mul", "a", "a"))
    mean = build.node("global_average_pool", [squares], (2, 13, 1, 1))
    gate = build.node("map", [mean], (2, 13, 1, 1), expression=("div", 1.0, ("sqrt", ("add", "a", 1.0))))
    gated = build.node("map", [large, gate], shape, expression=("mul", "a", "b"))
    graph = build.outputs(build.conv(gated, 24, (1, 1)))
    assert kernels(check(agent, graph, Options(api, "fp16"), DESKTOP, shaders))["conv_separable"] == 1


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, Limits()), ({}, replace(DESKTOP, cpu_device=True)), ({"fuse": "none"}, DESKTOP),
        ({"keep_all": True}, DESKTOP),
        ({"algorithm": "direct"}, DESKTOP), ({"precision": "int8"}, replace(DESKTOP, precisions=("int8",))),
        ({"layers": {"conv1": {"algorithm": "depthwise"}}}, DESKTOP),
    ],
)  # fmt: skip
def test_elsewhere_each_layer_is_a_step(options: dict[str, Any], limits: Limits) -> None:
    build = Builder()
    deep = build.conv(build.conv(build.input(1, 8, 6, 6), 8, (1, 1)), 8, (3, 3), groups=8)
    graph = build.outputs(build.conv(deep, 8, (1, 1)))
    assert "conv_separable" in kernels(compile_graph(graph, Options("opencl"), DESKTOP).plan)
    assert "conv_separable" not in kernels(compile_graph(graph, Options("opencl", **options), limits).plan)


def test_a_layer_that_others_read_stays(agent: Agent, shaders: Path) -> None:
    build = Builder()
    x = build.input(2, 8, 6, 6)
    twice = build.conv(x, 8, (3, 3), pads=(1, 1, 1, 1), groups=8)
    added = build.node("add", [build.conv(twice, 8, (1, 1)), twice], (2, 8, 6, 6))
    named = build.conv(added, 8, (3, 3), groups=8)
    wide = build.conv(build.conv(x, 8, (3, 3), groups=8), 8, (3, 3))
    graph = build.outputs(build.conv(named, 8, (1, 1)), named, wide)
    assert "conv_separable" not in kernels(check(agent, graph, Options("opencl"), DESKTOP, shaders))


LARGE_GPU = Limits(local_bytes=48 << 10, unified_memory=False, compute_units=132, max_work_group=1024, subgroup_size=32)
LATE, GATED, EARLY = ((5, 5), 576, 96, 8, 7), ((1, 1), 144, 24, 32, 56), ((3, 3), 144, 24, 32, 56)


@pytest.mark.parametrize(
    ("layer", "api", "precision", "one"),
    [
        (LATE, "opencl", "fp32", False), (LATE, "vulkan", "fp32", False),
        (((3, 3), 384, 64, 1, 14), "vulkan", "fp16", True), (((3, 3), 256, 256, 1, 56), "opencl", "fp32", False),
        (((3, 3), 960, 160, 1, 7), "opencl", "fp32", True), (((3, 3), 960, 160, 1, 7), "vulkan", "fp32", False),
        (GATED, "opencl", "fp16", True), (GATED, "vulkan", "fp32", True),
        (((1, 1), 672, 112, 32, 14), "opencl", "fp16", False),
        (EARLY, "opencl", "fp32", True), (EARLY, "vulkan", "fp32", False),
    ],
)  # fmt: skip
def test_two_layers_are_one_step_where_a_large_gpu_took_less_time(
    layer: tuple[tuple[int, int], int, int, int, int], api: Backend, precision: Precision, one: bool
) -> None:
    """LATE, of MNASNet, took .6 ms longer with a tile of so many channels that they are computed once."""
    window, channels, outputs, images, side = layer
    pointwise = Convolution(
        images, channels, side, side, outputs, side, side, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1
    )  # fmt: skip
    assert (separable_tile(window, pointwise, Options(api, precision), LARGE_GPU) is not None) == one
