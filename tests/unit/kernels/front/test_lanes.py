"""Nodes exported for each class by itself are computed for all classes at once; the results equal onnxruntime's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.counted_rows import lanes
from kernels.ir.graph import Graph
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime, save_model

make = helper.make_node
BOXES, CLASSES = 23, 6
CONSTANTS: dict[str, Any] = {
    "least": np.float32(0.3), "other": np.float32(0.45), "four": np.array([4]), "first": np.array([0]),
    "whole": np.array([-1]), **{f"class{i}": np.array(i) for i in range(CLASSES)},
}  # fmt: skip


def of_class(i: int, scores: str = "scores", least: str = "least") -> list[NodeProto]:
    """The nodes of torchvision's SSD: the scores of a class that are large enough, the best four, and their boxes."""
    return [
        make("Gather", [scores, f"class{i}"], [f"s{i}"], axis=1),
        make("Greater", [f"s{i}", least], [f"g{i}"]),
        make("NonZero", [f"g{i}"], [f"n{i}"]),
        make("Transpose", [f"n{i}"], [f"t{i}"], perm=[1, 0]),
        make("GatherND", [f"s{i}", f"t{i}"], [f"k{i}"]),
        make("GatherND", ["boxes", f"t{i}"], [f"b{i}"]),
        make("Shape", [f"k{i}"], [f"l{i}"]),
        make("Concat", ["four", f"l{i}"], [f"m{i}"], axis=0),
        make("ReduceMin", [f"m{i}"], [f"q{i}"], keepdims=1),
        make("TopK", [f"k{i}", f"q{i}"], [f"v{i}", f"p{i}"]),
        make("Gather", [f"b{i}", f"p{i}"], [f"c{i}"], axis=0),
    ]


def model(folder: Path, nodes: list[NodeProto], outputs: list[str]) -> Path:
    shapes = {"scores": (BOXES, CLASSES), "boxes": (BOXES, 4)}
    return save_model(folder / "m.onnx", nodes, shapes, outputs, CONSTANTS)


def inputs(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "scores": (rng.random((BOXES, CLASSES)) * rng.random(CLASSES)).round(2).astype(np.float32),
        "boxes": rng.random((BOXES, 4), np.float32),
    }


def assert_agrees(path: Path, given: dict[str, Any]) -> None:
    """The valid rows, and how many there are."""
    ours, theirs = evaluate(load_onnx(path), given, dtype=np.float32), run_onnxruntime(path, given)
    for name, wanted in theirs.items():
        count = int(ours.get(f"{name}.count", [len(wanted)])[0])
        assert count == len(wanted)
        assert np.array_equal(ours[name][:count], wanted), name


def sorts(graph: Graph) -> list[tuple[int, ...]]:
    read = {name for node in graph.nodes for name in node.inputs} | {*graph.outputs}
    return [graph.shapes[node.inputs[0]] for node in graph.nodes if node.op == "sort" and node.output in read]


@pytest.mark.parametrize("start", [0, 1])
def test_classes_are_rows_of_one_sort(tmp_path: Path, seed: int, start: int) -> None:
    """All of them, and all but the first; joined, and one by itself."""
    every = range(start, CLASSES)
    nodes = [node for i in every for node in of_class(i)]
    nodes.append(make("Concat", [f"c{i}" for i in every], ["boxes_of_all"], axis=0))
    nodes.append(make("Concat", [f"v{i}" for i in every], ["scores_of_all"], axis=0))
    nodes.append(make("Neg", ["v3"], ["one"]))
    path = model(tmp_path, nodes, ["boxes_of_all", "scores_of_all", "one"])
    rows = len(every)
    wanted = [(rows, BOXES), (rows, BOXES), (rows, BOXES), (1, rows * 4)]
    assert sorts(load_onnx(path)) == wanted
    for turn in range(3):
        assert_agrees(path, inputs(seed + turn))


def test_a_class_that_differs_keeps_all_by_themselves(tmp_path: Path, seed: int) -> None:
    nodes = [node for i in range(5) for node in of_class(i, least="other" if i == 2 else "least")]
    nodes.append(make("Concat", [f"v{i}" for i in range(5)], ["y"], axis=0))
    path = model(tmp_path, nodes, ["y"])
    assert sorts(load_onnx(path)).count((1, BOXES)) == 15
    assert_agrees(path, inputs(seed))


def test_lanes_keep_to_the_places_that_are_known_to_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of one class fit into halves, those of all would not; or a tensor would be too large."""
    nodes = [node for i in range(CLASSES) for node in of_class(i)]
    nodes.append(make("Concat", [f"v{i}" for i in range(CLASSES)], ["y"], axis=0))
    path = model(tmp_path, nodes, ["y"])
    for name, most in (("_HALF_PLACES", BOXES * CLASSES - 1), ("MAX_PLACES", BOXES * CLASSES * 4 - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(lanes, name, most)
            assert sorts(load_onnx(path)).count((1, BOXES)) == 3 * CLASSES
    assert sorts(load_onnx(path)).count((CLASSES, BOXES)) == 3


def test_all_may_read_what_one_of_them_made(tmp_path: Path, seed: int) -> None:
    """The best of the first class is added to each; a class is sorted before and behind."""
    nodes = []
    for i in range(5):
        nodes += [
            make("Gather", ["scores", f"class{i}"], [f"s{i}"], axis=1),
            make("TopK", [f"s{i}", "four"], [f"v{i}", f"p{i}"]),
        ]
    nodes.append(make("ReduceMax", ["v0"], ["most"], keepdims=1))
    for i in range(5):
        nodes += [make("Add", [f"s{i}", "most"], [f"a{i}"]), make("TopK", [f"a{i}", "four"], [f"w{i}", f"q{i}"])]
    nodes += [make("Concat", [f"{name}{i}" for i in range(5)], [f"{name}_of_all"], axis=0) for name in ("v", "w")]
    path = model(tmp_path, nodes, ["v_of_all", "w_of_all"])
    assert sorts(load_onnx(path)) == [(5, BOXES), (5, BOXES)]
    assert_agrees(path, inputs(seed))


def lines_run(path: Path) -> int:
    """Return how many lines of `lanes.py` an import runs: a clock would tell the machine's load."""
    count = 0

    def trace(frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        nonlocal count
        if frame.f_code.co_filename != lanes.__file__:
            return None
        count += 1
        return trace

    sys.settrace(trace)
    try:
        load_onnx(path)
    finally:
        sys.settrace(None)
    return count


def test_a_recurrent_network_is_looked_through_in_linear_time(tmp_path: Path, seed: int) -> None:
    """Each of its steps slices its gates apart: there are as many runs of slices as steps."""
    rng, hidden = np.random.default_rng(seed), 3
    weights: dict[str, Any] = {
        "w": rng.random((1, 4 * hidden, 2), np.float32), "r": rng.random((1, 4 * hidden, hidden), np.float32)
    }  # fmt: skip

    def of(steps: int) -> int:
        nodes = [make("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden)]
        return lines_run(save_model(tmp_path / f"{steps}.onnx", nodes, {"x": (steps, 1, 2)}, ["y"], weights))

    few = int(rng.integers(8, 16))
    assert of(4 * few) < 6 * of(few)
