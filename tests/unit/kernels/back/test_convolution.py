"""Every convolution algorithm against the reference, through OpenCL."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from kernels.catalog.convolution import ALGORITHMS, CONVOLUTIONS, convolution_of
from kernels.catalog.convolution.winograd.matrices import matrices
from kernels.catalog.family import Untiled
from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.options import HALF, Backend, Choice, Limits, Options, Precision, WorkspaceSplit
from kernels.passes import optimise
from kernels.passes.unread_taps import drop_unread_taps
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import Builder, check, inputs_of, relative_error, shares, side_by_side, some

pytestmark = pytest.mark.slow

# input shape, output channels, window, strides, pads, dilations, groups
SHAPES = {
    "odd_channels": ((1, 3, 7, 9), 5, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "one_pixel": ((1, 5, 1, 1), 7, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "one_pixel_padded": ((1, 2, 1, 1), 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "strides_above_window": ((2, 4, 11, 10), 8, (2, 2), (3, 4), (0, 0, 0, 0), (1, 1), 1),
    "uneven": ((1, 6, 8, 13), 9, (3, 5), (2, 1), (0, 1, 2, 3), (1, 2), 1),
    "dilated": ((1, 4, 12, 12), 4, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 1),
    "first_layer": ((1, 3, 23, 23), 16, (7, 7), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "five": ((1, 7, 11, 9), 6, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "seven": ((1, 5, 12, 11), 6, (7, 7), (1, 1), (3, 3, 3, 3), (1, 1), 1),
    "groups_aligned": ((2, 8, 6, 6), 16, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2),
    "groups_unaligned": ((1, 6, 5, 7), 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "depthwise": ((2, 6, 9, 8), 6, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 6),
    "depthwise_row": ((1, 8, 5, 9), 8, (1, 5), (1, 1), (0, 2, 0, 2), (1, 1), 8),
    "depthwise_twice": ((1, 3, 6, 6), 6, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "pointwise": ((2, 8, 5, 5), 12, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "pointwise_odd": ((1, 13, 3, 7), 18, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "pointwise_stride": ((1, 8, 7, 7), 8, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
}

OPENCL = [name for name in ALGORITHMS if name != "matrix_units"]
"""The algorithms that OpenCL has; `tests/contract/kernels/test_matrix_units.py` has the other."""
WINOGRAD = {"fp32": 1e-4, "fp16": 1e-2}
"""Its transforms of more than 4x4 positions add and take away what is large: bounds of their own."""
WAYS = {
    "fp32": ("fp32", True),
    "fp16": ("fp16", True),
    "gpu-tiles": ("fp32", False),
    "half": ("fp16_arithmetic", False),
}
"""Precision, and whether tiles are those of a CPU."""
TOO_LARGE = {("winograd_large", "fp16"), ("winograd_large", "fp16_arithmetic"), ("winograd_4x4", "fp16_arithmetic")}


def convolution(shape: str) -> Graph:
    size, *rest = SHAPES[shape]
    build = Builder()
    return build.outputs(build.conv(build.input(*size), *rest))


def why_not(algorithm: str, graph: Graph) -> str | None:
    return ALGORITHMS[algorithm].why_not(convolution_of(graph, graph.nodes[0]), Options("opencl"), Limits())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm", [name for name in OPENCL if name != "dot_uneven"])
def test_algorithm_equals_the_reference(algorithm: str, way: str) -> None:
    """Each shape is computed in one of the ways, and two at least in each: each text takes a compiler's time."""
    precision, cpu_device = WAYS[way]
    fitting = {shape: convolution(shape) for shape in SHAPES if why_not(algorithm, convolution(shape)) is None}
    if (algorithm, precision) in TOO_LARGE:
        with pytest.raises(OptionError, match=rf"inputs lose too many bits in {precision}, which bears"):
            check(side_by_side(fitting), precision, algorithm=algorithm)
        return
    tolerance = WINOGRAD.get(precision) if algorithm.startswith("winograd") else None
    ways = [each for each in WAYS if (algorithm, WAYS[each][0]) not in TOO_LARGE]
    dealt = shares(fitting.items(), min(len(ways), len(fitting) // 2), algorithm)
    chosen = dict(dealt[ways.index(way) % len(dealt)])
    run = check(side_by_side(chosen), precision, cpu_device=cpu_device, tolerance=tolerance, algorithm=algorithm)
    assert len(run.outputs) == len(chosen) >= 2


@pytest.mark.parametrize("algorithm", ["winograd_2x2", "winograd_4x4", "winograd_large", "winograd"])
def test_winograd_in_bands_of_rows_gives_the_same(algorithm: str) -> None:
    """A workspace of 150 kB: every band is one round of the three dispatches."""
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 9, 45, 52), 6, (3, 3), (1, 1), (1, 1, 1, 1), activation=("relu",)))
    inputs = inputs_of(graph)
    whole = compile_graph(graph, Options("opencl", algorithm=algorithm), Limits())
    banded = compile_graph(graph, Options("opencl", algorithm=algorithm), Limits(max_buffer_bytes=150_000))
    assert len(banded.plan.steps) > len(whole.plan.steps)
    assert max(pool.bytes for pool in banded.plan.pools) <= 150_000
    wanted = evaluate(graph, inputs)[graph.outputs[0]]
    for bundle in (whole, banded):
        got = run_opencl(bundle, inputs).outputs[graph.outputs[0]]
        assert relative_error(got, wanted) <= 1e-4


@pytest.mark.parametrize("workspace_split", ["rows", "channels"])
@pytest.mark.parametrize("window", [7, 9])
def test_winograd_of_parts_of_a_window(window: int, workspace_split: WorkspaceSplit) -> None:
    """Each part looks at the input, here mirrored at its edges, from its own place; in several rounds."""
    build = Builder()
    x, pad = build.input(1, 9, 23, 19), window // 2
    graph = build.outputs(build.conv(x, 10, (window, window), (1, 1), (pad,) * 4, activation=("relu",)))
    (node,) = graph.nodes
    graph.nodes[0] = replace(node, attributes={**node.attributes, "pad_mode": "reflect"})
    inputs = inputs_of(graph)
    options = Options("opencl", algorithm="winograd_large", workspace_split=workspace_split)
    whole = compile_graph(graph, options, Limits())
    rounds = compile_graph(graph, replace(options, workspace=150_000), Limits())
    assert len(rounds.plan.steps) > len(whole.plan.steps)
    wanted = evaluate(graph, inputs)[graph.outputs[0]]
    for bundle in (whole, rounds):
        assert relative_error(run_opencl(bundle, inputs).outputs[graph.outputs[0]], wanted) <= 1e-5


@pytest.mark.parametrize(("tile", "window"), [(2, 3), (4, 3), (2, 5), (6, 3), (4, 5), (5, 4)])
def test_winograd_matrices_give_the_convolution(tile: int, window: int) -> None:
    """Y = At [(G g) * (Bt d)], in exact fractions."""
    rng = random.Random(os.environ["POCKETFARM_TEST_SEED"])
    output, filters, inputs = matrices(tile, window)
    g = [Fraction(rng.randint(-9, 9)) for _ in range(window)]
    d = [Fraction(rng.randint(-9, 9)) for _ in range(tile + window - 1)]
    products = [
        sum(a * b for a, b in zip(row, g, strict=True)) * sum(a * b for a, b in zip(line, d, strict=True))
        for row, line in zip(filters, inputs, strict=True)
    ]
    got = [sum(a * b for a, b in zip(row, products, strict=True)) for row in output]
    assert got == [sum(g[k] * d[i + k] for k in range(window)) for i in range(tile)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithm_is_refused_where_it_does_not_fit(algorithm: str) -> None:
    for shape in SHAPES:
        if why_not(algorithm, drop_unread_taps(convolution(shape))):
            with pytest.raises(OptionError, match=r"it can use: auto, .*direct"):
                compile_graph(convolution(shape), Options("opencl", algorithm=algorithm), Limits())


@pytest.mark.parametrize("granularity", [4, 12, 16])
def test_granularity_changes_the_tile_not_the_result(granularity: int) -> None:
    shapes = ("odd_channels", "groups_aligned", "pointwise", "first_layer")
    check(side_by_side({shape: convolution(shape) for shape in shapes}), granularity=granularity)


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
@pytest.mark.parametrize(("g", "pixels"), [(1, 1), (2, 1), (3, 1), (6, 1), (6, 2), (64, 1)])
def test_granularity_is_the_number_of_outputs_of_a_work_item(backend: Backend, g: int, pixels: int) -> None:
    """The meaning is study S's, on whatever device: the plan's tile and the number of its work-items say so."""
    for cpu_device in (True, False):
        options = Options(backend, algorithm="dot_uneven", granularity=g, pixels=0 if pixels == 1 else pixels)
        graph = convolution("first_layer")
        _, k, oh, ow = graph.shapes[graph.outputs[0]]
        plan = compile_graph(graph, options, Limits(cpu_device=cpu_device)).plan
        (step,) = (step for step in plan.steps if step.program.startswith("conv_"))
        assert step.program.startswith("conv_dot") and f"outputs{g}_pixels{pixels}" in step.program
        assert step.work_items[1] == -(-4 * -(-k // 4) // g)
        assert step.work_items[0] == -(-ow // pixels) * oh


@pytest.mark.parametrize(("g", "pixels", "precision"), [(3, 2, "fp32"), (6, 1, "fp16")])
def test_any_number_of_outputs_gives_the_same_result(g: int, pixels: int, precision: str) -> None:
    """It has one tile on every device: five channels are no multiple of either, nor nine and seven pixels of two."""
    shapes = ("odd_channels", "strides_above_window", "uneven", "dilated", "groups_aligned", "groups_unaligned")
    graph = side_by_side({shape: convolution(shape) for shape in shapes})
    check(graph, precision, algorithm="dot_uneven", granularity=g, pixels=pixels)


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_a_granularity_leaves_one_pixel_a_work_item(backend: Backend) -> None:
    plan = compile_graph(convolution("first_layer"), Options(backend, algorithm="direct", granularity=4), Limits()).plan
    (program,) = (step.program for step in plan.steps if step.program.startswith("conv_"))
    assert program.startswith("conv_direct") and "lanes4_pixels1_vectors1" in program


@pytest.mark.parametrize("pixels", [1, 3, 16])
@pytest.mark.parametrize("algorithm", ["auto", "direct"])
def test_pixels_change_the_tile_not_the_result(pixels: int, algorithm: str) -> None:
    shapes = ("odd_channels", "one_pixel", "groups_aligned", "pointwise", "first_layer")
    graph = side_by_side({shape: convolution(shape) for shape in shapes})
    check(graph, algorithm=algorithm, granularity=4, pixels=pixels)


def test_residual_is_added_before_the_activation_and_bias_may_be_absent() -> None:
    layers = ((10, (3, 3), (1, 1), (1, 1, 1, 1)), (10, (1, 1)), (10, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 10))
    graphs = {}
    for index, layer in enumerate(layers):
        for activation in (("relu",), ("sigmoid",), ("clip", 0.0, 0.5)):
            build = Builder()
            x, other = build.input(2, 10, 6, 5), build.input(2, 10, 6, 5, name="other")
            graphs[f"{index}_{activation[0]}"] = build.outputs(
                build.conv(x, *layer, residual=other, activation=activation)
            )
        build = Builder()
        graphs[f"{index}_no_bias"] = build.outputs(build.conv(build.input(1, 10, 4, 4), *layer, bias=False))
    check(side_by_side(graphs))


def test_auto_takes_the_most_specialised() -> None:
    chosen = {}
    for name, (size, *rest) in SHAPES.items():
        build = Builder()
        graph = build.outputs(build.conv(build.input(*size), *rest))
        chosen[name] = CONVOLUTIONS.choose(
            Options("opencl"), Limits(), "conv0", convolution_of(graph, graph.nodes[0])
        ).algorithm
    assert chosen["pointwise"] == "pointwise"
    assert chosen["pointwise_stride"] == "direct"
    assert chosen["depthwise"] == "depthwise"
    assert chosen["depthwise_twice"] == "depthwise"
    assert chosen["first_layer"] == "direct"


def test_auto_goes_through_local_memory_on_a_device_with_memory_of_its_own() -> None:
    limits = Limits(unified_memory=False)
    chosen = {}
    wide = {
        f"{side}x{side} {window}": ((1, 32, side, side), 32, (window, window), (1, 1), (window // 2,) * 4)
        for side, window in ((28, 3), (128, 3), (28, 5), (28, 7))
    }
    for name, (size, *rest) in {**SHAPES, **wide}.items():
        build = Builder()
        graph = build.outputs(build.conv(build.input(*size), *rest))
        chosen[name] = CONVOLUTIONS.choose(
            Options("vulkan"), limits, "conv0", convolution_of(graph, graph.nodes[0])
        ).algorithm
    assert chosen["28x28 3"] == "winograd"
    assert chosen["128x128 3"] == chosen["28x28 5"] == chosen["28x28 7"] == "winograd_large"
    assert chosen["pointwise"] == "implicit_gemm"
    assert chosen["depthwise"] == "depthwise" and chosen["groups_aligned"] == "implicit_gemm"
    assert chosen["groups_unaligned"] == "direct"


def test_auto_filters_minimally_on_pocl_only_where_it_paid() -> None:
    pocl = Limits(cpu_device=True)

    def chosen(channels: int, size: int, options: Options, limits: Limits = pocl) -> str:
        build = Builder()
        graph = build.outputs(build.conv(build.input(1, channels, size, size), 32, (3, 3), (1, 1), (1, 1, 1, 1)))
        return CONVOLUTIONS.choose(options, limits, "conv0", convolution_of(graph, graph.nodes[0])).algorithm

    assert [chosen(16, size, Options("opencl")) for size in (3, 4, 9, 10)] == [
        "window", "winograd_2x2", "winograd_2x2", "winograd",
    ]  # fmt: skip
    assert chosen(15, 10, Options("opencl")) == chosen(16, 10, Options("opencl", "fp16")) == "window"
    assert chosen(16, 10, Options("vulkan")) == "window"
    assert chosen(16, 10, Options("opencl"), Limits()) == "window"
    assert chosen(16, 10, Options("opencl", granularity=8)) == "window"
    assert chosen(16, 10, Options("opencl", pixels=1)) == "window"


def test_unknown_algorithm_names_those_that_fit() -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 4, 4, 4), 4, (3, 3)))
    with pytest.raises(
        OptionError, match=r"'wino' is not known; this network can use: auto, window, direct, implicit_gemm"
    ):
        CONVOLUTIONS.check(Options("opencl", algorithm="wino"), Limits(), CONVOLUTIONS.cases(graph))


@pytest.mark.parametrize(
    ("algorithm", "granularity", "words"),
    [("direct", 6, "`dot` computes others"), ("auto", 68, "is 1 to 64, not 68"), ("dot", -4, "is 1 to 64, not -4")],
)
def test_granularity_that_does_not_fit(algorithm: str, granularity: int, words: str) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 4, 4, 4), 4, (3, 3)))
    with pytest.raises(OptionError, match=words):
        compile_graph(graph, Options("opencl", algorithm=algorithm, granularity=granularity), Limits())


def test_pixels_beyond_the_most_are_refused() -> None:
    with pytest.raises(OptionError, match="pixels is 1 to 16, not 17"):
        compile_graph(convolution("pointwise"), Options("opencl", pixels=17), Limits())


@pytest.mark.parametrize("precision", HALF)
def test_weights_beyond_half_are_refused(precision: Precision) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 4, 4, 4), 4, (3, 3)))
    graph.constants[graph.nodes[0].inputs[1]][0, 0, 0, 0] = -1e6
    with pytest.raises(OptionError, match=r"constant0: the value -1e\+06 exceeds the range of fp16 \(65504\)"):
        compile_graph(graph, Options("opencl", precision), Limits())


def test_a_half_may_be_infinite() -> None:
    """A mask is added to an output: here it is the bias."""
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 4, 4, 4), 4, (1, 1)))
    graph.constants[graph.nodes[0].inputs[2]][0] = -np.inf
    found = run_opencl(compile_graph(graph, Options("opencl", "fp16"), Limits()), inputs_of(graph)).outputs
    assert np.isneginf(found[graph.outputs[0]]).sum() == 16


@pytest.mark.parametrize(("window", "algorithm"), [(3, "winograd_4x4"), (5, "winograd"), (5, "winograd_2x2")])
def test_winograd_that_loses_too_much_is_refused(window: int, algorithm: str) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 8, 9, 9), 8, (window, window)))
    compile_graph(graph, Options("opencl", "fp16", algorithm=algorithm), Limits())
    with pytest.raises(
        OptionError, match=r"6x6 inputs lose too many bits in fp16_arithmetic, which bears 4x4.* can use: auto"
    ):
        compile_graph(graph, Options("opencl", "fp16_arithmetic", algorithm=algorithm), Limits())


@pytest.mark.parametrize("cpu_device", [True, False], ids=["cpu", "gpu"])
def test_long_sums_keep_their_bits_in_half(cpu_device: bool) -> None:
    """The fully connected layer would lose 2.6 % in one chunk."""
    build = Builder()
    dense = build.node("dense", [build.input(8, 25088), build.constant(25088, 8)], (8, 8))
    graphs = {"dense": build.outputs(dense)}
    for name, window in (("pointwise", 1), ("window", 3), ("direct", 5)):
        build = Builder()
        graphs[name] = build.outputs(build.conv(build.input(1, 2048 // window**2, 5, 5), 8, (window, window)))
    check(side_by_side(graphs), "fp16_arithmetic", cpu_device=cpu_device)


@pytest.mark.slow
@pytest.mark.parametrize("cpu_device", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize("algorithm", OPENCL)
def test_every_tile_gives_the_same(algorithm: str, cpu_device: bool) -> None:
    shape = next(
        name
        for name in ("groups_aligned", "odd_channels", "depthwise", "pointwise")
        if not why_not(algorithm, convolution(name))
    )
    graph = convolution(shape)
    conv, inputs = convolution_of(graph, graph.nodes[0]), inputs_of(graph)
    limits, wanted = Limits(cpu_device=cpu_device), evaluate(graph, inputs)[graph.outputs[0]]
    tiles = ALGORITHMS[algorithm].tiles(conv, Options("opencl"), limits) or [""]
    assert len(set(tiles)) == len(tiles)
    for tile in (tiles[0], *some(tiles[1:], 1, algorithm)):
        options = Options("opencl", tuned={conv.key: Choice(algorithm, tile)})
        bundle = compile_graph(graph, options, limits)
        assert bundle.plan.options[f"algorithm:{graph.nodes[0].name}"] == Choice(algorithm, tile).words
        got = run_opencl(bundle, inputs).outputs[graph.outputs[0]]
        assert relative_error(got, wanted) <= (1e-4 if algorithm.startswith("winograd") else 1e-5), tile


@pytest.mark.parametrize("algorithm", [name for name in OPENCL if not isinstance(ALGORITHMS[name], Untiled)])
def test_a_tile_that_cannot_be_read_is_refused(algorithm: str) -> None:
    shape = next(
        name for name in ("odd_channels", "depthwise", "pointwise") if not why_not(algorithm, convolution(name))
    )
    graph = convolution(shape)
    conv = convolution_of(graph, graph.nodes[0])
    with pytest.raises(OptionError, match="'seven' is not known; write"):
        compile_graph(graph, Options("opencl", tuned={conv.key: Choice(algorithm, "seven")}), Limits())


MIRRORED = {
    "window": ((1, 5, 9, 11), 7, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "large": ((2, 8, 7, 10), 6, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "uneven": ((1, 6, 8, 13), 9, (3, 5), (2, 1), (0, 1, 2, 3), (1, 2), 1),
    "as_far_as_it_goes": ((1, 4, 5, 5), 4, (9, 9), (1, 1), (4, 4, 4, 4), (1, 1), 1),
    "depthwise": ((2, 6, 9, 8), 6, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 6),
    "depthwise_row": ((1, 8, 5, 9), 8, (1, 5), (1, 1), (0, 2, 0, 2), (1, 1), 8),
}


@pytest.mark.parametrize("algorithm", [name for name in OPENCL if name != "pointwise"])
def test_padding_by_reflection_is_part_of_the_convolution(algorithm: str) -> None:
    """Each runs in one of the precisions that it bears: what is mirrored is the place that is read."""
    (precision,) = some([one for one in ("fp32", "fp16") if (algorithm, one) not in TOO_LARGE], 1, algorithm)
    graphs = {}
    for name, (size, *rest) in MIRRORED.items():
        build = Builder()
        x = build.input(*size)
        t, left, b, r = pads = rest[3]
        padded = (*size[:2], size[2] + t + b, size[3] + left + r)
        mirror = build.node("pad", [x], padded, pads=pads, mode="reflect", value=0.0)
        graph = build.outputs(build.conv(mirror, *rest[:3], (0, 0, 0, 0), *rest[4:]))
        if ALGORITHMS[algorithm].why_not(convolution_of(graph, graph.nodes[1]), Options("opencl"), Limits()) is None:
            graphs[name] = graph
    whole = side_by_side(graphs)
    assert Counter(node.op for node in optimise(whole, reflect=True).nodes) == {"conv": len(graphs)}
    tolerance = WINOGRAD[precision] if algorithm.startswith("winograd") else None
    check(whole, precision, cpu_device=algorithm == "window", tolerance=tolerance, algorithm=algorithm)
