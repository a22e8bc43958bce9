"""A kernel that the driver refused in its work-group gets a smaller one, and computes the same."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.model import Program
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .every_kernel import KERNELS
from .graphs import Builder, inputs_of, relative_error

DESKTOP = Limits(max_work_group=1024, local_bytes=32 << 10, unified_memory=False)


def network() -> Graph:
    build = Builder()
    hidden = build.conv(build.input(1, 32, 20, 20), 32, (3, 3), (1, 1), (1, 1, 1, 1))
    return build.outputs(build.node("global_average_pool", [hidden], (1, 32, 1, 1)))


def programs(algorithm: str, limits: Limits) -> dict[str, Program]:
    plan = compile_graph(network(), Options("opencl", algorithm=algorithm), limits).plan
    return {program.kernel: program for program in plan.programs}


def size(program: Program) -> int:
    return prod(program.work_group)


@pytest.mark.parametrize("algorithm", ["direct", "window", "implicit_gemm", "im2col", "winograd"])
def test_every_kernel_can_be_held_to_half_its_work_group(algorithm: str) -> None:
    for kernel, program in programs(algorithm, DESKTOP).items():
        most = size(program) // 2
        limits = replace(DESKTOP, kernel_groups={kernel: most})
        try:
            held = programs(algorithm, limits)
        except OptionError as e:  # no tile is so small
            assert "work-group" in str(e) and KERNELS[kernel].locals
            continue
        assert size(held[kernel]) <= most
        others = programs(algorithm, DESKTOP).keys() & held.keys() - {kernel}  # smaller tiles may divide the depth
        assert all(size(held[name]) == size(programs(algorithm, DESKTOP)[name]) for name in others)


def test_a_form_of_a_kernel_that_was_refused_holds_all_its_forms() -> None:
    build = Builder()
    x = build.input(1, 512)
    dense = build.node("dense", [x, build.constant(512, 256)], (1, 256))
    graph = build.outputs(build.node("map", [dense], (1, 256), expression=("mul", "a", ("tanh", "a"))))

    def sizes(limits: Limits) -> dict[str, int]:
        plan = compile_graph(graph, Options("opencl"), limits).plan
        return {program.kernel: size(program) for program in plan.programs if "row_product" in program.kernel}

    assert max(sizes(DESKTOP).values()) > 64
    limits = replace(DESKTOP, kernel_groups={"row_product_normed_0123abcd": 64, "row": 8, "row_product2": 8})
    assert list(sizes(limits).values()) == [64]


@pytest.mark.parametrize(
    ("algorithm", "groups"),
    [("implicit_gemm", {"conv_tiled": 64, "global_average_group": 8}), ("direct", {"conv_direct": 24})],
)
def test_the_smaller_work_groups_compute_the_same(algorithm: str, groups: dict[str, int]) -> None:
    graph = network()
    inputs = inputs_of(graph)
    limits = replace(DESKTOP, kernel_groups=groups)
    bundle = compile_graph(graph, Options("opencl", algorithm=algorithm), limits)
    sizes = {program.kernel: size(program) for program in bundle.plan.programs}
    assert all(groups[kernel] // 2 < sizes[kernel] <= groups[kernel] for kernel in groups), sizes
    (name,) = graph.outputs
    assert relative_error(run_opencl(bundle, inputs).outputs[name], evaluate(graph, inputs)[name]) < 1e-5
