"""RoiAlign: what onnxruntime computes, of boxes inside a picture, at its edges and outside, of any order of corners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx

from .onnx_models import assert_agrees, save_model

SHAPES = {"x": (2, 3, 9, 7), "boxes": (6, 4)}


def save(folder: Path, opset: int = 16, **attributes: Any) -> Path:
    node = helper.make_node("RoiAlign", ["x", "boxes", "pictures"], ["y"], name="it", **attributes)
    return save_model(folder / "m.onnx", [node], SHAPES, ["y"], {"pictures": np.array([0, 1, 1, 0, 1, 0])}, opset=opset)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize(("opset", "extra"), [
    (10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}),
])  # fmt: skip
def test_boxes(tmp_path: Path, seed: int, mode: str, opset: int, extra: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-4, 22, (6, 4)).astype(np.float32)
    corners[:4] = np.sort(corners[:4].reshape(4, 2, 2), axis=1).reshape(4, 4)  # the last two are in any order
    inputs = {"x": rng.standard_normal(SHAPES["x"]).astype(np.float32), "boxes": corners}
    size = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5}
    assert_agrees(save(tmp_path, opset, mode=mode, **size, **extra), inputs)


def test_boxes_that_say_how_many_points_are_taken_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedNode, match=r"'it'.*sampling_ratio is 0"):
        load_onnx(save(tmp_path))


def test_boxes_of_another_shape_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("RoiAlign", ["x", "boxes", "pictures"], ["y"], sampling_ratio=1)
    path = save_model(tmp_path / "m.onnx", [node], {**SHAPES, "boxes": (5, 4)}, ["y"], {"pictures": np.arange(6)})
    with pytest.raises(ModelError, match=r"boxes \(5, 4\) and numbers of pictures \(6,\) do not fit"):
        load_onnx(path)


def test_one_box_of_a_constant_picture(tmp_path: Path, seed: int) -> None:
    node = helper.make_node("RoiAlign", ["x", "boxes", "pictures"], ["y"], sampling_ratio=1)
    shapes = {**SHAPES, "boxes": (1, 4)}
    rng = np.random.default_rng(seed)
    path = save_model(tmp_path / "m.onnx", [node], shapes, ["y"], {"pictures": np.array([1])}, opset=16)
    assert_agrees(path, {name: rng.uniform(0, 5, shape).astype(np.float32) for name, shape in shapes.items()})
