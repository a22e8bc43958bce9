"""Products on matrix units.

No driver of a CPU has them: their kernels run here with matrices that are written out, each work-item of a subgroup
computing the whole; and as they are where a device is found that has units.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from kernels.catalog.desktop.units.choice import unit_tiles
from kernels.catalog.desktop.units.tile import Kind, UnitTile
from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.lower.activation import AT_END
from kernels.options import Backend, Choice, Limits, Options, matrix_units
from kernels.source.dialects import opencl, vulkan
from orchestrator.model.device import ApiFacts
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, covering, inputs_of, side_by_side, some
from tests.unit.kernels.back.test_convolution import SHAPES
from tests.unit.kernels.back.test_products import dense, product
from tests.unit.kernels.back.test_products import every as every_product

from . import matrices
from .test_agreement import check

pytestmark = pytest.mark.long

WRITTEN_OUT = """
struct Left { float at[UNIT_ROWS * UNIT_DEPTH]; };
struct Right { float at[UNIT_DEPTH * UNIT_COLUMNS]; };
struct Sum { float at[UNIT_ROWS * UNIT_COLUMNS]; };
Sum no_sum() { Sum sum; for (int i = 0; i < UNIT_ROWS * UNIT_COLUMNS; ++i) sum.at[i] = 0.0f; return sum; }
Sum multiply_add(Left a, Right b, Sum sum) {
    for (int i = 0; i < UNIT_ROWS * UNIT_COLUMNS; ++i)
        for (int k = 0; k < UNIT_DEPTH; ++k)
            sum.at[i] += a.at[i / UNIT_COLUMNS * UNIT_DEPTH + k] * b.at[k * UNIT_COLUMNS + i % UNIT_COLUMNS];
    return sum;
}
#define MATRIX_LEFT Left
#define MATRIX_RIGHT Right
#define MATRIX_SUM Sum
#define NO_SUM no_sum()
#define MULTIPLY_ADD(a, b, sum) multiply_add((a), (b), (sum))
#define LOAD(m, array, from, pitch, line, place) \\
    for (int e = 0; e < m.at.length(); ++e) \\
        m.at[e] = unpackHalf2x16(array[(from) + (line) * (pitch) + (place) / 8][(place) % 8 / 2])[(place) % 2]
#define LOAD_LEFT(m, array, from, pitch) LOAD(m, array, from, pitch, e / UNIT_DEPTH, e % UNIT_DEPTH)
#define LOAD_COLUMNS(m, array, from, pitch) LOAD(m, array, from, pitch, e % UNIT_COLUMNS, e / UNIT_COLUMNS)
#define LOAD_ROWS(m, array, from, pitch) LOAD(m, array, from, pitch, e / UNIT_COLUMNS, e % UNIT_COLUMNS)
#define STORE_MATRIX(m, array, from, pitch) \\
    if (LANE == 0) for (int e = 0; e < m.at.length(); ++e) \\
        array[(from) + e / UNIT_COLUMNS * (pitch) + e % UNIT_COLUMNS / 4][e % 4] = floatBitsToUint(m.at[e])
#define FROM_BITS(v) uintBitsToFloat(v)
#define TO_BITS(v) floatBitsToUint(v)
#define RAW8 uvec4
#define RAW8_ZERO uvec4(0)
#define SUBGROUP int(gl_SubgroupID)
#define LANE int(gl_SubgroupInvocationID)
#define SUBGROUP_BARRIER subgroupBarrier()
"""

WRITTEN_OUT_IN_OPENCL = """
typedef struct { float at[UNIT_ROWS * UNIT_DEPTH]; } Left;
typedef struct { float at[UNIT_DEPTH * UNIT_COLUMNS]; } Right;
typedef struct { float at[UNIT_ROWS * UNIT_COLUMNS]; } Sum;
Sum no_sum(void) { Sum sum; for (int i = 0; i < UNIT_ROWS * UNIT_COLUMNS; ++i) sum.at[i] = 0.0f; return sum; }
Sum multiply_add(Left a, Right b, Sum sum) {
    for (int i = 0; i < UNIT_ROWS * UNIT_COLUMNS; ++i)
        for (int k = 0; k < UNIT_DEPTH; ++k)
            sum.at[i] += a.at[i / UNIT_COLUMNS * UNIT_DEPTH + k] * b.at[k * UNIT_COLUMNS + i % UNIT_COLUMNS];
    return sum;
}
#define MATRIX_LEFT Left
#define MATRIX_RIGHT Right
#define MATRIX_SUM Sum
#define NO_SUM no_sum()
#define MULTIPLY_ADD(a, b, sum) multiply_add((a), (b), (sum))
#define LOAD(m, count, array, from, pitch, line, place) \\
    for (int e = 0; e < (count); ++e) \\
        m.at[e] = vload_half((place), (__local const half*)((array) + (from) + (line) * (pitch)))
#define LOAD_LEFT(m, array, from, pitch) \\
    LOAD(m, UNIT_ROWS * UNIT_DEPTH, array, from, pitch, e / UNIT_DEPTH, e % UNIT_DEPTH)
#define LOAD_COLUMNS(m, array, from, pitch) \\
    LOAD(m, UNIT_DEPTH * UNIT_COLUMNS, array, from, pitch, e % UNIT_COLUMNS, e / UNIT_COLUMNS)
#define LOAD_ROWS(m, array, from, pitch) \\
    LOAD(m, UNIT_DEPTH * UNIT_COLUMNS, array, from, pitch, e / UNIT_COLUMNS, e % UNIT_COLUMNS)
#define STORE_MATRIX(m, array, from, pitch) \\
    if (LANE == 0) for (int e = 0; e < UNIT_ROWS * UNIT_COLUMNS; ++e) \\
        ((__local float*)((array) + (from) + e / UNIT_COLUMNS * (pitch)))[e % UNIT_COLUMNS] = m.at[e]
#define FROM_BITS(v) as_float4(v)
#define TO_BITS(v) as_uint4(v)
#define RAW8 uint4
#define RAW8_ZERO ((uint4)(0))
#define SUBGROUP (LOCAL_ID(0) / WIDTH)
#define LANE (LOCAL_ID(0) % WIDTH)
#define SUBGROUP_BARRIER BARRIER
"""


@pytest.fixture
def written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "MATRICES", WRITTEN_OUT_IN_OPENCL)
    monkeypatch.setattr(vulkan, "MATRICES", WRITTEN_OUT)
    monkeypatch.setattr(vulkan, "MATRIX_EXTENSIONS", "#extension GL_KHR_shader_subgroup_basic : require\n")


def products() -> Graph:
    return side_by_side(
        {"odd": product("odd"), "whole": product("whole"), "dense": dense(9, 13, 22), "deep": dense(5, 256, 9)}
    )


def pairs() -> Graph:
    """Rows that begin at multiples of eight halves, within a network: an output is stored in single."""
    build = Builder()
    rows = build.node("dense", [build.input(37, 36), build.constant(36, 96), build.constant(96)], (37, 96))
    return build.outputs(build.node("softmax", [rows], (37, 96), axis=1))


GPUS = ["opencl", "vulkan"]
MADE_OF_SUMS = ["2x1x1x1x1x1x3", *some(["1x1x1x2x1x2x2", "1x2x2x1x1x1x1"], 1)]
OUT_OF_REACH = ["1x1x2x1x2x2x5", *some(["2x1x1x2x4x1x5", "1x2x1x1x4x2x5"], 1)]


def convolutions(names: Sequence[str]) -> Graph:
    graphs = {}
    for size, *rest in (SHAPES[name] for name in names):
        build = Builder()
        graphs[f"c{len(graphs)}"] = build.outputs(build.conv(build.input(*size), *rest, activation=("relu",)))
    build = Builder()
    x, other = build.input(2, 10, 6, 5), build.input(2, 10, 6, 5, name="other")
    summed = build.conv(x, 10, (3, 3), (1, 1), (1, 1, 1, 1), residual=other)
    (end,) = some(AT_END, 1, "end")
    graphs["residual"] = build.outputs(build.node("map", [summed], (2, 10, 6, 5), expression=AT_END[end][1]))
    return side_by_side(graphs)


@pytest.mark.slow
@pytest.mark.parametrize(("api", "tile"), covering("written", GPUS, MADE_OF_SUMS))
def test_kernels_compute_the_same_where_matrices_are_written_out(
    agent: Agent, api: Backend, tile: str, written_out: None, shaders: Path
) -> None:
    size = _facts(agent, api).subgroup_size or 4  # OpenCL's tells none, and the matrices are all the same to it
    limits = Limits(matrix_units=((4, 8, 8),), subgroup_size=size, max_work_group=1024)
    words = f"matrix_units {tile}"
    some_convolutions = convolutions(some(sorted(SHAPES), 3))
    for graph, asked in ((products(), {"product": words}), (some_convolutions, {"algorithm": words})):
        plan = check(agent, graph, Options(api, "fp16", **asked), limits, shaders)  # type: ignore[arg-type]
        assert words in plan.options.values()


@pytest.mark.slow
@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_weights_that_lie_as_a_subgroup_has_them_give_the_same(
    agent: Agent, api: Backend, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    matrices.hold(monkeypatch)
    words = "matrix_units 1x2x1x2x2x1x4"
    dense_layers = side_by_side(
        {"odd": dense(9, 13, 22), "deep": dense(5, 256, 9), "wide": dense(37, 36, 70), "pairs": pairs()}
    )
    some_convolutions = convolutions(some(sorted(SHAPES), 3))
    for graph, asked in ((dense_layers, {"product": words}), (some_convolutions, {"algorithm": words})):
        plan = check(agent, graph, Options(api, "fp16", **asked), matrices.HELD, shaders)  # type: ignore[arg-type]
        assert words in plan.options.values()
        if graph is dense_layers and api == "vulkan":  # neighbours share columns, and eight of them are stored at once
            names = [program.id for program in plan.programs]
            assert {sum(word in name for name in names) for word in ("rows_first1", "eights_out1")} == {2, 1}


@pytest.mark.slow
@pytest.mark.parametrize("tile", ["1x2x2x1x3x1x6", "2x1x1x2x2x1x6"])
def test_products_whose_operands_both_lie_as_a_subgroup_has_them_give_the_same(
    agent: Agent, tile: str, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    matrices.hold(monkeypatch)
    words = f"matrix_units {tile}"
    graph = side_by_side({"odd": dense(9, 192, 22), "deep": dense(37, 384, 9), "pairs": dense(50, 96, 96)})
    plan = check(agent, graph, Options("vulkan", "fp16", product=words), matrices.HELD, shaders)
    assert words in plan.options.values()
    assert "deal_rows" in {program.kernel for program in plan.programs}


@pytest.mark.slow
@pytest.mark.parametrize(("api", "tile"), covering("neither", GPUS, OUT_OF_REACH))
def test_products_of_which_no_operand_lies_in_local_memory_give_the_same(
    agent: Agent, api: Backend, tile: str, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    matrices.hold(monkeypatch)
    words = f"matrix_units {tile}"
    graph = side_by_side({"odd": dense(9, 128, 22), "deep": dense(37, 384, 9), "wide": dense(32, 256, 64)})
    plan = check(agent, graph, Options(api, "fp16", product=words), matrices.HELD, shaders)
    assert words in plan.options.values()
    assert {"matmul_units"} <= {program.kernel for program in plan.programs}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "dealt", "tile"),
    [
        ("#define ELEMENT(m, e) ", "#define ELEMENT(m, e) (LANE == 31 ? 0.0f : 1.0f) * ", "1x2x1x1x2x1x4"),
        ("#define LOAD_LEFT(m, array, from, pitch) LOAD_COLUMNS(m, array, from, pitch)",
         "#define LOAD_LEFT(m, array, from, pitch) HELD(m, array, (from) + LANE / 4 * (pitch), 8 * (pitch), 1)",
         "1x1x1x1x2x1x5"),
    ],
)  # fmt: skip
def test_a_driver_that_deals_matrices_out_in_another_way_gives_nan(
    agent: Agent, held: str, dealt: str, tile: str, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    matrices.hold(monkeypatch)
    assert held in matrices.HELD_IN_VULKAN
    monkeypatch.setattr(vulkan, "MATRICES", matrices.HELD_IN_VULKAN.replace(held, dealt))
    graph = dense(9, 32, 22)
    bundle = compile_graph(
        graph, Options("vulkan", "fp16", product=f"matrix_units {tile}"), matrices.HELD, spirv_cache=shaders
    )
    ended = agent.run(bundle, inputs_of(graph), "--warmup", 0, "--samples", 1)
    assert ended.code == 0 and np.isnan(ended.output(0)).any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_a_device_with_matrix_units_agrees_with_the_reference(
    agent: Agent, api: Backend, kind: Kind, shaders: Path
) -> None:
    facts = _facts(agent, api)
    if not facts.matrix_units:
        pytest.skip(f"{facts.device_name} multiplies no matrices of halves at once through {api}")
    limits = Limits(
        matrix_units=matrix_units(facts.matrix_units), subgroup_size=facts.subgroup_size,
        local_bytes=facts.local_bytes, max_work_group=facts.max_work_group,
    )  # fmt: skip
    tiles = [tile for tile in unit_tiles(limits, api, turned=True, depth=768) if tile.kind == kind]
    if not tiles:
        pytest.skip(f"{facts.device_name} takes no {kind} tiles through {api}")
    for tile in tiles:
        words = Choice("matrix_units", tile.words).words
        for graph, asked in (
            (stored_for(tile), {"product": words}),
            *([] if kind in ("straight", "dealt") else [(convolutions(sorted(SHAPES)), {"algorithm": words})]),
        ):
            plan = check(agent, graph, Options(api, "fp16", **asked), limits, shaders)  # type: ignore[arg-type]
            assert words in plan.options.values()


def stored_for(tile: UnitTile) -> Graph:
    """Products that the tile takes."""
    if tile.kind == "local":
        return every_product()
    whole = tile.kind != "direct"
    sizes = ((9, 384, 22), (70, 768, 96)) if whole else ((9, 13, 22), (70, 2064, 36), (70, 96, 256))
    return side_by_side({f"p{rows}": dense(rows, depth, columns) for rows, depth, columns in sizes})


def _facts(agent: Agent, api: Backend) -> ApiFacts:
    """Facts of the API's device that the agent takes by itself."""
    probed = agent.call([str(agent.binary), "probe"]).all("probe")
    facts: ApiFacts = next(event.facts for event in probed if event.facts.api == api)
    return facts
