"""Squeeze and excitation's two layers as one step, on GPUs with memory of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.lower.activation import AT_END
from kernels.options import Backend, Limits, Options, Precision
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, covering, side_by_side

from .test_agreement import check
from .test_channels import DESKTOP, kernels

SMALL_GROUPS = replace(DESKTOP, max_work_group=64, local_bytes=8 << 10, compute_units=4)
SIZES = ((1, 8, 3), (3, 22, 6), (1, 150, 37), (2, 64, 16), (12, 40, 10), (67, 36, 9))
"""Pictures, channels, hidden channels: those that fill no stack, and pictures that fill no block."""
ACTIVATIONS: tuple[tuple[Any, ...], ...] = (
    ("relu",), ("silu",), ("hard_swish",), ("clip", -0.4, 0.7), ("gelu",), (),
)  # fmt: skip
ENDS: tuple[tuple[Any, ...], ...] = (("sigmoid",), ("hard_sigmoid", 0.2, 0.5), ("gelu",), (), ("tanh",), ("silu",))


def squeeze(number: int, *, of_rows: bool = False) -> Graph:
    """A mean beside another one, both layers, and what they gate; also joined with the means."""
    n, c, hidden = SIZES[number]
    build = Builder()
    image = build.input(n, c, 3, 5)
    means = [build.node("global_average_pool", [build.node("relu", [image], (n, c, 3, 5))], (n, c, 1, 1))]
    means.append(build.node("global_average_pool", [image], (n, c, 1, 1)))
    layers = rows if of_rows and c % 4 == 0 else convolutions
    gate = layers(build, means[1], hidden, number)
    joined = build.node("concat", [*means, gate], (n, 3 * c, 1, 1), axis=1)
    gated = build.node("map", [gate, image], (n, c, 3, 5), expression=("mul", "a", "b"))
    return build.outputs(joined, gated)


def convolutions(build: Builder, x: str, hidden: int, number: int) -> str:
    for k, with_bias, activation in (
        (hidden, number % 3 > 0, ACTIVATIONS[number]), (build.graph.shapes[x][1], number % 2 > 0, ENDS[number]),
    ):  # fmt: skip
        end = AT_END[activation[0]][1] if activation and activation[0] in AT_END else None
        x = build.conv(x, k, (1, 1), bias=with_bias, activation=() if end else activation)
        x = build.node("map", [x], build.graph.shapes[x], expression=end) if end else x
    return x


def rows(build: Builder, x: str, hidden: int, number: int) -> str:
    n, c, *_ = build.graph.shapes[x]
    flat = build.node("reshape", [x], (n, c), shape=(n, c))
    bias = [build.constant(hidden)] if number % 2 else []
    weights = build.constant(c, hidden, scale=c**-0.5), build.constant(hidden, c, scale=hidden**-0.5)
    first = build.node("dense", [flat, weights[0], *bias], (n, hidden), activation=("relu",))
    second = build.node("dense", [first, weights[1]], (n, c), activation=("sigmoid",))
    return build.node("reshape", [second], (n, c, 1, 1), shape=(n, c, 1, 1))


@pytest.mark.parametrize(("api", "precision"), covering("squeeze", ["opencl", "vulkan"], ["fp32", "fp16", "relaxed"]))
def test_two_layers_of_single_pixels_are_one_step(
    agent: Agent, api: Backend, precision: Precision, shaders: Path
) -> None:
    limits = SMALL_GROUPS if precision == "relaxed" else DESKTOP
    graphs = {f"squeeze{i}": squeeze(i) for i in range(len(SIZES))}
    graphs |= {f"rows{i}": squeeze(i, of_rows=True) for i in (0, 3, 4)}
    found = kernels(check(agent, side_by_side(graphs), Options(api, precision), limits, shaders))
    assert found["conv_squeeze"] == len(graphs)
    assert not {"conv_tiled", "matvec", "matmul_tiled"} & found.keys()


def test_infinite_channels_leave_those_that_do_not_exist_alone(agent: Agent, shaders: Path) -> None:
    """The next after three hidden channels and seven outputs in each stack would be 0 times infinity."""
    build = Builder()
    x = build.conv(build.input(1, 4, 1, 1), 8, (1, 1), groups=2, activation=("relu",))
    first = build.conv(x, 3, (1, 1), activation=("relu",))
    second = build.conv(first, 7, (1, 1), activation=("sigmoid",))
    graph = build.outputs(build.conv(second, 4, (1, 1)))
    infinite, to_hidden, to_outputs = (
        graph.constants[node.inputs[i]] for node, i in zip(graph.nodes, (2, 1, 1), strict=False)
    )
    infinite[5] = np.inf
    to_hidden[:, 5, 0, 0] = (1.0, -1.0, -1.0)
    to_outputs[:, 0] = -1.0
    assert kernels(check(agent, graph, Options("opencl"), DESKTOP, shaders))["conv_squeeze"] == 1


def two(n: int = 1, c: int = 16, hidden: int = 4, **second: Any) -> Graph:
    build = Builder()
    first = build.conv(build.input(n, c, 1, 1), hidden, (1, 1))
    return build.outputs(build.conv(first, c, (1, 1), **second))


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, Limits()), ({}, replace(DESKTOP, cpu_device=True)), ({"fuse": "depthwise"}, DESKTOP),
        ({"keep_all": True}, DESKTOP), ({"algorithm": "direct"}, DESKTOP), ({"precision": "int8"}, DESKTOP),
        ({"layers": {"conv0": {"algorithm": "direct"}}}, DESKTOP),
    ],
)  # fmt: skip
def test_elsewhere_each_layer_is_a_step(options: dict[str, Any], limits: Limits) -> None:
    assert kernels(compile_graph(two(), Options("opencl"), DESKTOP).plan)["conv_squeeze"] == 1
    assert "conv_squeeze" not in kernels(compile_graph(two(), Options("opencl", **options), limits).plan)


def test_layers_that_others_read_or_that_are_large_stay(agent: Agent, shaders: Path) -> None:
    build = Builder()
    x = build.input(2, 8, 1, 1)
    first = build.conv(x, 4, (1, 1))
    named = build.conv(x, 4, (1, 1))
    added = build.conv(build.conv(x, 4, (1, 1)), 8, (1, 1), residual=x)
    wide = build.conv(build.conv(build.input(2, 8, 3, 3, name="wide"), 4, (1, 1)), 8, (1, 1))
    grouped = build.conv(build.conv(x, 4, (1, 1), groups=2), 8, (1, 1))
    outputs = [build.conv(first, 8, (1, 1)), build.conv(first, 8, (1, 1)), build.conv(named, 8, (1, 1)), named]
    graph = build.outputs(*outputs, added, wide, grouped)
    assert "conv_squeeze" not in kernels(check(agent, graph, Options("opencl"), DESKTOP, shaders))


@pytest.mark.parametrize(
    ("pictures", "channels", "hidden", "precision", "one"),
    [
        (1, 960, 240, "fp32", False), (1, 960, 240, "fp16", True), (1, 672, 168, "fp32", True),
        (32, 1152, 48, "fp32", True), (512, 1152, 48, "fp32", False),
    ],
)  # fmt: skip
def test_each_work_group_reads_weights_of_half_a_megabyte_at_most(
    pictures: int, channels: int, hidden: int, precision: Precision, one: bool
) -> None:
    plan = compile_graph(two(pictures, channels, hidden), Options("opencl", precision), DESKTOP).plan
    assert kernels(plan)["conv_squeeze"] == one


def test_of_three_layers_in_a_row_two_are_one_step(agent: Agent, shaders: Path) -> None:
    build = Builder()
    x = build.input(2, 8, 1, 1)
    for k in (5, 12, 7):
        x = build.conv(x, k, (1, 1), activation=("relu",))
    found = kernels(check(agent, build.outputs(x), Options("opencl"), DESKTOP, shaders))
    assert found["conv_squeeze"] == 1 and found["conv_tiled"] == 1
