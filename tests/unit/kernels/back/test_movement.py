"""Every algorithm of transposition, and addition, against the reference, through OpenCL."""

from __future__ import annotations

from itertools import permutations

import pytest

from kernels.catalog.transposition import TRANSPOSITIONS, transpose_of
from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.ir.graph import Graph
from kernels.options import Choice, Limits, Options
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import Builder, check, inputs_of, side_by_side


def transposition(shape: tuple[int, ...], perm: tuple[int, ...]) -> Graph:
    build = Builder()
    return build.outputs(build.node("transpose", [build.input(*shape)], tuple(shape[i] for i in perm), perm=perm))


def addition(op: str, *shape: int, by_channel: bool = False) -> Graph:
    build = Builder()
    x = build.input(*shape)
    y = build.constant(1, shape[1], 1, 1) if by_channel else build.input(*shape, name="y")
    return build.outputs(build.node(op, [x, y], shape, activation=("relu",)))


def every_transposition(*shape: int) -> Graph:
    shape = shape or (2, 5, 19, 34)
    graphs = {f"r4_{perm}": transposition(shape, perm) for perm in permutations(range(4)) if perm[3] != 3}
    graphs |= {f"r3_{perm}": transposition((3, 33, 17), perm) for perm in permutations(range(3)) if perm[2] != 2}
    return side_by_side({**graphs, "matrix": transposition((70, 65), (1, 0)), "row": transposition((1, 9), (1, 0))})


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("words", ["auto", "naive", "tiled", "tiled 16x4", "tiled 8x8"])
def test_transposition_equals_the_reference(words: str, precision: str) -> None:
    """Moves numbers: in fp32 not one bit may differ. In halves they may be left in single, as the row is."""
    graph = every_transposition()
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, Options("opencl", precision, transpose=words), Limits())  # type: ignore[arg-type]
    wanted = evaluate(graph, inputs)
    for name, got in run_opencl(bundle, inputs).outputs.items():
        exact = wanted[name].astype("f2" if precision == "fp16" else "f4")
        assert (got.astype(exact.dtype) == exact).all(), name
    assert words == "auto" or words in bundle.plan.options.values()


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("cpu_device", [False, True])
def test_addition_equals_the_reference(cpu_device: bool, precision: str) -> None:
    shapes = [(1, 1000), (3, 7), (2, 5, 3, 9), (1, 4, 33, 31), (21,), (3, 5, 7)]  # of five, all may nearly cancel
    graph = side_by_side({f"{op}_{i}": addition(op, *shape) for op in ("add", "mul") for i, shape in enumerate(shapes)})
    check(addition("add", 2, 6, 5, 7, by_channel=True), precision, cpu_device=cpu_device)
    check(graph, precision, cpu_device=cpu_device)


def test_choices_follow_the_device_and_what_was_tuned() -> None:
    options, large = Options("opencl"), transpose_of((512, 256), (1, 0))
    assert TRANSPOSITIONS.choose(options, Limits(), "", large) == Choice("tiled")
    assert TRANSPOSITIONS.choose(options, Limits(cpu_device=True), "", large) == Choice("naive")
    assert TRANSPOSITIONS.choose(options, Limits(), "", transpose_of((4, 8, 16), (1, 0, 2))) == Choice("naive")
    tuned = Options("opencl", tuned={large.key: Choice("tiled", "16x4")})
    assert TRANSPOSITIONS.choose(tuned, Limits(), "", large) == Choice("tiled", "16x4")


def test_tiles_worth_trying_fit() -> None:
    options, limits = Options("opencl"), Limits(max_work_group=1024, local_bytes=16 << 10)
    for sizes in (transpose_of((64, 32), (1, 0)), transpose_of((64, 32), (0, 1)), transpose_of((2, 3, 4), (2, 0, 1))):
        for name, way in TRANSPOSITIONS.algorithms.items():
            tiles = way.tiles(sizes, options, limits)
            assert bool(tiles) == (way.why_not(sizes, options, limits) is None), name
            assert not [tile for tile in tiles if way.why_not(sizes, options, limits, tile)], name


@pytest.mark.parametrize(
    ("given", "limits", "said"),
    [
        ({"transpose": "fast"}, Limits(), r"transpose 'fast' is not known.* auto, naive, tiled"),
        ({"transpose": "tiled 32x32"}, Limits(), "needs a work-group of 1024, the device has 256"),
        (
            {"transpose": "tiled 32x8"},
            Limits(local_bytes=4096),
            "needs 4224 bytes of local memory, the device has 4096",
        ),
        ({"transpose": "tiled 32x7"}, Limits(), "an edge of 32 is no multiple of 7"),
        ({"transpose": "tiled 32"}, Limits(), "write edge x rows of work-items, e.g. 32x8"),
        ({"transpose": "naive 2"}, Limits(), "it has no tiles"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, str], limits: Limits, said: str) -> None:
    graph = transposition((8, 6), (1, 0))
    with pytest.raises(OptionError, match=said):
        compile_graph(graph, Options("opencl", **given), limits)  # type: ignore[arg-type]


def test_an_axis_that_stays_last_is_not_for_squares() -> None:
    with pytest.raises(OptionError, match=r"the last axis stays where it is.*it can use: auto, naive$"):
        compile_graph(transposition((3, 4, 5), (1, 0, 2)), Options("opencl", transpose="tiled"), Limits())
