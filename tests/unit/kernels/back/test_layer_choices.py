"""Layers with axes of their own: the plan's tiles prove them."""

from __future__ import annotations

import pytest

from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options

from .graphs import Builder, check


def two_layers() -> Graph:
    build = Builder()
    first = build.conv(build.input(1, 3, 9, 9), 8, (3, 3))
    return build.outputs(build.conv(first, 12, (1, 1)))


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_each_layer_has_its_own_and_the_rest_what_all_have(backend: Backend) -> None:
    layers = {"conv1": {"algorithm": "dot", "granularity": 6, "pixels": 2}}
    plan = compile_graph(two_layers(), Options(backend, algorithm="dot", granularity=3, layers=layers), Limits()).plan
    tiles = {step.layer: step.program for step in plan.steps if step.program.startswith("conv_")}
    assert "outputs3_pixels1" in tiles["conv0"] and "outputs6_pixels2" in tiles["conv1"]
    assert (plan.options["granularity"], plan.options["granularity:conv1"]) == (3, 6)


def test_algorithms_by_layer_compute_the_same() -> None:
    check(two_layers(), layers={"conv0": {"algorithm": "dot", "granularity": 5}, "conv1": {"algorithm": "scalar"}})


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ({"conv2": {"granularity": 4}}, "small has no layer conv2; did you mean conv1"),
        ({"conv1": {"precision": "fp16"}}, "conv1 cannot have a precision of its own: algorithm"),
        ({"conv1": {"granularity": 65}}, "granularity is 1 to 64, not 65"),
        ({"conv0": {"algorithm": "pointwise"}}, "'pointwise' .* fits nowhere in this network .conv0: its window"),
    ],
)
def test_what_a_layer_cannot_have_is_refused(layers: dict[str, dict[str, int | str]], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        compile_graph(two_layers(), Options("opencl", layers=layers), Limits())
