"""Split, Slice and Gather of activations: what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError
from kernels.frontend.onnx import VERIFIED_OPSET, load_onnx

from .onnx_models import assert_agrees, save_model

SHAPE = (2, 6, 5, 4)


@pytest.fixture
def x(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def save(folder: Path, one: Any, constants: dict[str, list[int] | int] | None = None, opset: int = 20) -> Path:
    arrays = {name: np.array(value, np.int64) for name, value in (constants or {}).items()}
    return save_model(folder / "m.onnx", [one], {"x": SHAPE}, list(one.output), arrays, opset=opset)


def node(op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
    return helper.make_node(op, ["x", *inputs], [f"y{i}" for i in range(outputs)], name="it", **attributes)


@pytest.mark.parametrize("axis", [1, -2, 0])
def test_split_into_equal_parts(tmp_path: Path, x: Any, axis: int) -> None:
    assert_agrees(save(tmp_path, node("Split", outputs=2, axis=axis, num_outputs=2), opset=VERIFIED_OPSET), {"x": x})
    if axis != -2:
        assert_agrees(save(tmp_path, node("Split", outputs=2, axis=axis), opset=11), {"x": x})
        assert_agrees(save(tmp_path, node("Split", outputs=2, axis=axis), opset=13), {"x": x})


def test_split_into_given_parts(tmp_path: Path, x: Any) -> None:
    assert_agrees(save(tmp_path, node("Split", outputs=3, axis=1, split=[1, 2, 3]), opset=11), {"x": x})
    assert_agrees(save(tmp_path, node("Split", "s", outputs=3, axis=1), {"s": [3, 1, 2]}), {"x": x})


def test_a_part_that_nothing_reads(tmp_path: Path, x: Any) -> None:
    nodes = [node("Split", outputs=3, axis=1, num_outputs=3), helper.make_node("Relu", ["y2"], ["z"])]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": SHAPE}, ["z"], opset=20)
    assert_agrees(path, {"x": x})


@pytest.mark.parametrize(
    "parts",
    [
        {"s": [1], "e": [3], "a": [1]},
        {"s": [-3], "e": [2**62], "a": [-1]},
        {"s": [0, 1], "e": [1, -1]},
        {"s": [1, 2], "e": [9, 4], "a": [3, 1], "st": [1, 1]},
    ],
)
def test_slice(tmp_path: Path, x: Any, parts: dict[str, list[int]]) -> None:
    path = save(tmp_path, node("Slice", *(name if name in parts else "" for name in ("s", "e", "a", "st"))), parts)
    assert_agrees(path, {"x": x})


def test_an_empty_slice_adds_nothing(tmp_path: Path, x: Any) -> None:
    """Rotary positions of all features are exported so: what is not turned is empty."""
    nodes = [
        helper.make_node("Slice", ["x", "s", "e", "a"], ["rest"]),
        helper.make_node("Concat", ["x", "rest"], ["y"], axis=-1),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    parts = {"s": np.array([0, 4]), "e": np.array([2, 2**62]), "a": np.array([0, -1])}
    assert_agrees(save_model(tmp_path / "m.onnx", nodes, {"x": SHAPE}, ["z"], parts, opset=20), {"x": x})


def test_slice_with_attributes(tmp_path: Path, x: Any) -> None:
    assert_agrees(save(tmp_path, node("Slice", starts=[1, 0], ends=[3, 2], axes=[2, 1]), opset=9), {"x": x})


@pytest.mark.parametrize("indices", [0, -1, [2], [1, 2, 3], [-1], [2, 0], [[1, 0], [2, 2]]])
def test_gather(tmp_path: Path, x: Any, indices: Any) -> None:
    for axis in (1, -2):
        assert_agrees(save(tmp_path, node("Gather", "i", axis=axis), {"i": indices}), {"x": x})


@pytest.mark.parametrize(
    ("one", "constants", "error", "message"),
    [
        (node("Slice", "s", "e"), {"s": [2], "e": [2]}, ModelError, r"output 'y0' of shape \(0, 6, 5, 4\) is empty"),
        (node("Gather", "i", axis=1), {"i": [6]}, ModelError, "axis 6"),
        (node("Split", "s", outputs=2, axis=1), {"s": [3, 4]}, ModelError, r"6 cannot be split into \[3, 4\]"),
        (node("Split", outputs=4, axis=1, num_outputs=4), {}, ModelError, r"split into \[2, 2, 2, 0\]"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, one: Any, constants: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"'it'.*{message}"):
        load_onnx(save(tmp_path, one, constants))
