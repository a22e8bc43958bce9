"""Weights that no buffer of the device holds: parts of the layer, the same result, and no step beside the parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.compile import compile_graph
from kernels.errors import PlanError
from kernels.ir.graph import Graph
from kernels.options import Choice, Limits, Options
from kernels.passes.split_weights import oversized, split_weights
from kernels.plan.model import Plan
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate
from kernels.tuning import applicable, distinct, layers
from tests.unit.kernels.front.test_passes import assert_same_meaning

from .graphs import TOLERANCE, Builder, inputs_of, relative_error
from .packed_matrices import KINDS, packed_matrix, stored

pytestmark = pytest.mark.slow

LARGEST = 48_000
"""Bytes: less than the weights of most layers of `classifier`."""
_ASKED = 6
"""Rows that are taken of a table."""
SMALL = Limits(max_buffer_bytes=LARGEST, cpu_device=True)


def classifier(n: int = 1, features: int = 150) -> Graph:
    """Convolutions, one in groups and one with a residual, then dense layers, the first behind a flatten."""
    build = Builder()
    start = build.conv(build.input(n, 32, 6, 5), 72, (3, 3), (1, 1), (1, 1, 1, 1), activation=("relu",))
    grouped = build.conv(start, 72, (3, 3), (1, 1), (1, 1, 1, 1), groups=18)
    x = build.conv(start, 72, (3, 3), (1, 1), (1, 1, 1, 1), residual=grouped, activation=("relu",))
    x = build.node("max_pool", [x], (n, 72, 3, 2), kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0))
    x = build.node("reshape", [x], (n, 432), shape=(n, 432))
    for width, activation in ((features, {"activation": ("relu",)}), (61, {})):
        depth = build.graph.shapes[x][1]
        operands = [x, build.constant(depth, width, scale=depth**-0.5), build.constant(width)]
        x = build.node("dense", operands, (n, width), **activation)
    return build.outputs(x)


def tables(rng: np.random.Generator) -> Graph:
    """Rows of two tables beyond the limit, of which one is packed."""
    build, taken = Builder(rng), list[str]()
    packed = packed_matrix(str(rng.choice(KINDS)), 1024, 256, rng)
    for table, width in ((build.constant(900, 40), 40), (stored(build, "packed", packed), 256)):
        places = build.constant(_ASKED)
        build.graph.constants[places] = rng.integers(-900, 900, _ASKED).astype(np.float32)
        taken.append(build.node("gather", [table, places], (_ASKED, width), axis=0))
    return build.outputs(*taken)


def divided(plan: Plan) -> dict[str, str]:
    """Layer -> the plan's words."""
    return {key.removeprefix("parts:"): str(why) for key, why in plan.options.items() if key.startswith("parts:")}


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 2), features=st.integers(1, 200), largest=st.integers(2600, 40_000))
def test_parts_are_the_whole_layer_and_none_is_too_large(n: int, features: int, largest: int) -> None:
    graph = classifier(n, features)
    cuts = oversized(graph, largest)
    parts = split_weights(graph, cuts)
    for node in graph.nodes:
        if node.name in cuts:
            ends = [0, *(end for _, end in cuts[node.name])]
            assert list(pairwise(ends)) == list(cuts[node.name]) and ends[-1] == graph.shapes[node.output][1]
            assert all(end % 4 == 0 for end in ends[:-1])
        elif node.op in ("dense", "conv"):
            assert graph.constants[node.inputs[1]].size <= largest
    assert max(array.size for array in parts.constants.values()) <= largest
    assert_same_meaning(graph, parts)


@pytest.mark.parametrize(
    ("options", "precision", "n"),
    [
        ({}, "fp32", 1), ({}, "fp16", 2), ({"product": "registers"}, "fp32", 2), ({"concat": "split"}, "fp32", 1),
        ({"fuse": "none"}, "fp32", 2),
    ],
)  # fmt: skip
def test_a_network_runs_in_small_buffers(options: dict[str, str], precision: str, n: int) -> None:
    graph = classifier(n)
    inputs = inputs_of(graph)
    asked = Options("opencl", precision, algorithm="direct", **options)  # type: ignore[arg-type]
    whole = compile_graph(graph, asked, Limits(cpu_device=True)).plan
    bundle = compile_graph(graph, asked, SMALL)
    assert max(pool.bytes for pool in bundle.plan.pools) <= LARGEST < whole.requires.max_buffer_bytes
    names = {"conv0", "conv2", "dense5"} if precision == "fp32" else {"conv2", "dense5"}
    assert divided(whole) == {} and set(divided(bundle.plan)) == names
    outputs = run_opencl(bundle, inputs, repeats=2).outputs
    errors = {name: relative_error(outputs[name], wanted) for name, wanted in evaluate(graph, inputs).items()}
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE[precision]} == {}


def test_parts_of_a_dense_layer_add_no_step() -> None:
    """Each writes its place in the result, which the next layer reads as it lies."""
    build = Builder()
    x = build.node("dense", [build.input(1, 64), build.constant(64, 300)], (1, 300))
    graph = build.outputs(build.node("dense", [x, build.constant(300, 10)], (1, 10)))
    plan = compile_graph(graph, Options("opencl"), Limits(max_buffer_bytes=16 << 10)).plan
    assert [step.layer for step in plan.steps] == [
        *(f"dense0.{first}" for first in (0, 64, 128, 192, 256)), "dense1",
    ]  # fmt: skip
    assert divided(plan)["dense0"].startswith("5 parts by output features: its 76800 bytes of weights exceed")


@pytest.mark.parametrize("rows", [1, 9])
def test_packed_weights_stay_packed_in_parts(seed: int, rows: int) -> None:
    """Whole they would be too large, and so would a part's unpacked copy; a table of the same bytes has the same
    parts."""
    build = Builder(np.random.default_rng([seed, rows]))
    kind, depth, outputs = (
        str(build.rng.choice(KINDS)),
        256 * int(build.rng.integers(1, 3)),
        int(build.rng.integers(300, 500)),
    )
    matrix = packed_matrix(kind, outputs, depth, build.rng)
    x, weight, table = build.input(rows, depth), stored(build, "w", matrix.T), stored(build, "t", matrix)
    y = build.node("dense", [x, weight], (rows, outputs))
    shown = build.node("reshape", [y], (1, rows, outputs), shape=(1, rows, outputs))
    build.graph.nodes[-1] = replace(build.graph.nodes[-1], name=build.graph.nodes[0].name)  # as imports name them
    taken = build.node("gather", [table, _asked(build)], (_ASKED, depth), axis=0)
    graph = build.outputs(shown, taken)
    limits = Limits(max_buffer_bytes=max(matrix.data.nbytes // 3, 4 * rows * max(outputs, depth) + 4096))
    inputs, bundle = inputs_of(graph) | _places(build, outputs), compile_graph(graph, Options("opencl"), limits)
    assert max(pool.bytes for pool in bundle.plan.pools) <= limits.max_buffer_bytes
    assert bundle.plan.blob_bytes <= 1.1 * matrix.data.nbytes
    found, rows_of_it = run_opencl(bundle, inputs).outputs.values()
    assert relative_error(found[0], inputs[x].astype(np.float64) @ matrix.unpacked().T) <= TOLERANCE["fp32"]
    assert relative_error(rows_of_it, matrix.unpacked()[_clipped(inputs, outputs)]) <= TOLERANCE["fp32"]


@pytest.mark.parametrize("precision", ["fp32", "fp16", "whole numbers"])
def test_a_table_that_no_buffer_holds_is_read_in_parts(seed: int, precision: str) -> None:
    """Each step writes the rows of its part alone: places in any order, from the end, and beyond both ends."""
    build = Builder(np.random.default_rng([seed, len(precision)]))
    rows, *inner = (int(n) for n in build.rng.integers([40, 1, 8], [900, 5, 70]))
    table = build.constant(rows, *inner)
    if precision == "whole numbers":
        build.graph.constants[table] = build.rng.integers(-(1 << 60), 1 << 60, (rows, *inner))
        build.graph.types[table] = "i64"
    graph = build.outputs(build.node("gather", [table, _asked(build)], (_ASKED, *inner), axis=0))
    array = graph.constants[table]
    limits = Limits(max_buffer_bytes=max(array.nbytes // int(build.rng.integers(3, 9)), 16 * array.nbytes // rows))
    bundle = compile_graph(graph, Options("opencl", "fp16" if precision == "fp16" else "fp32"), limits)
    largest = max(buffer.bytes for buffer in bundle.plan.buffers if buffer.role == "weight")
    assert largest <= limits.max_buffer_bytes and divided(bundle.plan).keys() == {graph.nodes[0].name}
    inputs = _places(build, rows)
    (found,) = run_opencl(bundle, inputs).outputs.values()
    wanted = array[_clipped(inputs, rows)]
    np.testing.assert_array_equal(found, wanted.astype(np.float16) if precision == "fp16" else wanted)


def _asked(build: Builder) -> str:
    places = build.input(_ASKED, name="places")
    build.graph.types[places] = "i64"
    return places


def _places(build: Builder, rows: int) -> dict[str, np.ndarray]:
    return {"places": build.rng.integers(-rows - 3, rows + 3, _ASKED)}


def _clipped(inputs: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
    """Return the places as a gather of the GPU reads them: those beyond an end are of its element."""
    return np.clip(inputs["places"], -rows, rows - 1)


def test_what_fits_is_left_as_it_was() -> None:
    graph = classifier()
    room = replace(SMALL, max_buffer_bytes=1 << 30)
    a, b = (compile_graph(graph, Options("opencl"), limits).plan for limits in (room, Limits(cpu_device=True)))
    assert (a.steps, a.pools, a.buffers, a.files) == (b.steps, b.pools, b.buffers, b.files)
    assert {**a.options, "memory": ""} == {**b.options, "memory": ""}


def test_too_little_memory_for_all_parts_is_refused_with_the_figures() -> None:
    with pytest.raises(
        PlanError, match=r"needs at least \d+ bytes .* more than the memory budget of 100000; the largest allocation"
    ):
        compile_graph(classifier(), Options("opencl", memory_budget=100_000, swap="never"), SMALL)


def test_parts_are_tuned_as_they_are_run() -> None:
    graph, options = classifier(), Options("opencl")
    plan = compile_graph(graph, options, SMALL).plan
    chosen = {key.removeprefix("algorithm:") for key in plan.options if key.startswith("algorithm:")}
    assert chosen == set(layers(graph, options, SMALL)) != set(layers(graph, options))
    key = layers(graph, options, SMALL)["dense5.0"].key
    assert key in distinct(graph, options, SMALL) and key not in distinct(graph, options)
    tuned = applicable(graph, options, SMALL, {key: Choice("panels", "1x2x8")})
    plan = compile_graph(graph, replace(options, tuned=tuned), SMALL).plan
    assert plan.options["algorithm:dense5.0"] == "panels 1x2x8"
