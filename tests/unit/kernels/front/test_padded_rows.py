"""Rows of which the input decides how many there are: onnxruntime's first, then padding, and a count of the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

make = helper.make_node
ROWS, WIDE = 12, 5
CONSTANTS = {
    "half": np.float32(0.5), "first": np.array([0], np.int64), "second": np.array([1], np.int64),
    "far": np.array([2**63 - 1], np.int64), "two": np.array([2], np.int64), "flat": np.array([-1], np.int64),
    "pairs": np.array([-1, 1, WIDE], np.int64), "three": np.array([3], np.int64), "last": np.array([-1], np.int64),
    "weight": np.linspace(-1, 1, WIDE * 3, dtype=np.float32).reshape(WIDE, 3), "none": np.float32(-9.0),
    "column": np.array(1, np.int64), "ones": np.ones((1, WIDE), np.float32), "zero": np.array(0, np.int64),
    "one": np.array(1, np.int64), "seven": np.array([7], np.int64), "filler": np.ones((3, WIDE), np.float32),
    "minus": np.array([-2], np.int64), "picture": np.linspace(0, 1, 98, dtype=np.float32).reshape(1, 2, 7, 7),
    "back": np.array([-(2**63)], np.int64), "across": np.array([1, 2], np.int64), "off_on": np.float32([-1, 2]),
    "wide": np.array([WIDE], np.int64), "fifth": np.array([0.5], np.float32), "many": np.array([99], np.int64),
}  # fmt: skip


def rows(name: str, source: str = "x", limit: str = "half") -> list[NodeProto]:
    """The rows of a matrix whose first number is larger, NAME (rows, wide), and their places, NAME.at."""
    return [
        make("Gather", [source, "first"], [f"{name}.key"], axis=1),
        make("Greater", [f"{name}.key", limit], [f"{name}.kept"]),
        make("Squeeze", [f"{name}.kept", "second"], [f"{name}.flat"]),
        make("NonZero", [f"{name}.flat"], [f"{name}.found"]),
        make("Transpose", [f"{name}.found"], [f"{name}.turned"]),
        make("Squeeze", [f"{name}.turned", "second"], [f"{name}.at"]),
        make("Gather", [source, f"{name}.at"], [name], axis=0),
    ]


def length(name: str) -> list[NodeProto]:
    """NAME.n: how many rows it has, [1], as exporters write it."""
    return [make("Shape", [name], [f"{name}.shape"]), make("Gather", [f"{name}.shape", "first"], [f"{name}.n"])]


R, FLOAT = rows("r"), TensorProto.FLOAT
CASES: dict[str, Sequence[NodeProto]] = {
    "rows": [*R, make("Exp", ["r"], ["y"])],
    "places": [*R, make("Cast", ["r.at"], ["y"], to=FLOAT)],
    "twice": [*R, *rows("q", "r", "none"), make("Add", ["q", "ones"], ["y"])],
    "fewer": [*R, make("Neg", ["r"], ["n"]), *rows("q", "n", "none"), make("Identity", ["q"], ["y"])],
    "same": [*R, *[make("NonZero", ["r.flat"], ["again"]), make("Cast", ["again"], ["y"], to=FLOAT)]],
    "length": [*R, *length("r"), make("Cast", ["r.n"], ["n"], to=FLOAT), make("Mul", ["n", "half"], ["y"])],
    "size": [*R, make("Size", ["r"], ["n"]), make("Cast", ["n"], ["y"], to=FLOAT)],
    "turned round": [*R, make("Slice", ["r", "last", "back", "first", "last"], ["y"])],
    "tile": [*R, make("Tile", ["r", "across"], ["y"])],
    "one hot": [*R, make("OneHot", ["r.at", "seven", "off_on"], ["y"], axis=0)],
    "einsum rows": [*R, make("Einsum", ["r", "r"], ["y"], equation="nd,ne->de")],
    "einsum": [*R, make("Einsum", ["r", "weight"], ["y"], equation="nd,de->en")],
    "sum": [*R, make("ReduceSum", ["r", "first"], ["y"], keepdims=0)],
    "mean": [*R, make("ReduceMean", ["r"], ["y"], axes=[0])],
    "mean_of_all": [*R, make("ReduceMean", ["r"], ["y"], keepdims=0)],
    "max": [*R, make("ReduceMax", ["r"], ["y"], axes=[0], keepdims=0)],
    "min": [*R, make("ReduceMin", ["r"], ["y"], axes=[1])],
    "norm": [*R, make("ReduceL2", ["r"], ["y"], axes=[0])],
    "log_sum_exp": [*R, make("ReduceLogSumExp", ["r"], ["y"], axes=[0, 1])],
    "argmax": [*R, make("ArgMax", ["r"], ["n"], axis=0, keepdims=0), make("Cast", ["n"], ["y"], to=FLOAT)],
    "softmax": [*R, make("Softmax", ["r"], ["y"], axis=0)],
    "softmax_of_each": [*R, make("LogSoftmax", ["r"], ["y"], axis=1)],
    "cumsum": [*R, make("CumSum", ["r", "zero"], ["y"], reverse=1)],
    "gemm": [*R, make("Gemm", ["r", "weight"], ["y"])],
    "product": [*R, make("Transpose", ["r"], ["t"], perm=[1, 0]), make("MatMul", ["t", "r"], ["y"])],
    "each_by_each": [*R, make("Transpose", ["r"], ["t"], perm=[1, 0]), make("MatMul", ["r", "t"], ["y"])],
    "from_end": [*R, make("Slice", ["r", "last", "far", "first"], ["y"])],
    "but_last": [*R, make("Slice", ["r", "first", "minus", "first"], ["y"])],
    "some": [*R, make("Slice", ["r", "two", "seven", "first"], ["y"])],
    "to_length": [*R, *length("r"), make("Slice", ["x", "first", "r.n", "first"], ["y"])],
    "from_length": [*R, *length("r"), make("Slice", ["x", "r.n", "many", "first"], ["y"])],
    "last_row": [*R, make("Gather", ["r", "minus"], ["y"], axis=0)],
    "columns": [*R, make("Slice", ["r", "first", "far", "second", "two"], ["y"])],
    "flat": [*R, make("Reshape", ["r", "flat"], ["y"])],
    "reshaped": [*R, make("Reshape", ["r", "pairs"], ["y"])],
    "turned_flat": [*R, make("Transpose", ["r"], ["t"]), make("Reshape", ["t", "flat"], ["y"])],
    "each_by_each_flat": [*R, *rows("q", "x", "fifth"), make("Transpose", ["q"], ["t"], perm=[1, 0]),
                          make("MatMul", ["r", "t"], ["p"]), make("Reshape", ["p", "flat"], ["y"])],
    "squares_flat": [*R, make("Transpose", ["r"], ["t"], perm=[1, 0]), make("MatMul", ["r", "t"], ["p"]),
                     make("Reshape", ["p", "flat"], ["y"])],
    "padded": [*R, make("Pad", ["r", "beside"], ["y"])],
    "by_length": [*R, *length("r"), make("Concat", ["r.n", "last", "wide"], ["s"], axis=0),
                  make("Reshape", ["r", "s"], ["y"])],
    "unsqueezed": [*R, make("Unsqueeze", ["r", "first"], ["u"]), make("Squeeze", ["u", "first"], ["y"])],
    "concat": [*R, *rows("q", "x", "fifth"), make("Concat", ["filler", "r", "filler", "q"], ["y"], axis=0)],
    "beside": [*R, make("Concat", ["r", "r"], ["y"], axis=1)],
    "split": [*R, make("Split", ["r", "parts"], ["a", "b"], axis=1), make("Exp", ["b"], ["y"])],
    "split_by_sizes": [*R[:3], make("Cast", ["r.flat"], ["n"], to=TensorProto.INT64),
                       make("ReduceSum", ["n", "first"], ["kept"]), make("Sub", ["every", "kept"], ["left"]),
                       make("Concat", ["left", "kept"], ["s"], axis=0), make("Split", ["x", "s"], ["a", "b"], axis=0),
                       make("Exp", ["b"], ["e"]), make("Concat", ["e", "a"], ["y"], axis=0)],
    "split_by_length": [*R, *length("r"), make("Sub", ["every", "r.n"], ["left"]),
                        make("Concat", ["left", "r.n"], ["s"], axis=0), make("Split", ["x", "s"], ["a", "b"], axis=0),
                        make("Mul", ["b", "r"], ["e"]), make("Concat", ["e", "a"], ["y"], axis=0)],
    "where": [*R, make("Greater", ["r", "half"], ["c"]), make("Where", ["c", "r", "none"], ["y"])],
    "top": [*R, *length("r"), make("Concat", ["r.n", "three"], ["both"], axis=0),
            make("ReduceMin", ["both"], ["k"], keepdims=1), make("TopK", ["r", "k"], ["y", "n"], axis=0)],
    "expanded": [*R, *length("r"), make("Concat", ["r.n", "wide"], ["s"], axis=0), make("Expand", ["ones", "s"], ["e"]),
                 make("Mul", ["e", "r"], ["y"])],
    "filled": [*R, make("Shape", ["r"], ["s"]), make("ConstantOfShape", ["s"], ["z"]), make("Sub", ["z", "r"], ["y"])],
    "range": [*R, *length("r"), make("Squeeze", ["r.n", "first"], ["n"]), make("Range", ["zero", "n", "one"], ["i"]),
              make("Cast", ["i"], ["y"], to=FLOAT)],
    "scatter": [*R, make("Unsqueeze", ["r.at", "second"], ["u"]), make("Shape", ["r"], ["s"]),
                make("Expand", ["u", "s"], ["e"]), make("Exp", ["r"], ["v"]),
                make("ScatterElements", ["x", "e", "v"], ["y"], axis=0)],
    "scatter_rows": [*R, make("Unsqueeze", ["r.at", "second"], ["u"]), make("Exp", ["r"], ["v"]),
                     make("ScatterND", ["x", "u", "v"], ["y"])],
    "scatter_elements": [make("Greater", ["x", "half"], ["c"]), make("NonZero", ["c"], ["n"]),
                         make("Transpose", ["n"], ["t"]), make("GatherND", ["x", "t"], ["g"]),
                         make("Exp", ["g"], ["v"]), make("ScatterND", ["x", "t", "v"], ["y"])],
    "places_of_rows": [*R, make("Greater", ["r", "half"], ["c"]), make("NonZero", ["c"], ["n"]),
                       make("Transpose", ["n"], ["t"]), make("GatherND", ["x", "t"], ["y"])],
    "places_in_rows": [*R, make("Greater", ["r", "half"], ["c"]), make("NonZero", ["c"], ["n"]),
                       make("Transpose", ["n"], ["t"]), make("GatherND", ["r", "t"], ["y"])],
    "places_from_the_last_row": [*R, make("GatherND", ["r", "ends"], ["y"])],
    "aligned": [*R, make("Slice", ["r", "first", "four", "second"], ["boxes"]),
                make("Mul", ["r.at", "zero"], ["pictures"]),
                make("RoiAlign", ["picture", "boxes", "pictures"], ["y"], output_height=2, output_width=2,
                     sampling_ratio=2)],
    "suppressed": [*R, make("Slice", ["r", "first", "four", "second"], ["boxes"]),
                   make("Unsqueeze", ["boxes", "first"], ["b"]), make("Slice", ["r", "four", "far", "second"], ["s"]),
                   make("Transpose", ["s"], ["t"], perm=[1, 0]), make("Unsqueeze", ["t", "first"], ["scores"]),
                   make("NonMaxSuppression", ["b", "scores", "many", "fifth"], ["n"]),
                   make("Cast", ["n"], ["y"], to=FLOAT)],
}  # fmt: skip
EVERY = [
    make("Concat", ["r.n", "three"], ["both"], axis=0),
    make("ReduceMin", ["both"], ["k"], keepdims=1),
    make("TopK", ["r", "k"], ["best", "places"], axis=0),
    make("Concat", ["best", "filler", "q"], ["joined"], axis=0),
    make("Softmax", ["joined"], ["y"], axis=0),
    make("ReduceSum", ["q", "first"], ["total"], keepdims=0),
]
EMPTY_IS_AN_ERROR = ("argmax", "by_length", "last_row", "max", "min", "mean", "mean_of_all", "places_from_the_last_row",
                     "softmax")  # fmt: skip
"""The cases that onnxruntime refuses where there are no rows, or whose result is then no number."""
CONSTANTS |= {"ends": np.array([[-1, -2], [-2, 0], [0, 1]], np.int64)}
CONSTANTS |= {"beside": np.array([0, 2, 0, 1], np.int64)}
CONSTANTS |= {"every": np.array([ROWS], np.int64), "parts": np.array([2, 3], np.int64), "four": np.array([4], np.int64)}


def drawn(rng: np.random.Generator, share: float) -> np.ndarray[Any, Any]:
    """Many equal numbers; this share of the rows, at least, is kept, and two where it is not 0."""
    x = rng.integers(0, 4, (ROWS, WIDE)).astype(np.float32) / 4
    kept = rng.random(ROWS) < share
    kept[rng.permutation(ROWS)[:2]] |= share > 0
    x[:, 0] = np.where(kept, 0.75 + x[:, 0] / 4, 0.25)
    return x


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_onnxruntime(tmp_path: Path, seed: int, case: str, share: float) -> None:
    if not share and case in EMPTY_IS_AN_ERROR:
        return
    x = drawn(np.random.default_rng(seed), share)
    used = {name for node in CASES[case] for name in node.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in used}
    path = save_model(tmp_path / "m.onnx", CASES[case], {"x": x.shape}, ["y"], constants)
    wanted, graph = run_onnxruntime(path, {"x": x})["y"], load_onnx(path)
    found = evaluate(graph, {"x": x}, dtype=np.float32)
    ours = found["y"]
    for name in graph.outputs[1:]:
        axis = int(name.removeprefix("y.count") or 0)
        assert found[name] == [wanted.shape[axis]]
        valid, padding = np.split(ours, [wanted.shape[axis]], axis)
        assert np.all(padding == -1)
        ours = valid
    assert ours.shape == wanted.shape
    assert np.allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def test_a_branch_may_have_no_rows(tmp_path: Path, seed: int) -> None:
    """PyTorch exports the choice of boxes so: where there are none, nothing is computed."""
    then = helper.make_graph([make("ConstantOfShape", ["empty"], ["t"], value=helper.make_tensor("v", 7, [1], [0]))],
                             "then", [], [helper.make_tensor_value_info("t", TensorProto.INT64, None)])  # fmt: skip
    other = helper.make_graph([make("Add", ["r.at", "two"], ["o"])], "else", [],
                              [helper.make_tensor_value_info("o", TensorProto.INT64, None)])  # fmt: skip
    nodes = [
        *R, make("Size", ["r"], ["n"]), make("Equal", ["n", "zero"], ["c"]),
        make("If", ["c"], ["z"], then_branch=then, else_branch=other), make("Cast", ["z"], ["y"], to=FLOAT),
    ]  # fmt: skip
    constants = CONSTANTS | {"empty": np.array([0], np.int64)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (ROWS, WIDE)}, ["y"], constants)
    graph = load_onnx(path)
    for share in (0.0, 0.5):
        x = drawn(np.random.default_rng(seed), share)
        wanted, found = run_onnxruntime(path, {"x": x})["y"], evaluate(graph, {"x": x})
        assert found["y.count"] == [len(wanted)]
        assert np.array_equal(found["y"], np.pad(wanted, (0, ROWS - len(wanted)), constant_values=-1))


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([*rows("q", "x", "fifth"), make("Add", ["r", "q"], ["y"])], "different numbers of them along axis 0"),
        ([make("Tile", ["r", "pair"], ["y"])], "is repeated"),
        ([make("Reshape", ["r", "fives"], ["y"])], "would not stay together"),
        ([make("SplitToSequence", ["r"], ["q"]), make("SequenceAt", ["q", "zero"], ["y"])],
         "how many elements 'r' has"),
        ([make("Scan", ["r"], ["y"], num_scan_inputs=1, body=helper.make_graph(
            [make("Exp", ["a"], ["b"])], "each", [helper.make_tensor_value_info("a", FLOAT, [WIDE])],
            [helper.make_tensor_value_info("b", FLOAT, [WIDE])]))], "how often it runs"),
        ([make("Pad", ["r", "above"], ["y"])], "axis 0 of 'r' gets a border"),
    ],
)  # fmt: skip
def test_what_needs_to_know_how_many_rows_there_are_is_refused(
    tmp_path: Path, nodes: list[NodeProto], why: str
) -> None:
    constants = CONSTANTS | {"pair": np.array([2, 1], np.int64), "fives": np.array([WIDE, -1], np.int64)}
    constants["above"] = np.array([1, 0, 0, 0], np.int64)
    path = save_model(tmp_path / "m.onnx", [*R, *nodes], {"x": (ROWS, WIDE)}, ["y"], constants)
    with pytest.raises(UnsupportedNode, match=why) as refused:
        load_onnx(path)
    assert "depends on the model's input" in str(refused.value)


@pytest.mark.parametrize("cut", [False, True])
def test_rows_are_put_where_a_condition_holds(tmp_path: Path, seed: int, cut: bool) -> None:
    """Pictures' rows at the places of their tokens, as `masked_scatter` is exported: three, or cut to three."""
    nodes = [
        make("Greater", ["tokens", "half"], ["c"]),
        make("NonZero", ["c"], ["n"]),
        make("Transpose", ["n"], ["t"]),
        *length("t"),
        make("Slice", ["u", "first", "t.n", "first"], ["v"]) if cut else make("Identity", ["u"], ["v"]),
        make("ScatterND", ["x", "t", "v"], ["y"]),
    ]
    rng = np.random.default_rng(seed)
    given = {"x": rng.standard_normal((8, 4)), "u": rng.standard_normal((5 if cut else 3, 4))}
    given["tokens"] = rng.permutation([1, 1, 1, 0, 0, 0, 0, 0])
    given = {name: value.astype(np.float32) for name, value in given.items()}
    constants = {"half": np.float32(0.5), "first": CONSTANTS["first"]}
    shapes = {name: value.shape for name, value in given.items()}
    assert_agrees(save_model(tmp_path / "m.onnx", nodes, shapes, ["y"], constants), given)
