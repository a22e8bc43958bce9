"""Every algorithm of matrix products against the reference, through OpenCL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels.catalog.product import ALGORITHMS, PRODUCTS, Product
from kernels.catalog.product.depth_parts import depth_parts
from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.ir.packed import FORMATS
from kernels.options import Choice, Limits, Options
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import TOLERANCE, Builder, inputs_of, relative_error, side_by_side, some

pytestmark = pytest.mark.slow

Sizes = dict[str, tuple[tuple[int, ...], int, int, int]]
"""Batch, rows, depth, columns."""
SIZES: Sizes = {
    "small": ((), 6, 9, 5), "one_row": ((), 1, 33, 40), "one_column": ((), 40, 33, 1), "one": ((), 1, 1, 1),
    "odd": ((3,), 37, 70, 41), "whole": ((), 64, 64, 64), "wide": ((2,), 5, 3, 130), "tall": ((), 67, 8, 4),
}  # fmt: skip
WORDS = (
    "auto", "blocked", "blocked 8x8", "blocked 16x32", "blocked 8x4", "registers", "registers 4x2x4",
    "registers 8x1x8", "registers 3x1x16", "split_depth", "split_depth 2x8",
    "one_row", "one_row 2x8x1x4", "one_row 4x16x1x1", "split_depth 4x16x3", "split_depth 1x1x16",
    "tiled", "tiled 8x4x1x1x4",
    "tiled 8x8x1x2x2", "tiled 8x8x2x1x4", "tiled 16x4x3x3x2",
    "tiled 16x8x2x3x2", "tiled 8x4x1x1x4x1", "tiled 8x8x1x2x2x1", "panels",
    "panels 1x1x16", "panels 4x2x4", "panels 3x1x8", "panels 8x4x4",
)  # fmt: skip
"""Named choices; of `tiled` those that compile in a moment."""


SMALL = SIZES | {"odd": ((2,), 19, 35, 22), "whole": ((), 32, 32, 32)}
"""Sizes for a simulator, which takes milliseconds for each multiplication of the large ones."""


def product(size: str, sizes: Sizes = SIZES, *, shared: bool = False) -> Graph:
    batch, rows, depth, columns = sizes[size]
    build = Builder()
    left, right = build.input(*batch, rows, depth), build.input(*(() if shared else batch), depth, columns, name="y")
    return build.outputs(build.node("matmul", [left, right], (*batch, rows, columns)))


def dense(rows: int, depth: int, columns: int) -> Graph:
    build = Builder()
    inputs = [build.input(rows, depth), build.constant(depth, columns), build.constant(columns)]
    return build.outputs(build.node("dense", inputs, (rows, columns), activation=("relu",)))


def every(depth: int = 130, sizes: Sizes = SIZES) -> Graph:
    return side_by_side(
        {
            **{size: product(size, sizes) for size in sizes},
            "shared": product("odd", sizes, shared=True),
            "dense": dense(33, depth, 70),
            "dense_odd": dense(9, 13, 22),
            "dense_row": dense(1, 301, 19),
            "dense_row_of_fours": dense(1, 300, 40),
        }
    )


@pytest.mark.parametrize(
    ("words", "precision"),
    [
        *((words, "fp32") for words in WORDS if " " not in words),
        *((words, "fp32") for words in some((words for words in WORDS if " " in words), 8)),
        *((words, "fp16") for words in some(WORDS, 5)),
    ],
)
def test_product_equals_the_reference(words: str, precision: str) -> None:
    graph = every()
    inputs = inputs_of(graph)
    options = Options("opencl", precision, product=words)  # type: ignore[arg-type]
    bundle = compile_graph(graph, options, Limits(max_work_group=1024))
    wanted = evaluate(graph, inputs)
    outputs = run_opencl(bundle, inputs).outputs
    errors = {name: relative_error(got, wanted[name]) for name, got in outputs.items()}
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE[precision]} == {}
    chosen = {name: words for name, words in bundle.plan.options.items() if name.startswith("algorithm:")}
    assert len(errors) == len(chosen) == len(graph.nodes)
    assert words == "auto" or words in chosen.values()


@pytest.mark.parametrize("words", ["blocked 8x8", "registers 2x1x8", "tiled 8x4x1x1x4", "split_depth"])
def test_not_a_number_and_infinity_reach_their_row_and_column_only(words: str) -> None:
    """They do at the end of the depth too, where vectors are padded."""
    build = Builder()
    rows, depth, columns = 40, 39, 33
    graph = build.outputs(
        build.node("matmul", [build.input(rows, depth), build.input(depth, columns, name="y")], (rows, columns))
    )
    inputs = inputs_of(graph)
    inputs["x"][7, 38] = np.nan
    inputs["y"][37, 5] = np.inf
    inputs["x"][:, 37] = np.abs(inputs["x"][:, 37]) + 1
    outputs = run_opencl(compile_graph(graph, Options("opencl", product=words), Limits()), inputs).outputs
    got = outputs[graph.outputs[0]]
    wanted = inputs["x"] @ inputs["y"]
    assert (np.isnan(got) == np.isnan(wanted)).all() and np.isnan(got).sum() == columns
    assert (np.isposinf(got) == np.isposinf(wanted)).all() and np.isposinf(got).sum() == rows - 1


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
@pytest.mark.parametrize("cpu_device", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_tiles_worth_trying_fit(size: str, backend: str, cpu_device: bool) -> None:
    limits = Limits(cpu_device=cpu_device, max_work_group=1024, local_bytes=48 << 10, unified_memory=cpu_device)
    options = Options(backend)  # type: ignore[arg-type]
    batch, rows, depth, columns = SIZES[size]
    sizes = Product(int(np.prod(batch)), rows, depth, columns, right_is_constant=not batch)
    for name, entry in ALGORITHMS.items():
        tiles = entry.tiles(sizes, options, limits)
        assert len(set(tiles)) == len(tiles), name
        assert bool(tiles) == (entry.why_not(sizes, options, limits) is None), name
        assert not [tile for tile in tiles if entry.why_not(sizes, options, limits, tile)], name


def test_not_a_number_and_infinity_of_weights_stay_in_their_column() -> None:
    graph = dense(9, 39, 33)
    weight, bias = (graph.constants[name] for name in graph.nodes[0].inputs[1:])
    weight[37, 5], weight[38, 32] = np.inf, np.nan
    inputs = inputs_of(graph)
    inputs["x"][4, 36] = np.nan
    inputs["x"][0, 37] = 1.0  # so that one product with infinity is positive, whatever was drawn
    outputs = run_opencl(compile_graph(graph, Options("opencl", product="panels"), Limits()), inputs).outputs
    got, wanted = outputs[graph.outputs[0]], np.maximum(inputs["x"] @ weight + bias, 0)
    assert (np.isnan(got) == np.isnan(wanted)).all() and np.isnan(got).sum() == 33 + 8
    assert (np.isposinf(got) == np.isposinf(wanted)).all() and np.isposinf(got).any()


def test_the_default_tile_keeps_a_compute_unit_of_a_desktop_busy() -> None:
    """Each was within a fiftieth of the fastest of all tiles and parts of the depth on an H100. Each fills its 132
    units another way."""
    desktop = Limits(unified_memory=False, compute_units=132, local_bytes=48 << 10, max_work_group=1024)
    best = {
        (1576, 768, 2304): (("16x16x4x2x2", 1), ("16x16x4x2x2x1", 1)),
        (1576, 768, 3072): (("16x4x3x3x2", 1), ("16x8x2x2x2x1", 1)),
        (1576, 3072, 768): (("16x4x3x3x2", 4), ("16x16x4x2x2x1", 3)),
        (6304, 768, 768): (("16x8x2x3x2", 1), ("16x8x2x3x2x1", 1)),
        (197, 768, 2304): (("16x8x2x3x2", 8), ("16x8x2x3x2x1", 8)),
    }
    for sizes, wanted in best.items():
        product = Product(1, *sizes)
        for api, choice in zip(("opencl", "vulkan"), wanted, strict=True):
            (call,) = ALGORITHMS["tiled"].lower(product, {}, Options(api), desktop)
            assert (ALGORITHMS["tiled"].tiles(product, Options(api), desktop)[0], call.parts) == choice
            assert call.ints == ({} if call.parts == 1 else call.ints | {"depth": sizes[1] // call.parts})


def test_a_depth_is_divided_only_where_units_would_idle() -> None:
    desktop = Limits(unified_memory=False, compute_units=132, local_bytes=48 << 10, max_work_group=1024)
    sizes = {"rows": 64, "columns": 128, "depth": 16}
    few, many = Product(1, 197, 3072, 768), Product(1, 4096, 3072, 768)
    assert depth_parts(few, desktop, **sizes) == 8
    assert depth_parts(many, desktop, **sizes) == depth_parts(replace(few, batch=12), desktop, **sizes) == 1
    assert depth_parts(few, replace(desktop, unified_memory=True), **sizes) == 1
    for depth in (128, 3080):  # few stages; no whole ones
        assert depth_parts(replace(few, depth=depth), desktop, **sizes) == 1


def test_a_single_row_meets_a_large_matrix_on_matrix_units() -> None:
    limits = Limits(
        matrix_units=((16, 16, 16),), subgroup_size=32, unified_memory=False, local_bytes=48 << 10, max_work_group=1024
    )
    chosen = [
        PRODUCTS.choose(Options("opencl", "fp16"), limits, "", Product(1, 1, 4096, columns)).algorithm
        for columns in (1000, 4096)
    ]
    assert chosen == ["split_depth", "matrix_units"]


def test_auto_is_by_the_kind_of_device() -> None:
    large, row = Product(1, 512, 512, 512), Product(1, 1, 512, 512)
    desktop, phone, cpu = Limits(unified_memory=False), Limits(), Limits(cpu_device=True)
    options = Options("opencl")
    assert PRODUCTS.choose(options, desktop, "", large) == Choice("tiled")
    assert PRODUCTS.choose(options, phone, "", large) == PRODUCTS.choose(options, cpu, "", large) == Choice("registers")
    assert PRODUCTS.choose(options, phone, "", row) == Choice("split_depth")
    few = [PRODUCTS.choose(options, desktop, "", Product(1, rows, 512, 512)).algorithm for rows in (2, 8, 31, 64, 65)]
    assert few == ["split_depth"] * 4 + ["tiled"]
    tuned = Options("opencl", tuned={large.key: Choice("registers", "2x1x8"), row.key: Choice("registers", "1x2x8")})
    assert PRODUCTS.choose(tuned, desktop, "", large) == Choice("registers", "2x1x8")
    weights = [Product(1, rows, 512, 512, right_is_constant=True) for rows in (512, 1)]
    assert [PRODUCTS.choose(options, cpu, "", one) for one in weights] == [Choice("panels")] * 2
    assert [PRODUCTS.choose(options, phone, "", one).algorithm for one in weights] == ["registers", "one_row"]
    asked = Options("opencl", product="blocked 16x16", tuned=tuned.tuned)
    assert PRODUCTS.choose(asked, desktop, "", large) == Choice("blocked", "16x16")


def test_what_fits_one_product_is_taken_there_and_auto_elsewhere() -> None:
    graph = side_by_side({"wide": dense(3, 8, 64), "narrow": dense(3, 8, 10)})
    plan = compile_graph(graph, Options("opencl", product="registers 2x1x16"), Limits(cpu_device=True)).plan
    assert plan.options["algorithm:wide.dense0"] == "registers 2x1x16"
    assert plan.options["algorithm:narrow.dense0"] == "panels"


@pytest.mark.parametrize(
    ("words", "backend", "limits", "said"),
    [
        ("fast", "opencl", Limits(), "'fast' is not known.* auto, blocked, tiled, registers"),
        ("blocked 32x32", "opencl", Limits(), "a work-group of 1024, the device has 256.*auto, blocked"),
        ("blocked 32x32", "opencl", Limits(max_work_group=1024, local_bytes=8000), "8192 bytes of local memory"),
        ("tiled 16x16x2x2x4", "vulkan", Limits(local_bytes=16 << 10), "33280 bytes of local memory.* has 16384"),
        ("registers 8x1x16", "vulkan", Limits(), "vectors have four lanes"),
        ("registers 8x1x16", "opencl", Limits(), "16 columns wide, the product 10"),
        ("registers 8x1x5", "opencl", Limits(), "5 lanes, not 4, 8 or 16"),
        ("registers 64x4x8", "opencl", Limits(), "2048 sums"),
        ("registers 8x1", "opencl", Limits(), "'8x1' is not known; write rows x vectors x lanes"),
        ("tiled 10x16x2x2x4", "opencl", Limits(), "gx is a multiple of 8"),
        ("blocked 0x8", "opencl", Limits(), "write rows x columns, e.g. 16x32"),
        ("split_depth 4x12", "opencl", Limits(), "12 parts are no power of two"),
        ("blocked", "cpu", Limits(), "not of cpu"),
    ],
)
def test_what_does_not_fit_is_refused(words: str, backend: str, limits: Limits, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        compile_graph(dense(3, 8, 10), Options(backend, product=words), limits)  # type: ignore[arg-type]


def test_panels_need_weights() -> None:
    with pytest.raises(OptionError, match="its right operand is computed"):
        compile_graph(product("whole"), Options("opencl", product="panels"), Limits())


def test_a_network_without_products_takes_auto_only() -> None:
    PRODUCTS.check(Options("opencl"), Limits(), [])
    with pytest.raises(OptionError, match=r"\(it has no dense or matmul\); it can use: auto$"):
        PRODUCTS.check(Options("opencl", product="blocked"), Limits(), [])


def test_any_limits_have_a_default_that_keeps_them(seed: int) -> None:
    """Draw products and devices, also such as let a work-group have one work-item."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        rows, depth, columns = (int(rng.choice([1, rng.integers(1, 2000)])) for _ in range(3))
        sizes = Product(1, rows, depth, columns, right_is_shared=True, right_is_constant=bool(rng.integers(2)))
        most = int(rng.choice([1, 2, 3, 16, 64, 1024]))
        limits = Limits(
            max_work_group=most, max_work_item_sizes=tuple(rng.integers(1, most + 1, 3).tolist()),
            compute_units=int(rng.integers(0, 150)), unified_memory=bool(rng.integers(2)),
        )  # fmt: skip
        options = Options("opencl", str(rng.choice(["fp32", "fp16"])))  # type: ignore[arg-type]
        choice = PRODUCTS.choose(options, limits, "layer", sizes)
        for call in ALGORITHMS[choice.algorithm].lower(sizes, {}, options, limits, choice.tile):
            assert call.group is None or np.prod(call.group) <= most, (choice, sizes, limits)


@pytest.mark.parametrize(
    ("rows", "unified", "chosen"), [(512, False, "tiled"), (64, False, "packed_rows"), (512, True, "packed_rows")]
)
def test_packed_weights_of_many_rows_are_copied_where_tiles_of_a_large_gpu_read_them(
    rows: int, unified: bool, chosen: str
) -> None:
    limits = Limits(local_bytes=48 << 10, unified_memory=unified, compute_units=132, max_work_group=1024)
    product = Product(1, rows, 896, 4864, right_is_shared=True, right_is_constant=True, packed=FORMATS["Q4_0"])
    assert PRODUCTS.default(Options("vulkan"), limits, product) == chosen
