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
    layers = {"conv1": {"algorithm": "dot_uneven", "granularity": 6, "pixels": 2}}
    options = Options(backend, algorithm="dot_uneven", granularity=3, layers=layers)
    plan = compile_graph(two_layers(), options, Limits()).plan
    tiles = {step.layer: step.program for step in plan.steps if step.program.startswith("conv_")}
    assert "outputs3_pixels1" in tiles["conv0"] and "outputs6_pixels2" in tiles["conv1"]
    assert (plan.options["granularity"], plan.options["granularity:conv1"]) == (3, 6)


def test_parts_of_a_layer_have_its_own() -> None:
    """`largest_object` divides the tensor between the second layer and the third, 246 kB."""
    build = Builder()
    wide = build.conv(build.conv(build.input(1, 3, 33, 33), 8, (3, 3)), 64, (1, 1))
    graph = build.outputs(build.conv(wide, 4, (1, 1)))
    own = {"conv1": {"algorithm": "dot_uneven", "granularity": 6}}
    options = Options("opencl", largest_object=100_000, layers=own)
    plan = compile_graph(graph, options, Limits()).plan
    assert max(pool.bytes for pool in plan.pools) <= 100_000
    parts = {step.layer: step.program for step in plan.steps if step.layer.startswith("conv1.")}
    assert len(parts) > 1 and all("outputs6" in program for program in parts.values())


def test_algorithms_by_layer_compute_the_same() -> None:
    uneven = {"algorithm": "dot_uneven", "granularity": 5}
    check(two_layers(), layers={"conv0": uneven, "conv1": {"algorithm": "scalar"}})


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ({"conv2": {"granularity": 4}}, "small has no layer conv2; did you mean conv1"),
        ({"conv1": {"precision": "fp16"}}, "conv1 cannot have a precision of its own: algorithm"),
        ({"conv1": {"algorithm": "dot", "granularity": 2}}, "12 channels over a granularity of 2"),
        ({"conv1": {"granularity": 65}}, "granularity is 1 to 64, not 65"),
        ({"conv0": {"algorithm": "pointwise"}}, "'pointwise' .* fits nowhere in this network .conv0: its window"),
    ],
)
def test_what_a_layer_cannot_have_is_refused(layers: dict[str, dict[str, int | str]], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        compile_graph(two_layers(), Options("opencl", layers=layers), Limits())
