"""ScatterElements and ScatterND by computed indices, as graph networks add up what arrives at a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.shapes import Shape
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

HOW = ["add", "max", "min", "mul", "none"]


def scatter(
    folder: Path, op: str, shape: Shape, indices: Shape, updates: Shape, how: str, **more: int
) -> Path:  # fmt: skip
    """The indices are an input of whole numbers."""
    cast = helper.make_node("Cast", ["i"], ["whole"], to=7)
    node = helper.make_node(op, ["x", "whole", "u"], ["y"], name="it", reduction=how, **more)
    inputs = {"x": shape, "i": indices, "u": updates}
    return save_model(folder / "m.onnx", [cast, node], inputs, ["y"], opset=18)


def drawn(seed: int, shape: Shape, updates: Shape, places: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, u = (rng.standard_normal(each).astype(np.float32) for each in (shape, updates))
    return {"x": x, "i": np.asarray(places, np.float32), "u": u}


def places(seed: int, how: str, extent: int, shape: Shape) -> Any:
    """Return places along the last axis; none twice where the order would decide."""
    rng = np.random.default_rng(seed + 1)
    if how == "none":
        return np.apply_along_axis(lambda row: rng.permutation(extent)[: len(row)], -1, np.zeros(shape)) - extent
    return rng.integers(-extent, extent, shape)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(tmp_path: Path, seed: int, how: str, axis: int) -> None:
    shape = (4, 5, 6)
    given = tuple(3 if k == axis % 3 else extent for k, extent in enumerate(shape))
    moved = np.moveaxis(np.zeros(given), axis, -1).shape
    chosen = np.moveaxis(places(seed, how, shape[axis], moved), -1, axis)
    path = scatter(tmp_path, "ScatterElements", shape, given, given, how, axis=axis)
    assert_agrees(path, drawn(seed, shape, given, chosen))


@pytest.mark.parametrize("how", HOW)
def test_rows(tmp_path: Path, seed: int, how: str) -> None:
    shape, given = (5, 3, 4), (2, 2, 1)
    chosen = places(seed, how, 5, (4,)).reshape(given)
    path = scatter(tmp_path, "ScatterND", shape, given, (2, 2, 3, 4), how)
    assert_agrees(path, drawn(seed, shape, (2, 2, 3, 4), chosen))


@pytest.mark.parametrize("how", HOW)
def test_single_elements(tmp_path: Path, seed: int, how: str) -> None:
    chosen = np.stack(np.unravel_index(places(seed, how, 12, (7,)) % 12, (3, 4)), -1) - [0, 4]
    path = scatter(tmp_path, "ScatterND", (3, 4), (7, 2), (7,), how)
    assert_agrees(path, drawn(seed, (3, 4), (7,), chosen))


def test_indices_of_whole_rows_are_looked_up_once(tmp_path: Path, seed: int) -> None:
    """PyTorch exports `index_add` so: expanded to every feature, and multiplied as one matrix all the same."""
    wide = numpy_helper.from_array(np.array([9, 16]), "wide")
    nodes = [
        helper.make_node("Cast", ["i"], ["whole"], to=7),
        helper.make_node("Expand", ["whole", "wide"], ["all"]),
        helper.make_node("ScatterElements", ["x", "all", "u"], ["y"], reduction="add"),
    ]
    inputs = {"x": (6, 16), "i": (9, 1), "u": (9, 16)}
    path = save_model(tmp_path / "m.onnx", nodes, inputs, ["y"], {"wide": numpy_helper.to_array(wide)}, opset=18)
    rng = np.random.default_rng(seed)
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
    graph = assert_agrees(path, given | {"i": rng.integers(0, 6, (9, 1)).astype(np.float32)})
    assert [graph.shapes[node.inputs[0]] for node in graph.nodes if node.op == "matmul"] == [(6, 9)]


def test_a_place_that_is_named_often(tmp_path: Path, seed: int) -> None:
    """Constant indices are put in turn, but not a hundred times."""
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")
    inputs, places = {"x": (3, 4), "u": (100, 4)}, np.repeat([[2], [0]], [70, 30], 0)
    path = save_model(tmp_path / "m.onnx", [node], inputs, ["y"], {"i": places}, opset=18)
    rng = np.random.default_rng(seed)
    graph = assert_agrees(path, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()})
    assert len(graph.nodes) < 20


def test_what_nothing_is_put_to_stays_infinite(tmp_path: Path, seed: int) -> None:
    path = scatter(tmp_path, "ScatterND", (5, 2), (3, 1), (3, 2), "max")
    given = drawn(seed, (5, 2), (3, 2), [[3], [1], [3]]) | {"x": np.full((5, 2), -np.inf, np.float32)}
    found = evaluate(load_onnx(path), given)["y"]
    assert np.array_equal(found, run_onnxruntime(path, given)["y"])
    assert np.isneginf(found[[0, 2, 4]]).all()


def test_a_part_of_the_other_axes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedNode, match=r"'it'.*only axis 0 may differ"):
        load_onnx(scatter(tmp_path, "ScatterElements", (4, 5), (2, 3), (2, 3), "add"))
