"""Sums of many numbers keep their bits: each backend adds them up in parts.

Numbers that are nearly equal are the worst case: a sum that goes along in one register rounds each of them alike.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Array, Graph
from kernels.options import Backend, Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, generator, relative_error
from tests.unit.kernels.back.norms import layer_norm

LONG, DEPTH = 18000, 2048 * 9
ROWS, PRODUCTS = 5e-7, 3e-7
"""Largest errors in norm."""


def rows() -> Graph:
    """Every operation that adds up long rows, by each of its kernels."""
    build = Builder()
    row, columns = build.input(3, LONG, name="row"), build.input(2, LONG, 3, name="columns")
    channels, few = build.input(1, LONG, 2, 1, name="channels"), build.input(4500, 1, 4, name="few")
    pixels, picture = build.input(1, 4, 131, 140, name="pixels"), build.input(1, 4, 131, 140, name="spread picture")
    spread = build.input(3, LONG, name="spread")
    windows = {"kernel": (120, 120), "strides": (11, 20), "pads": (0, 0, 0, 0), "count_include_pad": 0}
    return build.outputs(
        build.node("softmax", [row], (3, LONG), axis=1),
        build.node("softmax", [columns], (2, LONG, 3), axis=1),
        build.node("softmax", [channels], (1, LONG, 2, 1), axis=1),
        build.node("reduce", [row], (3, 1), kind="mean", start=1, stop=2),
        build.node("reduce", [columns], (2, 1, 3), kind="sum", start=1, stop=2),
        build.node("reduce", [few], (1, 1, 4), kind="mean", start=0, stop=2),
        build.node("global_average_pool", [pixels], (1, 4, 1, 1)),
        build.node("average_pool", [pixels], (1, 4, 2, 2), **windows),
        layer_norm(build, spread, (3, LONG)),
        build.node("instance_norm", [picture, build.constant(4), build.constant(4)], (1, 4, 131, 140), epsilon=1e-5),
    )


def products(*, large_windows: bool) -> Graph:
    """Long sums of products: convolutions, dense layers of one row and several, products of two inputs.

    Large windows of few channels are added up by single channels on the CPU, and by what is left of a block of them.
    """
    build = Builder()
    outputs = []
    windows = ((2048, 3, (1, 1)), (4096, 1, (1, 1)), (1024, 4, (2, 2)), (3, 31, (1, 1)), (20, 13, (1, 1)))
    for channels, extent, stride in windows if large_windows else windows[:3]:
        kernel = extent, extent
        x = build.input(1, channels, max(6, extent + 2), max(5, extent + 1), name=f"x{channels}")
        outputs.append(build.conv(x, 33, kernel, stride, (extent // 3 if extent < 5 else 0,) * 4, bias=False))
    for count in (1, 17):
        operands = [build.input(count, DEPTH, name=f"rows{count}"), build.constant(DEPTH, 40)]
        outputs.append(build.node("dense", operands, (count, 40)))
        left, right = build.input(1, count, DEPTH, name=f"left{count}"), build.input(1, DEPTH, 40, name=f"right{count}")
        outputs.append(build.node("matmul", [left, right], (1, count, 40)))
    graph = build.outputs(*outputs)
    draw = generator()
    graph.constants = {name: _near(draw, array.shape, 0.02) for name, array in graph.constants.items()}
    return graph


def _near(draw: np.random.Generator, shape: tuple[int, ...], spread: float) -> Array:
    return (0.7 + spread * draw.standard_normal(shape)).astype(np.float32)


def errors(
    agent: Agent, graph: Graph, options: Options, limits: Limits, shaders: Path, isa: str = ""
) -> dict[str, float]:
    """The error of each output, in norm; inputs whose names begin with "spread" are not nearly equal."""
    draw, stored = generator(1), graph.constants
    inputs = {n: _near(draw, graph.shapes[n], 1 if n.startswith("spread") else 0.02) for n in graph.inputs}
    bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1, "--threads", 2, POCKETFARM_CPU_ISA=isa)
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    graph.constants = {name: array.astype(np.float64) for name, array in stored.items()}
    wanted = evaluate(graph, inputs)
    graph.constants = stored
    return {
        port.name: relative_error(ended.output(i).reshape(port.shape), wanted[port.name])
        for i, port in enumerate(bundle.plan.outputs)
    }


@pytest.mark.parametrize(
    ("api", "limits"),
    [
        ("cpu", Limits()),
        *((api, Limits(cpu_device=is_cpu)) for api in ("opencl", "vulkan") for is_cpu in (True, False)),
    ],
)
def test_long_rows(agent: Agent, api: Backend, limits: Limits, shaders: Path) -> None:
    """Errors up to 2e-7 in parts, 1.3e-6 to 2.9e-6 where one work-item adds up everything."""
    found = errors(agent, rows(), Options(api), limits, shaders)
    assert {name: error for name, error in found.items() if not error <= ROWS} == {}
    assert len(found) == 10


@pytest.mark.parametrize(
    ("api", "algorithm", "isa"),
    [
        *(("cpu", "implicit_gemm", isa) for isa in ("generic", "avx2", "avx512f")),
        *((api, algorithm, "") for api in ("opencl", "vulkan") for algorithm in ("auto", "direct")),
    ],
)
def test_long_sums_of_products(agent: Agent, api: Backend, algorithm: str, isa: str, shaders: Path) -> None:
    """Errors up to 1.5e-7 in parts, .5e-6 to 2.1e-6 where a sum goes along in one register."""
    options, limits = Options(api, algorithm=algorithm), Limits(cpu_device=api != "cpu")
    found = errors(agent, products(large_windows=api == "cpu"), options, limits, shaders, isa)
    assert {name: error for name, error in found.items() if not error <= PRODUCTS} == {}
    assert len(found) == (9 if api == "cpu" else 7)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_winograds_transforms_lose_little(agent: Agent, api: Backend, shaders: Path) -> None:
    """Errors of 6.3e-7 to 6.6e-7 with the points that they have, 1.4e-6 and more with 0, 1, -1, 2 and -2."""
    build = Builder()
    x = build.input(1, 64, 40, 40, name="spread x")
    graph = build.outputs(build.conv(x, 32, (3, 3), (1, 1), (1, 1, 1, 1), bias=False))
    options = Options(api, algorithm="winograd" if api == "cpu" else "winograd_4x4")
    (found,) = errors(agent, graph, options, Limits(), shaders).values()
    assert found < 1e-6
