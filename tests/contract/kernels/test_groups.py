"""Convolutions in groups of any size: no device computes them as one group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.catalog.convolution import ALGORITHMS
from kernels.catalog.convolution.output_tile import OutputTile
from kernels.catalog.convolution.sizes import convolution_of
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder

from .test_agreement import check
from .test_channels import DESKTOP, kernels

CASES = 8


def drawn(rng: np.random.Generator, *, own: bool) -> Graph:
    """Convolutions side by side, and some with another behind them; `own`: one input channel a group."""
    build, outputs = Builder(), []
    for case in range(CASES):
        groups = int(rng.integers(2, 11))
        inputs, filters = 1 if own else int(rng.integers(1, 8)), int(rng.integers(1, 8))
        window = tuple(map(int, rng.integers(1, 5, 2)))
        image = (int(rng.integers(1, 3)), groups * inputs, *map(int, rng.integers(5, 12, 2)))
        pads, strides = tuple(map(int, rng.integers(0, 2, 4))), tuple(map(int, rng.integers(1, 3, 2)))
        x = build.input(*image, name=f"x{case}")
        made = build.conv(x, groups * filters, window, strides, pads, groups=groups, activation=("relu",))
        outputs.append(build.conv(made, 5, (1, 1)) if rng.integers(2) else made)
    return build.outputs(*outputs)


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("limits", [Limits(), DESKTOP], ids=["phone", "desktop"])
def test_groups_of_any_size(agent: Agent, api: Backend, own: bool, limits: Limits, shaders: Path, seed: int) -> None:
    graph = drawn(np.random.default_rng(seed), own=own)
    found = kernels(check(agent, graph, Options(api), limits, shaders))
    assert not own or found["conv_depthwise"] + found["conv_separable"] == CASES


@pytest.mark.parametrize("limits", [Limits(), DESKTOP], ids=["phone", "desktop"])
def test_a_tile_reads_no_more_than_its_groups(limits: Limits, seed: int) -> None:
    graph = drawn(np.random.default_rng(seed), own=False)
    for node in (each for each in graph.nodes if each.attributes["groups"] > 1):
        conv = convolution_of(graph, node)
        constants = {"weight": graph.constants[node.inputs[1]], "bias": np.zeros(conv.k, np.float32)}
        (call,) = ALGORITHMS["direct"].lower(conv, constants, Options("vulkan"), limits)
        assert isinstance(call.tile, OutputTile)
        groups = min((4 * call.tile.stacks - 2) // (conv.k // conv.groups) + 2, conv.groups)
        channels = groups * conv.c // conv.groups
        assert call.ints["in_stacks"] <= min((channels + 2) // 4 + 1, conv.in_stacks)
