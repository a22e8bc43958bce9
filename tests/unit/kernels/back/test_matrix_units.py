"""Products on matrix units: which plans use them, and the SPIR-V of their shaders. They run where a device has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernels.catalog.convolution import ALGORITHMS as CONVOLUTIONS
from kernels.catalog.convolution import Convolution
from kernels.catalog.desktop.units.choice import unit_tile, unit_tiles
from kernels.catalog.product import ALGORITHMS, Product
from kernels.codegen.cooperative_matrices import as_khronos
from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options, Precision, matrix_units
from kernels.passes import prepare
from kernels.plan.model import Dispatch

from .graphs import Builder
from .norms import layer_norm
from .rows import encoder
from .test_spirv import instructions

DEVICE = Limits(
    matrix_units=((16, 8, 8), (16, 16, 16)), subgroup_size=32, unified_memory=False, local_bytes=48 << 10,
    max_work_group=1024, compute_units=132,
)  # fmt: skip
HALVES = Options("vulkan", "fp16")
_CAPABILITY, _TYPE, _LOAD, _STORE, _PRODUCT = 17, 4456, 4457, 4458, 4459


def dense(rows: int, depth: int, columns: int) -> Graph:
    build = Builder()
    inputs = [build.input(rows, depth), build.constant(depth, columns), build.constant(columns)]
    return build.outputs(build.node("dense", inputs, (rows, columns), activation=("relu",)))


def convolution() -> Graph:
    build = Builder()
    return build.outputs(build.conv(build.input(2, 20, 9, 9), 36, (3, 3), (1, 1), (1, 1, 1, 1)))


def shaders(graph: Graph, options: Options, cache: Path) -> dict[str, bytes]:
    files = compile_graph(graph, options, DEVICE, spirv_cache=cache).files
    return {name: content for name, content in files.items() if name.endswith(".spv") and "_units" in name}


@pytest.mark.parametrize(("option", "graph"), [("product", dense(70, 100, 50)), ("algorithm", convolution())])
def test_a_shader_multiplies_matrices_as_khronos_has_it(option: str, graph: Graph, tmp_path: Path) -> None:
    options = replace(HALVES, **{option: "matrix_units"})  # type: ignore[arg-type]
    (module,) = shaders(graph, options, tmp_path).values()
    listed = instructions(module)
    numbers = {words[2]: words[3] for words in listed if words[0] == 43}  # constants
    types = {words[1]: numbers[words[6]] for words in listed if words[0] == _TYPE}
    assert sorted(types.values()) == [0, 1, 2]  # left operand, right operand, sum
    loaded = {words[2]: words[1] for words in listed if words[0] in (61, _LOAD)}
    products = [words for words in listed if words[0] == _PRODUCT]
    assert products and all(
        [types[loaded[each]] for each in words[3:6]] == [0, 1, 2] and types[words[1]] == 2 for words in products
    )
    # the left operand lies by rows, weights by columns
    assert all(numbers[words[4]] == types[words[1]] for words in listed if words[0] == _LOAD)
    assert {6022, 5345, 9, 4433} <= {words[1] for words in listed if words[0] == _CAPABILITY}
    assert not [words for words in listed if 5357 <= words[0] <= 5362 or words[:2] == (_CAPABILITY, 5357)]
    assert len({words[2] for words in listed if words[0] == 43}) == sum(words[0] == 43 for words in listed)


def test_a_program_multiplies_by_nvidias_instructions() -> None:
    for graph, option in ((dense(70, 100, 50), "product"), (convolution(), "algorithm")):
        options = Options("opencl", "fp16", **{option: "matrix_units"})  # type: ignore[arg-type]
        files = compile_graph(graph, options, DEVICE).files
        (text,) = (content.decode() for name, content in files.items() if "_units" in name)
        assert "mma.sync.aligned.m16n8k16" in text and "__local uint4 tile[LOCAL];" in text


def test_a_module_without_matrices_stays_as_it_is(tmp_path: Path) -> None:
    files = compile_graph(dense(8, 8, 8), HALVES, Limits(), spirv_cache=tmp_path).files
    module = next(content for name, content in files.items() if name.endswith(".spv"))
    assert as_khronos(module) is module


@pytest.mark.parametrize(
    ("options", "limits", "why"),
    [
        (Options("opencl"), DEVICE, "multiply halves; the precision is fp32"),
        (
            HALVES,
            Limits(subgroup_size=8),
            r"no matrices of halves at once through Vulkan \(VK_KHR_cooperative_matrix\)",
        ),
        (Options("opencl", "fp16"), Limits(), r"at once through OpenCL \(NVIDIA's instructions, from 8.0 on\)"),
        (HALVES, replace(DEVICE, local_bytes=1024), "no tile fits"),
        (HALVES, replace(DEVICE, kernel_groups={"matmul_units": 32, "conv_units": 32}), "no tile fits"),
    ],
)
def test_where_there_are_none_it_says_why(options: Options, limits: Limits, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        compile_graph(dense(70, 100, 50), replace(options, product="matrix_units"), limits)
    with pytest.raises(OptionError, match=why):
        compile_graph(convolution(), replace(options, algorithm="matrix_units"), limits)


def test_tiles_worth_trying_fit_the_device() -> None:
    conv = Convolution(2, 20, 9, 9, 36, 9, 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1)
    both = (ALGORITHMS["matrix_units"], Product(1, 70, 100, 50)), (CONVOLUTIONS["matrix_units"], conv)
    for limits in (DEVICE, replace(DEVICE, local_bytes=32 << 10, max_work_group=128, subgroup_size=64)):
        for entry, sizes in both:
            words = entry.tiles(sizes, HALVES, limits)
            assert len(words) == len(set(words)) > 1
            tiles = [unit_tile(each, limits, turned=True) for each in words]
            assert all(tile.group <= limits.max_work_group and tile.local_bytes <= limits.local_bytes for tile in tiles)
            assert not [each for each in words if entry.why_not(sizes, HALVES, limits, each)]
    units = {
        (tile.unit_rows, tile.unit_columns, tile.unit_depth) for tile in unit_tiles(DEVICE, "vulkan", turned=False)
    }
    assert units == {(16, 16, 16)}


def test_shapes_that_vectors_do_not_make_up_are_left_out() -> None:
    assert matrix_units(["16x16x16", "16x8x8", "8x4x16", "8x8x4"]) == ((16, 16, 16), (16, 8, 8))


@pytest.mark.parametrize(
    ("rows", "depth", "sides"), [(197, 768, "5"), (64, 1024, "5"), (1, 768, ""), (197, 776, ""), (6304, 768, "4")]
)
@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_few_rows_are_read_as_work_items_have_them(api: Backend, rows: int, depth: int, sides: str) -> None:
    known = replace(DEVICE, matrix_units=((16, 8, 16), (16, 16, 16)))
    sizes = Product(1, rows, depth, 768, right_is_constant=True)
    for device, wanted in ((known, sides), (DEVICE, sides if api == "opencl" else "")):
        last = ALGORITHMS["matrix_units"].tiles(sizes, Options(api, "fp16"), device)[0][-1]
        assert (last if last in "45" else "") == wanted


def test_many_normalised_rows_are_read_as_work_items_have_them() -> None:
    known = replace(DEVICE, matrix_units=((16, 8, 16), (16, 16, 16)))
    cases: list[tuple[int, bool, Backend, str]] = [
        (6304, True, "vulkan", "6"), (6304, False, "vulkan", "4"), (6304, True, "opencl", "4"),
        (197, True, "vulkan", "5"),
    ]  # fmt: skip
    for rows, normed, api, sides in cases:
        sizes = Product(1, rows, 768, 3072, right_is_constant=True, left_is_free=normed)
        words = ALGORITHMS["matrix_units"].tiles(sizes, Options(api, "fp16"), known)
        assert words[0][-1] == sides
        assert normed or not [each for each in words if each.endswith("6")]
    with pytest.raises(OptionError, match="6 sides ask for one part"):
        unit_tile("1x1x2x2x2x2x6", known, turned=True)
    plain, normed_sizes = (
        Product(1, 64, 768, 768, right_is_constant=True, left_is_free=each) for each in (False, True)
    )
    assert plain.key != normed_sizes.key


def test_dense_layers_are_told_that_rows_are_written_for_them_alone() -> None:
    graph = encoder(1, 5, 2, 12)
    marked = [
        sum("free_rows" in node.attributes for node in prepare(replace(graph, outputs=outputs), HALVES).nodes)
        for outputs in (graph.outputs[:1], graph.outputs)  # the second output is rows that are normalised
    ]
    assert marked == [3, 2]  # by normalisations, and by the layer before the last one


def test_a_normalisation_of_other_rows_than_the_products_is_a_step_of_its_own() -> None:
    known = replace(DEVICE, matrix_units=((16, 8, 16), (16, 16, 16)))
    build = Builder()
    x = layer_norm(build, build.input(64, 2, 64), (64, 2, 64))
    x = build.node("reshape", [x], (64, 128), shape=(64, 128))
    graph = build.outputs(build.node("dense", [x, build.constant(128, 96)], (64, 96)))
    assert "row_norm_held" in {program.kernel for program in compile_graph(graph, HALVES, known).plan.programs}


def test_rows_are_normalised_where_a_work_group_reads_them_whole() -> None:
    known = replace(DEVICE, matrix_units=((16, 8, 16), (16, 16, 16)))
    graph = encoder(1, 197, 12, 64)
    sum_, rows = graph.outputs  # the latter are normalised
    cases: list[tuple[tuple[str, ...], Precision, int]] = [
        ((sum_,), "fp16", 0), ((sum_,), "fp32", 2), ((sum_, rows), "fp16", 1)
    ]  # fmt: skip
    for outputs, precision, left in cases:
        plan = compile_graph(replace(graph, outputs=outputs), Options("opencl", precision), known).plan
        norms = [step for step in plan.steps if isinstance(step, Dispatch) and step.program.startswith("row_norm_held")]
        assert len(norms) == left
        assert any(program.kernel.startswith("matmul_units_norm") for program in plan.programs) == (left < 2)
