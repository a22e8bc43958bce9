"""Places of maxima, and what is put back to them: by MaxUnpool, ScatterElements and ScatterND, as exporters do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph

from .onnx_models import assert_agrees, save_model

node = helper.make_node
WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]},
    {"kernel_shape": [2, 3], "strides": [3, 2], "dilations": [2, 1], "pads": [1, 0, 1, 0]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1},
]
SHAPE = (2, 3, 8, 9)
MANY = SHAPE[0] * SHAPE[1]
PLANE = SHAPE[2] * SHAPE[3]


def pool(window: dict[str, Any], seed: int) -> tuple[list[Any], dict[str, Any]]:
    """A MaxPool with its places, numbers for each window that are not its maximum, and the pool's input."""
    nodes = [node("MaxPool", ["x"], ["most", "places"], **window), node("CumSum", ["most", "last"], ["u"])]
    return nodes, {"x": np.round(np.random.default_rng(seed).standard_normal(SHAPE), 1).astype(np.float32)}


def agrees(folder: Path, nodes: list[Any], given: dict[str, Any], constants: dict[str, Any]) -> Graph:
    shapes = {name: value.shape for name, value in given.items()}
    return assert_agrees(
        save_model(folder / "m.onnx", nodes, shapes, ["y"], {"last": -1, **constants}, opset=18), given
    )


def compares_all(graph: Graph) -> bool:
    """Return whether each place is compared with each window: far more numbers than the input has."""
    return max(np.prod(shape) for shape in graph.shapes.values()) > 10 * MANY * PLANE


@pytest.mark.parametrize("window", WINDOWS)
def test_by_scattering_among_all(tmp_path: Path, window: dict[str, Any], seed: int) -> None:
    """PyTorch's `dynamo` writes `max_unpool2d` so: places of each channel, its own start added, in one row."""
    nodes, given = pool(window, seed)
    starts = np.arange(MANY).reshape(*SHAPE[:2], 1, 1) * PLANE
    nodes += [
        node("Sub", ["places", "starts"], ["own"]),
        node("Reshape", ["own", "rows"], ["of_rows"]),
        node("Add", ["flat_starts", "of_rows"], ["every"]),
        node("Reshape", ["every", "column"], ["indices"]),
        node("Reshape", ["u", "line"], ["updates"]),
        node("ScatterND", ["zeros", "indices", "updates"], ["flat"]),
        node("Reshape", ["flat", "shape"], ["y"]),
    ]
    constants = {
        "starts": starts, "rows": [MANY, -1], "flat_starts": starts.reshape(-1, 1), "column": [-1, 1], "line": [-1],
        "zeros": np.zeros(MANY * PLANE, np.float32), "shape": SHAPE,
    }  # fmt: skip
    assert not compares_all(agrees(tmp_path, nodes, given, constants))


@pytest.mark.parametrize("window", WINDOWS)
def test_by_scattering_in_rows(tmp_path: Path, window: dict[str, Any], seed: int) -> None:
    """The values that were there before stay where no place says otherwise."""
    nodes, given = pool(window, seed)
    nodes += [
        node("Sub", ["places", "starts"], ["own"]),
        node("Reshape", ["own", "rows"], ["indices"]),
        node("Reshape", ["u", "rows"], ["updates"]),
        node("Reshape", ["x", "rows"], ["before"]),
        node("ScatterElements", ["before", "indices", "updates"], ["y"], axis=2),
    ]
    constants = {"starts": np.arange(MANY).reshape(*SHAPE[:2], 1, 1) * PLANE, "rows": [*SHAPE[:2], -1]}
    assert not compares_all(agrees(tmp_path, nodes, given, constants))


@pytest.mark.parametrize(("shape", "by_column"), [((2, 3, 6, 4), 0), ((2, 3, 8, 5), 0), ((2, 3, 6, 4), 1)])
def test_by_unpooling(tmp_path: Path, shape: tuple[int, ...], by_column: int, seed: int) -> None:
    """A picture that windows do not fill has its shape told: onnxruntime counts places as MaxPool does. MaxUnpool takes
    places that are counted by columns for numbers by rows."""
    window = {"kernel_shape": [3, 2], "strides": [3, 2]}
    nodes = [
        node("MaxPool", ["x"], ["most", "places"], storage_order=by_column, **window),
        node("CumSum", ["most", "last"], ["u"]),
        node("Identity", ["places"], ["same"]),
        node("MaxUnpool", ["u", "same", "shape"], ["y"], **window),
    ]
    given = {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}
    agrees(tmp_path, nodes, given, {"shape": shape})


def unpooled(folder: Path, extent: int, constants: dict[str, Any]) -> Path:
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Cast", ["i"], ["places"], to=7),
        node("MaxUnpool", ["x", "places", *constants], ["y"], name="it", **window),
    ]
    shapes = {"x": (1, 2, extent, extent), "i": (1, 2, extent, extent)}
    return save_model(folder / "m.onnx", nodes, shapes, ["y"], constants)


def test_what_runtimes_disagree_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedNode, match=r"'it'.*runtimes disagree"):
        load_onnx(unpooled(tmp_path, 2, {"shape": np.array([1, 2, 5, 5])}))


def test_many_places_of_another_origin_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'it'.*do not come from a max pooling"):
        load_onnx(unpooled(tmp_path, 100, {}))
