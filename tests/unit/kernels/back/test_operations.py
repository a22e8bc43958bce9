"""Every other operation against the reference, through OpenCL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.ir.taking import NOTHING
from kernels.lower.gpu import LOWERINGS
from kernels.options import Limits, Options
from kernels.passes import prepare
from kernels.plan.model import Dispatch
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import Builder, check, generator, inputs_of, relative_error, shares, side_by_side
from .rows import encoder

Case = Callable[[Builder], str]


def _pool(op: str, **attributes: object) -> Case:
    def build(b: Builder) -> str:
        return b.node(op, [b.input(2, 6, 7, 9)], (2, 6, 4, 5), **attributes)

    return build


def _resize(b: Builder, *, mode: str, coordinates: str, size: tuple[int, int]) -> str:
    return b.node("resize", [b.input(2, 6, 5, 7)], (2, 6, *size), mode=mode, coordinates=coordinates, size=size)


def _places(b: Builder, *places: float) -> str:
    """A constant of whole numbers."""
    name = b.constant(len(places))
    b.graph.constants[name] = np.array(places, np.float32)
    return name


def _row(b: Builder, *places: float) -> str:
    name = _places(b, *places)
    return b.node("reshape", [name], (1, len(places)), shape=(1, len(places)))


def _aligned(kind: str, *, half: bool) -> Case:
    """Boxes in a picture, at its edges, outside, without an extent; the last one does not count.

    Their corners are numbers that halves hold: rounded ones would look elsewhere, which is no error of a kernel.
    """

    def build(b: Builder) -> str:
        corners = (
            1.25, -3.5, 9.75, 11.25, -9, -8, 40, 30, 4.5, 5.125, 4.5, 5.125, 80, 2, 90, 5, 6.25, 7.25, 2.875, 1.625,
            0, 0, 9, 9,
        )  # fmt: skip
        boxes = b.node("reshape", [_places(b, *corners)], (6, 4), shape=(6, 4))
        operands = [b.input(2, 6, 7, 9), boxes, _places(b, 0, 1, 1, 0, 1, 0), _places(b, 5)]
        a = {"size": (3, 2), "points": 2, "scale": 0.5, "half": half, "kind": kind}
        return b.node("roi_align", operands, (6, 6, 3, 2), **a)

    return build


def _cached(
    op: str, *, rows: int, turned: int = 0, by_place: bool = True, normed: bool = False, **more: object
) -> Case:
    """Rows of 6 + 2 + 2 heads side by side go into, or look at, a cache of 70 places; few or most are valid."""

    def build(b: Builder) -> str:
        batch, heads, depth, columns = 2, 6, 16, 20
        x = b.input(batch, rows, (heads + 4) * depth)
        attends = op == "attend"
        shapes = [(batch, 2, 70, depth), (batch, 2, 70, columns)] if attends else [(batch, 2, 70, depth)]
        cache = [b.input(*shape, name=f"cache{i}") for i, shape in enumerate(shapes)]
        operands = [x, *cache] if attends else [*cache, x]
        operands.append(_places(b, 68, rows - 1 + (rows == 1)))
        angles = (70 if by_place else 2, *(() if by_place else (rows,)), turned // 2)
        operands += [b.constant(*angles), b.constant(*angles)] if turned else ["", ""] * normed
        operands += [b.constant(depth)] * normed
        a = {"rows": rows, "turned": turned, "by_place": by_place, "normed": normed, "epsilon": 0.01 * normed}
        place = (0 if attends else heads * depth, rows * (heads + 4) * depth, depth, (heads + 4) * depth)
        a |= {"heads": heads, "scale": 0.3, "window": 0, "softcap": 0.0} | more if attends else {}
        shape = (batch, rows, heads * columns) if attends else shapes[0]
        return b.node(op, operands, shape, place=place, **a)

    return build


def _slice(b: Builder, *, axis: int, start: int, stop: int) -> str:
    """A part of what a convolution wrote, read by another: views of stacks must reach both ways."""
    shape = [2, 10, 5, 7]
    x = b.conv(b.input(2, 3, 5, 7), 10, (1, 1))
    shape[axis] = stop - start
    part = b.node("slice", [x], (shape[0], shape[1], shape[2], shape[3]), axis=axis, start=start, stop=stop)
    return b.conv(part, 6, (1, 1))


_PADDED = {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
_WINDOWS = {"kernel": (2, 3), "strides": (2, 3), "pads": (1, 0, 1, 2), "dilations": (2, 1)}
_CEIL = {"kernel": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0)}  # 7x9 -> 4x5 only where the last window overhangs

CASES: dict[str, Case] = {
    "im2col": lambda b: b.node("im2col", [b.input(2, 6, 7, 9)], (2, 36, 4, 3), **_WINDOWS),
    "im2col_of_one_channel": lambda b: b.node("im2col", [b.input(1, 1, 7, 9)], (1, 6, 4, 3), **_WINDOWS),
    "max_pool": _pool("max_pool", **_PADDED),
    "max_pool_ceil": _pool("max_pool", **_CEIL),
    "average_pool": _pool("average_pool", **_PADDED, count_include_pad=0),
    "average_pool_counting_pads": _pool("average_pool", **_PADDED, count_include_pad=1),
    "average_pool_ceil": _pool("average_pool", **_CEIL, count_include_pad=1),
    "max_pool_gaps": lambda b: b.node(
        "max_pool", [b.input(1, 3, 9, 9)], (1, 3, 3, 3), kernel=(1, 1), strides=(4, 4), pads=(0, 0, 0, 0)
    ),
    "global_average_pool": lambda b: b.node("global_average_pool", [b.input(2, 7, 5, 6)], (2, 7, 1, 1)),
    "dense_row": lambda b: b.node("dense", [b.input(1, 10), b.constant(10, 7), b.constant(7)], (1, 7)),
    "dense_batch": lambda b: b.node(
        "dense", [b.input(9, 13), b.constant(13, 22), b.constant(22)], (9, 22), activation=("sigmoid",)
    ),
    "dense_row_deep": lambda b: b.node(
        "dense", [b.input(1, 301), b.constant(301, 70), b.constant(70)], (1, 70), activation=("relu",)
    ),
    "dense_rows_deep": lambda b: b.node("dense", [b.input(3, 130), b.constant(130, 9)], (3, 9)),
    "dense_no_bias": lambda b: b.node("dense", [b.input(5, 8), b.constant(8, 16)], (5, 16), activation=("relu",)),
    "dense_after_sigmoid": lambda b: b.node(
        "dense", [b.node("sigmoid", [b.input(3, 5)], (3, 5)), b.constant(5, 6), b.constant(6)], (3, 6)
    ),
    "matmul": lambda b: b.node("matmul", [b.input(6, 9), b.input(9, 5, name="y")], (6, 5)),
    "matmul_batch": lambda b: b.node("matmul", [b.input(2, 3, 5, 7), b.input(2, 3, 7, 6, name="y")], (2, 3, 5, 6)),
    "matmul_whole_vectors": lambda b: b.node("matmul", [b.input(3, 8, 12), b.input(3, 12, 8, name="y")], (3, 8, 8)),
    "relu": lambda b: b.node("relu", [b.input(2, 5, 3, 4)], (2, 5, 3, 4)),
    "relu_rank_3": lambda b: b.node("relu", [b.input(3, 5, 7)], (3, 5, 7)),
    "sigmoid": lambda b: b.node("sigmoid", [b.input(3, 6)], (3, 6)),
    "clip": lambda b: b.node("clip", [b.input(1, 4, 5, 5)], (1, 4, 5, 5), min=-0.5, max=0.25),
    "leaky_relu": lambda b: b.node("leaky_relu", [b.input(2, 5, 3, 4)], (2, 5, 3, 4), slope=0.2),
    "conv_leaky_relu": lambda b: b.conv(b.input(1, 5, 6, 7), 6, (3, 3), activation=("leaky_relu", 0.2)),
    "hard_sigmoid": lambda b: b.node("hard_sigmoid", [b.input(2, 5, 3, 4)], (2, 5, 3, 4), alpha=0.3, beta=0.4),
    "hard_swish": lambda b: b.node("hard_swish", [b.input(2, 5, 3, 4)], (2, 5, 3, 4)),
    "hard_swish_rank_3": lambda b: b.node("hard_swish", [b.input(3, 5, 7)], (3, 5, 7)),
    "conv_hard_sigmoid": lambda b: b.conv(b.input(1, 5, 6, 7), 6, (3, 3), activation=("hard_sigmoid", 0.2, 0.5)),
    "conv_hard_swish": lambda b: b.conv(b.input(1, 5, 6, 7), 6, (3, 3), activation=("hard_swish",)),
    "dense_hard_swish": lambda b: b.node(
        "dense", [b.input(9, 13), b.constant(13, 22), b.constant(22)], (9, 22), activation=("hard_swish",)
    ),
    "clip_open": lambda b: b.node("clip", [b.input(1, 4, 5, 5)], (1, 4, 5, 5), min=0.0, max=float("inf")),
    "add": lambda b: b.node("add", [b.input(2, 5, 3, 3), b.input(2, 5, 3, 3, name="y")], (2, 5, 3, 3)),
    "add_itself": lambda b: b.node("add", [b.input(2, 5, 3, 3), "x"], (2, 5, 3, 3), activation=("relu",)),
    "add_by_channel": lambda b: b.node("add", [b.input(2, 5, 3, 3), b.constant(1, 5, 1, 1)], (2, 5, 3, 3)),
    "add_by_row": lambda b: b.node("add", [b.input(2, 5, 3, 4), b.constant(1, 1, 3, 1)], (2, 5, 3, 4)),
    "add_full": lambda b: b.node("add", [b.input(2, 5, 3, 4), b.constant(2, 5, 3, 4)], (2, 5, 3, 4)),
    "add_constant_first": lambda b: b.node("add", [b.constant(1, 6), b.input(3, 6)], (3, 6)),
    "mul_by_one": lambda b: b.node("mul", [b.input(1, 7, 3, 3), b.constant(1, 1, 1, 1)], (1, 7, 3, 3)),
    "mul_rank_3": lambda b: b.node("mul", [b.input(3, 5, 7), b.constant(1, 5, 1)], (3, 5, 7)),
    "affine": lambda b: b.node("affine", [b.input(2, 6, 4, 3), b.constant(6), b.constant(6)], (2, 6, 4, 3)),
    "affine_rank_2": lambda b: b.node("affine", [b.input(3, 6), b.constant(6), b.constant(6)], (3, 6)),
    "affine_rank_3": lambda b: b.node("affine", [b.input(2, 3, 5), b.constant(3), b.constant(3)], (2, 3, 5)),
    "affine_rank_5": lambda b: b.node(
        "affine", [b.input(2, 5, 3, 2, 3), b.constant(5), b.constant(5)], (2, 5, 3, 2, 3)
    ),
    "softmax_vector": lambda b: b.node("softmax", [b.input(3, 11)], (3, 11), axis=1),
    "softmax_channels": lambda b: b.node("softmax", [b.input(2, 6, 3, 5)], (2, 6, 3, 5), axis=1),
    "softmax_many": lambda b: b.node("softmax", [b.input(2, 1001)], (2, 1001), axis=1),
    "softmax_many_channels": lambda b: b.node("softmax", [b.input(2, 50, 3, 2)], (2, 50, 3, 2), axis=1),
    "global_average_pool_large": lambda b: b.node("global_average_pool", [b.input(2, 9, 13, 11)], (2, 9, 1, 1)),
    "softmax_rows": lambda b: b.node("softmax", [b.input(2, 6, 3, 5)], (2, 6, 3, 5), axis=3),
    "softmax_long_rows": lambda b: b.node("softmax", [b.input(2, 3, 2, 70)], (2, 3, 2, 70), axis=3),
    "softmax_long_columns": lambda b: b.node("softmax", [b.input(2, 3, 70, 5)], (2, 3, 70, 5), axis=2),
    "softmax_rank_3": lambda b: b.node("softmax", [b.input(2, 6, 5)], (2, 6, 5), axis=1),
    "map": lambda b: b.node(
        "map",
        [b.input(2, 5, 3, 4), b.constant(1, 5, 1, 1)],
        (2, 5, 3, 4),
        expression=("mul", ("tanh", "a"), ("add", "b", 0.5)),
    ),
    "reduce": lambda b: b.node("reduce", [b.input(3, 7, 5)], (3, 1, 5), start=1, stop=2, kind="sum"),
    "sum_of_squares": lambda b: b.node(
        "reduce", [b.input(3, 7, 5)], (3, 1, 5), start=1, stop=2, kind="sum", squared=True
    ),
    "mean_of_squares_of_long_rows": lambda b: b.node(
        "reduce", [b.input(3, 2, 130)], (3, 2, 1), start=2, stop=3, kind="mean", squared=True
    ),
    "mean_of_squares_in_parts": lambda b: b.node(
        "reduce", [b.input(2, 530, 3)], (2, 1, 3), start=1, stop=2, kind="mean", squared=True
    ),
    "mean_of_long_rows": lambda b: b.node("reduce", [b.input(3, 2, 130)], (3, 2, 1), start=2, stop=3, kind="mean"),
    "max_of_long_rows": lambda b: b.node("reduce", [b.input(5, 2, 65)], (5, 1, 1), start=1, stop=3, kind="max"),
    "min_of_long_rows": lambda b: b.node("reduce", [b.input(5, 1, 64)], (5, 1, 1), start=2, stop=3, kind="min"),
    "sort": lambda b: b.node("sort", [b.input(2, 37)], (2, 9), k=9, largest=False, gives="values"),
    "suppress": lambda b: b.node(
        "suppress", [b.input(1, 6, 5), _row(b, 3, 0, 4, 5, 1, 2), _row(b, 5)], (1, 4), rounds=4, overlap=0.5
    ),
    "append": _cached("append", rows=1),
    "append_turned": _cached("append", rows=3, turned=16),
    "append_normed": _cached("append", rows=2, turned=8, by_place=False, normed=True),
    "append_normed_alone": _cached("append", rows=5, normed=True),
    "attend": _cached("attend", rows=1),
    "attend_turned": _cached("attend", rows=1, turned=16, window=5),
    "attend_rows": _cached("attend", rows=6, turned=8, by_place=False, normed=True, softcap=1.5),
    "attend_window": _cached("attend", rows=4, normed=True, window=3),
    "roi_align": _aligned("mean", half=True),
    "roi_align_largest": _aligned("max", half=False),
    "take": lambda b: b.node(
        "take",
        [b.input(4, 6), _places(b, 3, 0, 1, 2, 0, 5, NOTHING, 2)],
        (5, 3),
        shape=(5, 3),
        strides=(6, 1),
        value=0.5,
    ),
    "take_fours": lambda b: b.node(
        "take",
        [b.input(4, 12), _places(b, 3, 2, 1, 0, *range(4, 12))],
        (4, 8),
        shape=(4, 8),
        strides=(12, 1),
        value=0.5,
    ),
    "take_rows": lambda b: b.node(
        "take",
        [b.input(4, 12), _places(b, 3, NOTHING, 1, 1, 0, *range(4, 12))],
        (5, 8),
        shape=(5, 8),
        strides=(12, 1),
        value=0.5,
    ),
    "join_fours": lambda b: b.node(
        "concat",
        [b.node("slice", [b.input(3, 2, 12)], (3, 2, 8), axis=2, start=4, stop=12), "x"],
        (3, 2, 20),
        axis=2,
    ),
    "gather": lambda b: b.node("gather", [b.input(3, 5, 4), _places(b, 4, 0, -1, 2, 2, 1)], (3, 6, 4), axis=1),
    "put_rows": lambda b: b.node("put_rows", [b.input(3, 7, 4), b.constant(3, 2, 4), _places(b, 3)], (3, 7, 4), axis=1),
    "put_rows_odd": lambda b: b.node(
        "put_rows", [b.input(2, 3, 5), b.constant(2, 2, 5), _places(b, 9)], (2, 3, 5), axis=1
    ),
    "lrn": lambda b: b.node("lrn", [b.input(2, 7, 3, 3)], (2, 7, 3, 3), size=5, alpha=0.3, beta=0.75, bias=1.5),
    "lrn_even": lambda b: b.node("lrn", [b.input(1, 6, 2, 3)], (1, 6, 2, 3), size=4, alpha=0.3, beta=0.5, bias=1.0),
    "reshape_flatten": lambda b: b.node("reshape", [b.input(2, 5, 3, 2)], (2, 30), shape=(2, 30)),
    "reshape_twice": lambda b: b.node(
        "reshape", [b.node("reshape", [b.input(2, 4, 3, 2)], (6, 8), shape=(6, 8))], (1, 3, 4, 4), shape=(1, 3, 4, 4)
    ),
    "transpose": lambda b: b.node("transpose", [b.input(2, 5, 3, 4)], (4, 2, 5, 3), perm=(3, 0, 1, 2)),
    "transpose_matrix": lambda b: b.node("transpose", [b.input(5, 6)], (6, 5), perm=(1, 0)),
    "instance_norm": lambda b: b.node(
        "instance_norm", [b.input(2, 6, 5, 7), b.constant(6), b.constant(6)], (2, 6, 5, 7), epsilon=1e-5
    ),
    "group_norm": lambda b: b.node(
        "instance_norm", [b.input(2, 6, 70, 90), b.constant(6), b.constant(6)], (2, 6, 70, 90), epsilon=1e-5, groups=2
    ),
    "instance_norm_chunks": lambda b: b.node(
        "instance_norm",
        [b.input(1, 5, 97, 91), b.constant(5), b.constant(5)],
        (1, 5, 97, 91),
        epsilon=0.25,
        activation=("relu",),
    ),
    **{
        f"slice_{axis}_{start}_{stop}": partial(_slice, axis=axis, start=start, stop=stop)
        for axis, start, stop in (
            (0, 1, 2),
            (1, 0, 4),
            (1, 4, 10),
            (1, 4, 8),
            (1, 0, 3),
            (1, 3, 7),
            (2, 1, 4),
            (3, 2, 3),
        )
    },
    "slice_features": lambda b: b.node("slice", [b.input(2, 9)], (2, 4), axis=1, start=4, stop=8),
    "pad_reflect": lambda b: b.node(
        "pad", [b.input(2, 5, 4, 6)], (2, 5, 9, 12), pads=(3, 5, 2, 1), mode="reflect", value=0.0
    ),
    "pad_edge": lambda b: b.node("pad", [b.input(1, 3, 2, 3)], (1, 3, 7, 5), pads=(5, 0, 0, 2), mode="edge", value=0.0),
    "pad_constant": lambda b: b.node(
        "pad", [b.input(2, 4, 3, 3)], (2, 4, 6, 4), pads=(1, 0, 2, 1), mode="constant", value=-1.5
    ),
    **{
        f"resize_{mode}_{coordinates}_{size[0]}": partial(_resize, mode=mode, coordinates=coordinates, size=size)
        for mode, coordinates in (
            ("linear", "half_pixel"),
            ("linear", "asymmetric"),
            ("linear", "align_corners"),
            ("nearest", "asymmetric"),
            ("nearest", "half_pixel"),
        )
        for size in ((10, 14), (3, 17), (1, 1))
    },
    "concat_rows": lambda b: b.node(
        "concat", [b.node("relu", [b.input(2, 3, 4, 5)], (2, 3, 4, 5)), "x"], (2, 3, 8, 5), axis=2
    ),
    "concat_images": lambda b: b.node("concat", [b.input(2, 5), b.input(1, 5, name="y")], (3, 5), axis=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("cpu_device", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "fp16_arithmetic"])
def test_every_operation_equals_the_reference(precision: str, cpu_device: bool) -> None:
    """Each in every precision and with both sets of tiles, though not in each pair of them: each takes a compiler's
    time. Both kinds of `fp16` have the same texts."""
    first, others = shares(CASES, 2)
    chosen = first if cpu_device is (precision != "fp32") else others
    graphs = {}
    for name in CASES if cpu_device and precision == "fp32" else chosen:
        build = Builder()
        graphs[name] = build.outputs(CASES[name](build))
    check(side_by_side(graphs), precision, cpu_device=cpu_device)


def test_a_large_image_is_normalised_in_few_chunks() -> None:
    build = Builder()
    inputs = [build.input(1, 2, 740, 741), build.constant(2), build.constant(2)]
    graph = build.outputs(build.node("instance_norm", inputs, (1, 2, 740, 741), epsilon=1e-5))
    check(graph, cpu_device=False)
    plan = compile_graph(graph, Options("opencl"), Limits(max_work_group=256)).plan
    sums = next(buffer for buffer in plan.buffers if buffer.role == "scratch")
    assert sums.bytes <= 128 * 2 * 16


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_constant_operand_lies_in_stacks_before_anything_runs(precision: str) -> None:
    build, shape = Builder(), tuple(map(int, generator().integers([1, 2, 2, 2], [3, 12, 9, 9])))
    x, a = build.conv(build.input(*shape), shape[1], (1, 1)), build.constant(*shape)
    b = build.constant(*shape)
    build.graph.constants[b] = build.graph.constants[a].copy()  # exporters write one constant for each that reads it
    y = build.node("add", [build.node("mul", [x, a], shape), b], shape)
    graph = build.outputs(build.conv(y, 8, (1, 1)))
    check(graph, precision, fuse="none")
    plan = compile_graph(graph, Options("opencl", fuse="none"), Limits()).plan
    assert {a, b} & {step.layer.partition(":")[0] for step in plan.steps if isinstance(step, Dispatch)} == set()
    assert len([buffer for buffer in plan.buffers if buffer.id.endswith(":packed")]) == 1


def test_every_operation_has_a_case() -> None:
    covered = {"conv", "concat", "row_conv"}  # the last in tests/contract/kernels/test_channels.py
    of_passes = prepare(encoder(1, 5, 2, 12), Options("opencl"))  # computed in tests/contract/kernels/test_rows.py
    covered |= {node.op for node in of_passes.nodes}
    for case in CASES.values():
        build = Builder()
        case(build)
        covered |= {node.op for node in build.graph.nodes}
    assert covered == set(LOWERINGS)


def concat_of(parts: list[int], *, graph_input_at: int | None = None) -> Graph:
    """Convolutions of given channels joined, and a reader of one part beside the concat."""
    build = Builder()
    x = build.input(2, 3, 5, 4)
    names = [x if i == graph_input_at else build.conv(x, k, (1, 1)) for i, k in enumerate(parts)]
    channels = [build.graph.shapes[name][1] for name in names]
    joined = build.node("concat", names, (2, sum(channels), 5, 4), axis=1)
    beside = build.node("sigmoid", [names[-1]], build.graph.shapes[names[-1]])
    return build.outputs(build.conv(joined, 6, (3, 3)), beside, joined)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_concat_of_channels(precision: str) -> None:
    several = ([4, 8], [8, 6], [3, 5, 4], [4, 3, 5, 8], [1, 1, 1], [5])
    check(side_by_side({str(parts): concat_of(parts) for parts in several}), precision)


@pytest.mark.parametrize("at", [0, 1])
def test_concat_with_the_networks_input(at: int) -> None:
    check(concat_of([4, 4], graph_input_at=at))


def test_concat_within_concat_and_one_part_twice() -> None:
    build = Builder()
    x = build.input(1, 4, 3, 3)
    a, b = build.conv(x, 4, (1, 1)), build.conv(x, 8, (1, 1))
    inner = build.node("concat", [a, b], (1, 12, 3, 3), axis=1)
    c = build.conv(inner, 5, (3, 3), (1, 1), (1, 1, 1, 1))
    outer = build.node("concat", [inner, a, c], (1, 21, 3, 3), axis=1)
    twice = build.node("concat", [outer, outer], (1, 42, 3, 3), axis=1)
    run = check(build.outputs(build.conv(twice, 3, (1, 1)), outer))
    assert len(run.outputs) == 2


def test_aligned_concat_copies_nothing() -> None:

    plan = compile_graph(concat_of([4, 8]), Options("opencl"), Limits()).plan
    assert not [step for step in plan.steps if getattr(step, "program", "") == "copy_channels"]


def test_every_node_kept_gives_every_tensor() -> None:
    graph = concat_of([4, 8, 5])
    run = check(graph, keep_all=True)
    assert set(run.outputs) == {node.output for node in graph.nodes}


def test_kept_tensors_do_not_hold_the_arena() -> None:

    build = Builder()
    x = build.input(1, 8, 16, 16)
    for _ in range(8):
        x = build.node("relu", [x], (1, 8, 16, 16))
    plan = compile_graph(build.outputs(x), Options("opencl", keep_all=True), Limits()).plan
    arena = next((pool.bytes for pool in plan.pools if pool.id == "arena"), 0)
    assert arena <= 2 * 8 * 16 * 16 * 4
    assert len(plan.outputs) == 8


def test_an_output_that_is_an_input() -> None:
    build = Builder()
    x = build.input(1, 5, 3, 3)
    y = build.node("relu", [x], (1, 5, 3, 3))
    for precision in ("fp32", "fp16"):
        run = check(build.outputs(y, x), precision)
        assert set(run.outputs) == {x, y}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.1", "1.2", "3.0"])
def test_old_opencl_c(version: str) -> None:

    graph = concat_of([4, 3, 5])
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, Options("opencl"), Limits(opencl_c=version, offset_alignment=1024, max_work_group=8))
    wanted = evaluate(graph, inputs)
    for name, got in run_opencl(bundle, inputs).outputs.items():
        assert relative_error(got, wanted[name]) <= 1e-5
