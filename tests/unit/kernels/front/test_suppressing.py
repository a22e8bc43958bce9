"""NonMaxSuppression and NonZero: onnxruntime's rows first, then rows of -1, and how many are onnxruntime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.rewriting.suppression_limits import limit_suppression
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime, save_model

Arrays = dict[str, np.ndarray[Any, Any]]


def detector(
    folder: Path, inputs: Arrays, most: int, *later: Any, overlap: float | None = 0.5, least: float | None = None,
    output: str = "rows", center: int = 0,
) -> Path:  # fmt: skip
    given = {"most": np.array([most], np.int64)}
    names = ["boxes", "scores", "most"]
    for name, number in (("overlap", overlap), ("least", least)):
        names.append("" if number is None else name)
        given |= {} if number is None else {name: np.array([number], np.float32)}
    nodes = [
        helper.make_node("NonMaxSuppression", names, ["found"], center_point_box=center),
        helper.make_node("Cast", ["found"], ["rows"], to=TensorProto.FLOAT),
        *later,
    ]
    constants = given | {"column": np.array([2], np.int64), "start": np.array([0], np.int64)}
    constants |= {"across": np.array([1], np.int64), "five": np.array([5], np.int64)}
    shapes = {name: array.shape for name, array in inputs.items()}
    return save_model(folder / "m.onnx", nodes, shapes, [output], constants)


def drawn(rng: np.random.Generator, batch: int, classes: int, count: int) -> Arrays:
    """Many equal scores, many boxes that overlap, some twice, some without an area."""
    corners = rng.integers(0, 12, (batch, count, 4)).astype(np.float32) / 4
    corners[:, count // 2 :: 3] = corners[:, :1]
    return {"boxes": corners, "scores": np.round(rng.random((batch, classes, count)), 1).astype(np.float32)}


def padded(wanted: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    return np.pad(wanted, ((0, rows - len(wanted)), (0, 0)), constant_values=-1)


@pytest.mark.parametrize(
    ("batch", "classes", "count", "most"), [(1, 1, 40, 12), (2, 3, 17, 5), (1, 4, 9, 20), (3, 1, 1, 1)]
)
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize(("overlap", "least"), [(0.5, 0.35), (None, None), (0.3, None), (0.9, 0.95)])
def test_rows_are_those_of_onnxruntime_and_then_padding(
    tmp_path: Path, seed: int, batch: int, classes: int, count: int, most: int, center: int,
    overlap: float | None, least: float | None,
) -> None:  # fmt: skip
    inputs = drawn(np.random.default_rng(seed), batch, classes, count)
    path = detector(tmp_path, inputs, most, overlap=overlap, least=least, center=center)
    wanted, graph = run_onnxruntime(path, inputs)["rows"], load_onnx(path)
    total = batch * classes * min(most, count)
    assert graph.shapes["rows"] == (total, 3)
    found = evaluate(graph, inputs, dtype=np.float32)
    assert np.array_equal(found["rows"], padded(wanted, total))
    assert found["rows.count"] == [len(wanted)]


def test_boxes_are_gathered_by_its_rows(tmp_path: Path, seed: int) -> None:
    later = [
        helper.make_node("Gather", ["found", "column"], ["places"], axis=1),
        helper.make_node("Gather", ["boxes", "places"], ["chosen"], axis=1),
        helper.make_node("Identity", ["chosen"], ["y"]),
    ]
    inputs = drawn(np.random.default_rng(seed), 1, 1, 30)
    path = detector(tmp_path, inputs, 8, *later, output="y", least=0.2)
    wanted = run_onnxruntime(path, inputs)["y"]
    ours = evaluate(load_onnx(path), inputs)["y"]
    assert np.array_equal(ours[:, : wanted.shape[1]], wanted)


@pytest.mark.parametrize(("batch", "classes"), [(1, 1), (1, 3)])
def test_no_more_boxes_are_chosen_than_are_read(tmp_path: Path, seed: int, batch: int, classes: int) -> None:
    """PyTorch exports it so: any number may be chosen, and a slice reads the first ones."""
    later = [
        helper.make_node("Gather", ["found", "column"], ["one"], axis=1),
        helper.make_node("Squeeze", ["one", "across"], ["places"]),
        helper.make_node("Slice", ["places", "start", "five", "start"], ["some"]),
        helper.make_node("Cast", ["some"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = drawn(np.random.default_rng(seed), batch, classes, 300)
    path = detector(tmp_path, inputs, 2**62, *later, output="y", overlap=0.9)
    graph = load_onnx(path)
    found, wanted = evaluate(graph, inputs), run_onnxruntime(path, inputs)["y"]
    assert np.array_equal(found["y"], wanted)
    assert found["y.count"] == [5]
    assert len(graph.nodes) < 200


def test_many_rounds_and_none_are_refused(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with pytest.raises(UnsupportedNode, match="may choose 1030 boxes of a class; at most 1024"):
        load_onnx(detector(tmp_path, drawn(rng, 1, 1, 1040), 1030))
    with pytest.raises(ModelError, match="it chooses none"):
        load_onnx(detector(tmp_path, drawn(rng, 1, 1, 7), 0))
    boxes = {"boxes": np.zeros((1, 3, 5), np.float32), "scores": np.zeros((1, 1, 3), np.float32)}
    with pytest.raises(ModelError, match=r"boxes have the shape \(1, 3, 5\).* expected \(batch, boxes, 4\)"):
        load_onnx(detector(tmp_path, boxes, 2))


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4)])
def test_places_of_what_is_not_zero_and_then_padding(tmp_path: Path, seed: int, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)
    nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Transpose", ["at"], ["rows"]),
             helper.make_node("Cast", ["rows"], ["y"], to=TensorProto.FLOAT)]  # fmt: skip
    path = save_model(tmp_path / "m.onnx", nodes, {"x": shape}, ["y"])
    got = evaluate(load_onnx(path), {"x": x})["y"]
    assert np.array_equal(got, padded(run_onnxruntime(path, {"x": x})["y"], x.size))


def test_places_of_constants_are_constants(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["c"], ["at"]), helper.make_node("Squeeze", ["at"], ["places"]),
             helper.make_node("Gather", ["x", "places"], ["y"])]  # fmt: skip
    constants = {"c": np.array([0, 2, 0, 1, 1], np.float32)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (5, 2)}, ["y"], constants)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    graph = load_onnx(path)
    assert np.array_equal(evaluate(graph, {"x": x})["y"], run_onnxruntime(path, {"x": x})["y"])


@pytest.mark.parametrize("shared", [False, True])
def test_a_limit_is_no_other_graphs_number(shared: bool) -> None:
    """Two branches slice the same rows, up to 9 and up to 2. Where both call their numbers alike there is no limit."""

    def branch(name: str, end: int) -> onnx.GraphProto:
        numbers = [numpy_helper.from_array(np.array([n], np.int64), f"{w}{name}") for w, n in (("s", 0), ("e", end))]
        node = helper.make_node("Slice", ["found", f"s{name}", f"e{name}", f"s{name}"], [f"kept{name}"])
        made = helper.make_tensor_value_info(f"kept{name}", TensorProto.INT64, None)
        return helper.make_graph([node], name, [], [made], numbers)

    first, second = branch("a", 9), branch("a" if shared else "b", 2)
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["found"]),
        helper.make_node("If", ["c"], ["out"], then_branch=first, else_branch=second),
    ]
    out = helper.make_tensor_value_info("out", TensorProto.INT64, None)
    graph = helper.make_graph(nodes, "g", [], [out], [numpy_helper.from_array(np.array([100], np.int64), "most")])
    limit_suppression(graph)
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    assert given[graph.node[0].input[2]].tolist() == [100 if shared else 9]
