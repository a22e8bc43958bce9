"""Every operation and convolution, in one plan: what the agent computes equals the reference.

OpenCL has the same cases one by one, through pyopencl, in `tests/unit/kernels/back`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from kernels.catalog.convolution import ALGORITHMS, convolution_of
from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Backend, Choice, Limits, Options
from kernels.plan.model import Plan, Pool, SwapIn
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import (
    TOLERANCE,
    Builder,
    covering,
    inputs_of,
    relative_error,
    relu_of,
    shares,
    side_by_side,
)
from tests.unit.kernels.back.test_convolution import SHAPES
from tests.unit.kernels.back.test_fusion import block
from tests.unit.kernels.back.test_movement import addition, every_transposition
from tests.unit.kernels.back.test_operations import CASES, concat_of
from tests.unit.kernels.back.test_products import every as every_product
from tests.unit.kernels.back.test_saving_memory import small_pyramid
from tests.unit.kernels.back.test_split_weights import SMALL, classifier, divided, tables

pytestmark = pytest.mark.long


def every_case() -> dict[str, Graph]:
    graphs: dict[str, Graph] = {}
    for name, case in CASES.items():
        build = Builder()
        graphs[name] = build.outputs(case(build))
    for name, (size, *rest) in SHAPES.items():
        build = Builder()
        graphs[f"conv_{name}"] = build.outputs(build.conv(build.input(*size), *rest, activation=relu_of(size)))
    build = Builder()
    x, other = build.input(2, 10, 6, 5), build.input(2, 10, 6, 5, name="other")
    graphs["conv_residual"] = build.outputs(
        build.conv(x, 10, (3, 3), (1, 1), (1, 1, 1, 1), residual=other, activation=("clip", 0.0, 0.5))
    )
    build = Builder()
    mirror = build.node("pad", [build.input(1, 8, 5, 6)], (1, 8, 9, 10), pads=(2,) * 4, mode="reflect", value=0.0)
    graphs["conv_mirrored"] = build.outputs(build.conv(mirror, 8, (5, 5)))
    return {**graphs, **{f"concat_{parts}": concat_of(parts) for parts in ([4, 8], [3, 5, 4], [4, 3, 5, 8])}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "precision"),
    [("vulkan", "fp32"), ("vulkan", "fp16"), ("vulkan", "fp16_arithmetic"), ("cpu", "fp32")],
)
def test_the_agent_agrees_with_the_reference(agent: Agent, backend: str, precision: str, shaders: Path) -> None:
    """Each case is in single precision, and in one kind of halves: each text takes a compiler's time."""
    first, second = map(dict, shares(every_case().items(), 2, "agreement"))
    cases = {"fp16": first, "fp16_arithmetic": second}.get(precision, first | second)
    check(agent, side_by_side(cases), Options(backend, precision), Limits(), shaders)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "fuse"), [("vulkan", "none"), ("cpu", "none"), ("cpu", "activation+residual")])
def test_the_agent_agrees_with_fusions_off(agent: Agent, backend: str, fuse: str, shaders: Path) -> None:
    check(agent, block(), Options(backend, fuse=fuse), Limits(), shaders)  # type: ignore[arg-type]


SEEN: dict[str, set[str]] = {
    "copy": set(),
    "map": {"input", "output", "weight"},
    "map_all": {"input", "output", "weight", "activation"},
}
"""Roles of the buffers that host and device both see."""


@pytest.mark.parametrize("transfers", SEEN)
@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_the_agent_agrees_however_the_host_reaches_memory(
    agent: Agent, backend: str, transfers: str, shaders: Path
) -> None:
    """Memory that host and device both see holds what SEEN says, and no other."""
    options = Options(backend, transfers=transfers)  # type: ignore[arg-type]
    plan = compile_graph(block(), options, Limits(), spirv_cache=shaders).plan
    seen = {buffer.role for buffer in plan.buffers if _pool(plan, buffer.pool).memory == "host_visible"}
    assert seen == SEEN[transfers]
    check(agent, block(), options, Limits(), shaders)


def _pool(plan: Plan, name: str) -> Pool:
    return next(pool for pool in plan.pools if pool.id == name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shared", "precision"), shares(product([True, False], ["fp32", "fp16", "fp16_arithmetic"]), 6)[0]
)
def test_the_agent_agrees_where_operands_are_texels(agent: Agent, shared: bool, precision: str, shaders: Path) -> None:
    limits = Limits(cpu_device=True, subgroup_size=_subgroup_size(agent) if shared else 0)
    cases = dict(shares(every_case().items(), 2, "texels")[0])
    check(agent, side_by_side(cases), Options("vulkan", precision), limits, shaders)  # type: ignore[arg-type]


def _subgroup_size(agent: Agent) -> int:
    probed = agent.call([str(agent.binary), "probe"]).all("probe")
    return int(next(event.facts.subgroup_size for event in probed if event.facts.api == "vulkan"))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["pointwise_wide", "window_wide", "direct_wide"])
def test_the_agent_agrees_with_the_tiles_for_lavapipe(agent: Agent, shape: str, shaders: Path) -> None:
    window = {"pointwise_wide": (1, 1), "window_wide": (3, 3), "direct_wide": (2, 2)}[shape]
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 5, 3, 17), 18, window, (1, 1), (window[0] - 1,) * 4))
    check(agent, graph, Options("vulkan"), Limits(cpu_device=True, subgroup_size=_subgroup_size(agent)), shaders)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["implicit_gemm", "im2col", "winograd"])
def test_the_agent_agrees_with_every_tile_through_local_memory(agent: Agent, algorithm: str, shaders: Path) -> None:
    build = Builder()
    build.conv(build.input(3, 9, 7, 10), 18, (3, 3), (1, 1), (1, 1, 1, 1))
    conv = convolution_of(build.graph, build.graph.nodes[0])
    limits = Limits(local_bytes=32 << 10, unified_memory=False, compute_units=132)
    tiles = ALGORITHMS[algorithm].tiles(conv, Options("vulkan"), limits)
    outputs = build.graph.nodes[0].outputs + tuple(build.conv("x", 18, (3, 3), (1, 1), (1, 1, 1, 1)) for _ in tiles[1:])
    tuned = {node.name: Choice(algorithm, tile) for node, tile in zip(build.graph.nodes, tiles, strict=True)}
    check(agent, build.outputs(*outputs), Options("vulkan", tuned=tuned), limits, shaders)


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_convolutions_of_few_pixels_divide_their_depth(agent: Agent, backend: Backend, shaders: Path) -> None:
    """One work-group for each tile of 8192 and 9216 inputs to 126 outputs on 18 pixels leaves units of 132 idle."""
    build = Builder()
    other = build.input(2, 126, 3, 3, name="other")
    x = build.conv(build.input(2, 8192, 3, 3), 126, (1, 1), residual=other, activation=("relu",))
    wide = build.input(2, 1024, 6, 6, name="wide")
    graph = build.outputs(build.conv(wide, 126, (3, 3), (2, 2), (1, 1, 1, 1), residual=x))
    limits = Limits(local_bytes=32 << 10, unified_memory=False, compute_units=132, max_work_group=1024)
    plan = check(agent, graph, Options(backend), limits, shaders)
    assert sum("conv_sum" in step.program for step in plan.steps) == 2


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_large_maps_take_large_work_groups_where_memory_is_the_gpu_s_own(
    agent: Agent, backend: Backend, shaders: Path
) -> None:
    build = Builder()
    graph = build.outputs(build.node("relu", [build.input(1, 4, 513, 1024)], (1, 4, 513, 1024)))
    groups = {False: 256, True: 64}
    for unified, group in groups.items():
        limits = Limits(unified_memory=unified, compute_units=132, max_work_group=1024)
        plan = check(agent, graph, Options(backend), limits, shaders)
        assert {program.work_group[0] for program in plan.programs if program.kernel.startswith("map")} == {group}


@pytest.mark.parametrize("algorithm", ["implicit_gemm", "im2col", "winograd_2x2"])
def test_halves_that_are_widened_behind_the_arithmetic_are_the_same(
    agent: Agent, algorithm: str, shaders: Path
) -> None:
    build = Builder()
    x, other = build.input(2, 9, 7, 10), build.input(2, 18, 7, 10, name="other")
    graph = build.outputs(build.conv(x, 18, (3, 3), (1, 1), (1, 1, 1, 1), residual=other, activation=("relu",)))
    options, limits = Options("vulkan", "fp16", algorithm=algorithm), Limits(local_bytes=32 << 10)
    files = compile_graph(graph, options, limits, spirv_cache=shaders).files
    assert any(b"unpackHalf2x16" in text for name, text in files.items() if name.endswith(".comp"))
    check(agent, graph, options, limits, shaders)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "precision"), [("vulkan", "fp32"), ("vulkan", "fp16"), ("opencl", "fp32")])
def test_the_agent_swaps_and_works_in_place(agent: Agent, backend: str, precision: str, shaders: Path) -> None:
    graph = small_pyramid()
    limits = Limits(cpu_device=True)
    options = Options(backend, precision, algorithm="direct")  # type: ignore[arg-type]
    free = compile_graph(graph, options, limits, spirv_cache=shaders).plan
    arena = sum(pool.bytes for pool in free.pools if pool.id.startswith("arena"))
    options = replace(options, memory_budget=free.requires.total_bytes - arena * 3 // 5)
    plan = check(agent, graph, options, limits, shaders)
    assert any(isinstance(step, SwapIn) for step in plan.steps)


PRODUCTS = [
    "blocked 16x32", "registers 3x1x4", "split_depth 2x8", "tiled 8x4x1x1x4", "tiled 8x8x1x2x2x1", "panels 3x2x4",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("words", "precision"), covering("products", PRODUCTS, ["fp32", "fp16"]))
def test_the_agent_agrees_with_every_product(agent: Agent, words: str, precision: str, shaders: Path) -> None:
    options = Options("vulkan", precision, product=words)  # type: ignore[arg-type]
    check(agent, every_product(), options, Limits(max_work_group=1024, local_bytes=32 << 10), shaders)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "ways"), covering("parts", [1, 2], ["vulkan fp32", "vulkan fp16", "opencl fp32"]))
def test_the_agent_agrees_where_weights_are_in_parts(agent: Agent, n: int, ways: str, shaders: Path, seed: int) -> None:
    options = Options(*ways.split(), algorithm="direct")  # type: ignore[arg-type]
    graph = side_by_side({"layers": classifier(n), "tables": tables(np.random.default_rng([seed, n]))})
    plan = check(agent, graph, options, SMALL, shaders)
    words = [name.partition(".")[0] for name in divided(plan)]
    assert words.count("layers") > 1 and words.count("tables") == 2
    assert max(pool.bytes for pool in plan.pools) <= SMALL.max_buffer_bytes


@pytest.mark.slow
def test_the_agent_agrees_with_squares_through_local_memory(agent: Agent, shaders: Path) -> None:
    graph = side_by_side({"t": every_transposition(), "a": addition("add", 2, 5, 3, 9), "m": addition("mul", 3, 7)})
    check(agent, graph, Options("vulkan", transpose="tiled 16x4"), Limits(), shaders)


def check(agent: Agent, graph: Graph, options: Options, limits: Limits, shaders: Path) -> Plan:
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    wanted = evaluate(graph, inputs)
    errors = {
        port.name: relative_error(ended.output(i).reshape(port.shape), wanted[port.name])
        for i, port in enumerate(bundle.plan.outputs)
    }
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE[options.precision]} == {}
    assert set(errors) == set(graph.outputs)
    return bundle.plan
