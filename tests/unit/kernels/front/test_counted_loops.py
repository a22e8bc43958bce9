"""Loops of as many turns as there are rows, and sizes that a model computes: as onnxruntime runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.context import Context
from kernels.frontend.onnx.counted_rows.bounds import bounds_of
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime, save_model
from .test_padded_rows import CONSTANTS, FLOAT, ROWS, WIDE, R, drawn, length, make

INT = TensorProto.INT64


def loop(
    body: Sequence[NodeProto], given: Sequence[str], made: Sequence[str], outputs: Sequence[str], turns: str = "n",
    goes_on: str = "yes",
) -> NodeProto:  # fmt: skip
    """A Loop of i and states s0, s1, ...: `given` are they at first, `made` behind a turn, then what it collects."""
    states = [f"s{index}" for index in range(len(given))]
    inner = helper.make_graph(
        [*body, make("Identity", [goes_on], ["go"])],
        "body",
        [helper.make_tensor_value_info("i", INT, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         *(helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in states)],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         *(helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in made)],
    )  # fmt: skip
    for port in (*inner.input[2:], *inner.output[1:]):
        port.type.tensor_type.elem_type = FLOAT
    return make("Loop", [turns, "yes", *given], list(outputs), body=inner)


N = [*R, *length("r"), make("Squeeze", ["r.n", "first"], ["n"])]
ROW = [make("Gather", ["r", "i"], ["row"], axis=0)]
"""One row (WIDE)."""
APPEND = [make("Unsqueeze", ["done", "first"], ["new"]), make("Concat", ["s0", "new"], ["t0"], axis=0)]
BOX = [
    make("Mul", ["row", "eight"], ["m"]), make("Clip", ["m", "bottom", "top"], ["clipped"]),
    make("Cast", ["clipped"], ["whole"], to=INT), make("Slice", ["whole", "first", "two"], ["size"]),
    make("Slice", ["whole", "first", "second"], ["low"]), make("Slice", ["whole", "second", "two"], ["high"]),
]  # fmt: skip
"""Whole numbers of a row, from 1 to 7."""


def resized(mode: str, way: str = "half_pixel", **more: Any) -> list[NodeProto]:
    """One picture resized in each turn, the sum of each pixel times its row and column, and its extents."""
    return [
        *ROW, *BOX, make("Concat", ["lead", "size"], ["sizes"], axis=0),
        make("Resize", ["picture", "", "", "sizes"], ["z"], mode=mode, coordinate_transformation_mode=way, **more),
        make("Slice", ["z", "first", "three", "third"], ["cut"]),
        make("ReduceSum", ["cut", "pixels"], ["sums"], keepdims=0),
        make("Squeeze", ["sums", "first"], ["done"]), *APPEND,
    ]  # fmt: skip


def shifted(source: str = "picture") -> list[NodeProto]:
    """A part of a picture between zeros: where it begins and ends is computed."""
    return [
        *ROW, *BOX, make("Squeeze", [source, "both"], ["map"]), make("Neg", ["high"], ["minus_high"]),
        make("Slice", ["map", "minus_high", "far", "first"], ["part"]),
        make("Concat", ["low", "seventh"], ["shape"], axis=0), make("ConstantOfShape", ["shape"], ["zeros"]),
        make("Concat", ["zeros", "part"], ["joined"], axis=0),
        make("ReduceSum", ["joined", "first"], ["done"], keepdims=0),
        *APPEND,
    ]  # fmt: skip


CASES: dict[str, Sequence[NodeProto]] = {
    "appended": [*N, loop([*ROW, make("Exp", ["row"], ["done"]), *APPEND], ["none_yet"], ["t0"], ["y"])],
    "appended_to_some": [*N, loop([*ROW, make("Exp", ["row"], ["done"]), *APPEND], ["filler"], ["t0"], ["y"])],
    "pairs_appended": [
        *N, loop([*ROW, make("Unsqueeze", ["row", "first"], ["own"]), make("Neg", ["own"], ["other"]),
                  make("Concat", ["s0", "own", "other"], ["t0"], axis=0)], ["none_yet"], ["t0"], ["y"]),
    ],
    "beside": [
        *N, loop([*ROW, make("Unsqueeze", ["row", "second"], ["new"]), make("Concat", ["s0", "new"], ["t0"], axis=1)],
                 ["no_column"], ["t0"], ["y"]),
    ],
    "collected": [*N, loop([*ROW, make("Exp", ["row"], ["z"])], [], ["z"], ["y"])],
    "doubled": [
        *N, loop([*ROW, make("Add", ["row", "row"], ["z"]), make("Unsqueeze", ["z", "first"], ["new"]),
                  make("Identity", ["s0"], ["copy"]), make("Concat", ["copy", "new"], ["t0"], axis=0)],
                 ["filler"], ["t0"], ["y"]),
    ],
    "fixed_turns_of_rows": [*N, loop([make("Add", ["r", "r"], ["z"])], [], ["z"], ["y"], turns="three_times")],
    "summed": [*N, loop([*ROW, make("Add", ["s0", "row"], ["t0"])], ["start"], ["t0"], ["y"])],
    "summed_and_collected": [
        *N, loop([*ROW, make("Add", ["s0", "row"], ["t0"]), make("Mul", ["t0", "row"], ["z"])], ["start"], ["t0", "z"],
                 ["sum", "y"]),
    ],
    "number": [*N, loop([make("Cast", ["i"], ["z"], to=FLOAT), make("Mul", ["z", "z"], ["w"])], [], ["w"], ["y"])],
    "same_in_all": [*N, loop([make("Exp", ["ones"], ["z"])], [], ["z"], ["y"])],
    "products": [
        *N, loop([*ROW, make("Unsqueeze", ["row", "second"], ["down"]), make("Unsqueeze", ["row", "first"], ["line"]),
                  make("MatMul", ["down", "line"], ["p"]), make("MatMul", ["p", "weight"], ["q"]),
                  make("MatMul", ["transposed", "p"], ["t"]), make("MatMul", ["t", "q"], ["z"])], [], ["z"], ["y"]),
    ],
    "chosen": [
        *N, loop([*ROW, *BOX, make("Concat", ["row", "row"], ["ten"], axis=0),
                  make("Gather", ["ten", "low"], ["a"], axis=0), make("Gather", ["wider", "low"], ["b"], axis=3),
                  make("Mul", ["a", "b"], ["z"])], [], ["z"], ["y"]),
    ],
    "convolved": [
        *N, loop([*ROW, make("Reshape", ["row", "image"], ["im"]),
                  make("Conv", ["im", "taps"], ["z"], pads=[0, 1, 0, 1]),
                  make("Relu", ["z"], ["w"])], [], ["w"], ["y"]),
    ],
    "aligned": [
        *N, loop([*ROW, make("Mul", ["row", "eight"], ["m"]), make("Slice", ["m", "first", "four"], ["corners"]),
                  make("Unsqueeze", ["corners", "first"], ["box"]),
                  make("Slice", ["row", "first", "second"], ["share"]), make("Mul", ["picture", "share"], ["own"]),
                  make("RoiAlign", ["own", "box", "first"], ["z"], output_height=3, output_width=2, sampling_ratio=2)],
                 [], ["z"], ["y"]),
    ],
    "ordered": [
        *N, loop([*ROW, make("Softmax", ["row"], ["p"]), make("TopK", ["p", "two"], ["z", "at"]),
                  make("Transpose", ["z"], ["w"])], [], ["w"], ["y"]),
    ],
    "among_all": [
        *N, loop([*ROW, make("Sub", ["r", "row"], ["d"]),
                  make("ReduceMax", ["d"], ["z"], axes=[0], keepdims=0)], [], ["z"],
                 ["y"]),
    ],
    "linear": [*N, loop(resized("linear"), ["no_pixels"], ["t0"], ["y"])],
    "linear_of_pytorch": [*N, loop(resized("linear", "pytorch_half_pixel"), ["no_pixels"], ["t0"], ["y"])],
    "linear_aligned": [*N, loop(resized("linear", "align_corners"), ["no_pixels"], ["t0"], ["y"])],
    "cubic": [*N, loop(resized("cubic", cubic_coeff_a=-0.5), ["no_pixels"], ["t0"], ["y"])],
    "nearest": [*N, loop(resized("nearest", "asymmetric", nearest_mode="floor"), ["no_pixels"], ["t0"], ["y"])],
    "shifted": [*N, loop(shifted(), ["none_wide"], ["t0"], ["y"])],
    "largest_pixel": [
        *N, loop([*ROW, *BOX, make("Concat", ["lead", "size"], ["sizes"], axis=0),
                  make("Resize", ["picture", "", "", "sizes"], ["z"], mode="cubic"),
                  make("Reshape", ["z", "by_two"], ["f"]),
                  make("ArgMax", ["f"], ["at"], axis=1, keepdims=0), make("Shape", ["z"], ["s"]),
                  make("Gather", ["s", "three"], ["w"], axis=0), make("Mod", ["at", "w"], ["x_"]),
                  make("Sub", ["at", "x_"], ["base"]), make("Div", ["base", "w"], ["y_"]),
                  make("Concat", ["x_", "y_"], ["xy"], axis=0), make("Cast", ["xy"], ["done"], to=FLOAT), *APPEND],
                 ["no_points"], ["t0"], ["y"]),
    ],
}  # fmt: skip
MORE = CONSTANTS | {
    "yes": np.array(True), "no": np.array(False), "none_yet": np.zeros((0, WIDE), np.float32), "eight": np.float32(8.0),
    "no_column": np.zeros((WIDE, 0), np.float32), "start": np.ones(WIDE, np.float32), "bottom": np.float32(1.5),
    "top": np.float32(7.25), "lead": np.array([1, 2], np.int64), "both": np.array([0, 1], np.int64),
    "pixels": np.array([2, 3], np.int64), "third": np.array([3], np.int64), "no_pixels": np.zeros((0, 2), np.float32),
    "none_wide": np.zeros((0, 7), np.float32), "no_points": np.zeros((0, 4), np.float32),
    "transposed": np.ones((2, WIDE), np.float32), "image": np.array([1, 1, 1, WIDE], np.int64),
    "three_times": np.array(3, np.int64), "taps": np.arange(6, dtype=np.float32).reshape(2, 1, 1, 3),
    "by_two": np.array([2, -1], np.int64),
    "wider": np.arange(16, dtype=np.float32).reshape(1, 2, 1, 8), "seventh": np.array([7], np.int64),
}  # fmt: skip


def saved(tmp_path: Path, nodes: Sequence[NodeProto]) -> Path:
    channels = 1 if nodes is CASES["shifted"] else 2
    picture = np.random.default_rng(3).random((1, channels, 7, 7), np.float32)
    return save_model(tmp_path / "m.onnx", nodes, {"x": (ROWS, WIDE)}, ["y"], {**MORE, "picture": picture})


@pytest.mark.parametrize("case", CASES)
def test_a_counted_loop_is_that_of_onnxruntime(tmp_path: Path, seed: int, case: str) -> None:
    path = saved(tmp_path, CASES[case])
    graph = load_onnx(path)
    for share in (0.0, 0.4, 1.0):
        if not share and case == "among_all":
            continue
        x = drawn(np.random.default_rng(seed), share)
        wanted, found = run_onnxruntime(path, {"x": x})["y"], evaluate(graph, {"x": x}, dtype=np.float32)
        ours = found["y"]
        for name in graph.outputs[1:]:
            axis = int(name.removeprefix("y.count") or 0)
            assert found[name] == [wanted.shape[axis]]
            ours, padding = np.split(ours, [wanted.shape[axis]], axis)
            assert np.all(padding == -1)
        if not wanted.size:  # onnxruntime does not always know the other extents of what no turn collected
            assert not ours.size
            continue
        assert ours.shape == wanted.shape
        assert np.allclose(ours, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", ["linear", "shifted", "largest_pixel", "chosen"])
def test_every_element_lies_between_its_bounds(tmp_path: Path, seed: int, case: str) -> None:
    graph = load_onnx(saved(tmp_path, CASES[case]))
    names = [node.output for node in graph.nodes]
    to = Context(17, {}, graph.shapes, tmp_path, nodes=graph.nodes, weights=graph.constants)
    x = np.random.default_rng(seed).normal(size=(ROWS, WIDE)).astype(np.float32)
    found = evaluate(replace(graph, outputs=tuple(names)), {"x": x}, dtype=np.float32)
    bounds = {name: bounds_of(to, name) for name in names}
    assert sum(high < np.inf for _, high in bounds.values()) > len(names) / 2
    for name, (low, high) in bounds.items():
        assert low <= found[name].min() <= found[name].max() <= high, (name, low, high)


def test_bounds_of_a_box_about_its_centre_are_those_of_its_corners(tmp_path: Path) -> None:
    """It could begin half its largest width before 0 by the ends of centre and width alone."""
    nodes = [
        make("Clip", ["x", "zero_", "top"], ["c"]), make("Slice", ["c", "first", "second", "second"], ["a"]),
        make("Slice", ["c", "second", "two", "second"], ["b"]), make("Sub", ["b", "a"], ["w"]),
        make("Add", ["b", "a"], ["m"]),
        make("Mul", ["m", "half"], ["centre"]), make("Mul", ["w", "half"], ["reach"]),
        make("Sub", ["centre", "reach"], ["y"]),
    ]  # fmt: skip
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (3, 4)}, ["y"], {**MORE, "zero_": np.float32(0)}))
    to = Context(17, {}, graph.shapes, tmp_path, nodes=graph.nodes, weights=graph.constants)
    low, high = bounds_of(to, "y")
    assert -0.001 < low <= 0
    assert 7.25 <= high < 7.251


def test_bounds_of_what_is_read_twice_are_computed_once(tmp_path: Path) -> None:
    """Else each of these pairs would double the time: 2^30 readings."""
    nodes = [make("Identity", ["x"], ["p0"])]
    for k in range(30):
        nodes += [make("Exp", [f"p{k}"], [f"q{k}"]), make("Sin", [f"p{k}"], [f"r{k}"]),
                  make("Div", [f"q{k}", f"r{k}"], [f"p{k + 1}"])]  # fmt: skip
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (3, 4)}, ["p30"]))
    to = Context(17, {}, graph.shapes, tmp_path, nodes=graph.nodes, weights=graph.constants)
    assert bounds_of(to, "p30") == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([loop([*ROW, make("Cast", ["row"], ["k"], to=INT), make("ConstantOfShape", ["k"], ["z"]),
                make("ReduceSum", ["z"], ["w"], keepdims=0)], [], ["w"], ["y"])], "how large it gets is not known"),
        ([loop([*ROW, *BOX, make("ConstantOfShape", ["low"], ["z"])], [], ["z"], ["y"])],
          "changes its shape from turn"),
        ([loop([*ROW, *BOX, make("ConstantOfShape", ["low"], ["z"]), make("Concat", ["s0", "z"], ["t0"], axis=0)],
               ["start"], ["t0"], ["y"])], "appends another number of elements"),
        ([loop([*ROW], [], ["row"], ["y"], goes_on="no")], "its condition ends it"),
        ([make("Gather", ["r.flat", "zero"], ["go_on"], axis=0),
          loop([*ROW], [], ["row"], ["y"], goes_on="go_on")], "depends on the model's input"),
    ],
)  # fmt: skip
def test_a_counted_loop_that_cannot_be_laid_out_is_refused(tmp_path: Path, nodes: list[NodeProto], why: str) -> None:
    with pytest.raises(UnsupportedNode, match=why):
        load_onnx(saved(tmp_path, [*N, *nodes]))


def test_what_is_appended_has_the_extents_of_the_rest(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="their other extents differ"):
        load_onnx(saved(tmp_path, [*N, loop([*ROW, make("Identity", ["row"], ["done"]), *APPEND], ["none_wide"], ["t0"],
                                            ["y"])]))  # fmt: skip
