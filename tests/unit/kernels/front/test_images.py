"""Padding, resizing and instance normalisation: what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import OLDEST_OPSET, VERIFIED_OPSET, load_onnx
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

SHAPE = (2, 3, 5, 7)


@pytest.fixture
def x(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)


def save(folder: Path, one: Any, constants: dict[str, Any] | None = None, opset: int = 20) -> Path:
    return save_model(folder / "m.onnx", [one], {"x": SHAPE}, ["y"], constants, opset=opset)


def node(op: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, ["x", *inputs], ["y"], name="it", **attributes)


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 13, 20, VERIFIED_OPSET])
def test_instance_normalization(tmp_path: Path, x: Any, opset: int) -> None:
    constants = {"s": np.array([1.5, -2, 0], np.float32), "b": np.array([0.5, 0, -1], np.float32)}
    for attributes in ({}, {"epsilon": 0.5}):
        path = save(tmp_path, node("InstanceNormalization", "s", "b", **attributes), constants, opset)
        assert_agrees(path, {"x": 3 * x + 10}, tolerance=2e-5)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("opset", [OLDEST_OPSET, 11, 13, 20, VERIFIED_OPSET])
def test_pad(tmp_path: Path, x: Any, mode: str, opset: int) -> None:
    pads = [0, 0, 4, 1, 0, 0, 2, 6]
    if opset < 11:
        assert_agrees(save(tmp_path, node("Pad", pads=pads, mode=mode, value=1.5), opset=opset), {"x": x})
        return
    constants = {"p": np.array(pads, np.int64), "v": np.float32(-2)}
    assert_agrees(save(tmp_path, node("Pad", "p", "v", mode=mode), constants, opset), {"x": x})
    assert_agrees(save(tmp_path, node("Pad", "p", mode=mode), constants, opset), {"x": x})
    if opset >= 18:
        constants = {"p": np.array([1, 2, 3, 0], np.int64), "a": np.array([-1, 2], np.int64)}
        assert_agrees(save(tmp_path, node("Pad", "p", "", "a", mode=mode), constants, opset), {"x": x})


@pytest.mark.parametrize("opset", [OLDEST_OPSET, 13])
def test_pad_with_infinity_before_a_maximum(tmp_path: Path, x: Any, opset: int) -> None:
    """MaxPool2dSame of timm does so; the padded tensor is a result, too."""
    pads, shape = [0, 0, 0, 1, 0, 0, 1, 2], {"x": SHAPE}
    by_input, constants = ["p", "v"], {"p": np.array(pads, np.int64), "v": np.float32(-np.inf)}
    old = opset < 11
    one = helper.make_node("Pad", ["x"], ["wide"], pads=pads, value=-np.inf) if old else helper.make_node(
        "Pad", ["x", *by_input], ["wide"]
    )  # fmt: skip
    largest = helper.make_node("MaxPool", ["wide"], ["y"], kernel_shape=[3, 3], strides=[2, 2])
    path = save_model(tmp_path / "m.onnx", [one, largest], shape, ["wide", "y"], {} if old else constants, opset=opset)
    ours, theirs = evaluate(load_onnx(path), {"x": x}), run_onnxruntime(path, {"x": x})
    assert all(np.array_equal(ours[name], theirs[name]) for name in ("wide", "y"))


@pytest.mark.parametrize("opset", [11, 13, 19, VERIFIED_OPSET])
@pytest.mark.parametrize("size", [(10, 14), (3, 17), (1, 1)])
@pytest.mark.parametrize("way", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
def test_resize_linear(tmp_path: Path, x: Any, way: str, size: tuple[int, int], opset: int) -> None:
    if way == "pytorch_half_pixel" and size == (1, 1):
        return  # refused, see below
    constants = {"size": np.array([*SHAPE[:2], *size], np.int64), "none": np.zeros(0, np.float32)}
    attributes = {"mode": "linear", "coordinate_transformation_mode": way}
    absent = "none" if opset < 13 else ""
    assert_agrees(save(tmp_path, node("Resize", absent, absent, "size", **attributes), constants, opset), {"x": x})


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("scale", [1.3, 0.7, 1.1, 2.6, 0.3])
def test_resize_by_a_scale_that_fp32_cannot_hold(tmp_path: Path, scale: float, mode: str, seed: int) -> None:
    """10 pixels by 1.3 are 13, as PyTorch's `scale_factor` means them, although 1.3 in fp32 is a little less."""
    x = np.random.default_rng(seed).standard_normal((1, 2, 10, 12)).astype(np.float32)
    one = node("Resize", "", "s", mode=mode, coordinate_transformation_mode="half_pixel", nearest_mode="floor")
    model = save_model(tmp_path / "m.onnx", [one], {"x": x.shape}, ["y"], {"s": np.float32([1, 1, scale, scale])})
    assert_agrees(model, {"x": x})


@pytest.mark.parametrize("scales", [(2, 2), (3, 1), (2, 4)])
@pytest.mark.parametrize(("way", "rounding"), [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")])
def test_resize_nearest(tmp_path: Path, x: Any, way: str, rounding: str, scales: tuple[int, int]) -> None:
    constants = {"scales": np.array([1, 1, *scales], np.float32)}
    attributes = {"coordinate_transformation_mode": way, "nearest_mode": rounding}
    assert_agrees(save(tmp_path, node("Resize", "", "scales", **attributes), constants), {"x": x})


def test_resize_nearest_before_its_rounding_was_said(tmp_path: Path, seed: int) -> None:
    """Opset 10, by any scales: where a picture shrinks, onnxruntime takes the later pixel. Where no size changes, it
    copies the picture, whatever the scales say."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        scales = [1, 1, *rng.choice([0.3, 0.5, 0.6, 2 / 9, 0.75, 1, 1.5, 2, rng.uniform(0.3, 3)], 2)]
        shape = (1, 2, *map(int, rng.integers(5, 12, 2)))
        made = helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest")
        stored = {"s": np.array(scales, np.float32)}
        path = save_model(tmp_path / "m.onnx", [made], {"x": shape}, ["y"], stored, opset=10)
        x = rng.standard_normal(shape).astype(np.float32)
        if [int(n * f) for n, f in zip(shape, stored["s"], strict=True)] != list(shape):
            assert_agrees(path, {"x": x})
            continue
        rows, columns = (
            np.floor(np.arange(n) / f).astype(int) for n, f in zip(shape[2:], stored["s"][2:], strict=True)
        )
        assert np.array_equal(evaluate(load_onnx(path), {"x": x})["y"], x[:, :, rows][:, :, :, columns])


@pytest.mark.parametrize("opset", [11, 15, VERIFIED_OPSET])
@pytest.mark.parametrize("size", [(10, 14), (3, 7), (5, 3), (8, 2)])
def test_resize_nearest_of_tensorflow(tmp_path: Path, x: Any, size: tuple[int, int], opset: int) -> None:
    constants = {"size": np.array([*SHAPE[:2], *size], np.int64), "none": np.zeros(0, np.float32)}
    absent = "none" if opset < 13 else ""
    for rounding in ("floor", "round_prefer_ceil"):
        way = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}
        assert_agrees(save(tmp_path, node("Resize", absent, absent, "size", **way), constants, opset), {"x": x})


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_by_scale(tmp_path: Path, x: Any, mode: str) -> None:
    scales = {"s": np.array([1, 1, 2, 3], np.float32)}
    assert_agrees(save(tmp_path, node("Resize", "s", mode=mode), scales, 10), {"x": x})
    assert_agrees(save(tmp_path, node("Upsample", "s", mode=mode), scales, 9), {"x": x})
    assert_agrees(save(tmp_path, node("Upsample", mode=mode, scales=[1.0, 1.0, 2.0, 3.0]), opset=7), {"x": x})


def test_resize_of_chosen_axes(tmp_path: Path, x: Any) -> None:
    one = node("Resize", "", "", "size", mode="linear", axes=[3, 2])
    assert_agrees(save(tmp_path, one, {"size": np.array([9, 4], np.int64)}), {"x": x})


@pytest.mark.parametrize(
    ("one", "constants", "message"),
    [
        (node("Resize", "", "s", mode="linear", coordinate_transformation_mode="align_corners"),
         {"s": np.array([1, 1, 1.3, 2], np.float32)}, "no whole number of 5 pixels"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, one: Any, constants: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedNode, match=f"'it'.*{message}"):
        load_onnx(save(tmp_path, one, constants))


def test_reflection_of_more_than_the_image(tmp_path: Path) -> None:
    path = save(tmp_path, node("Pad", "p", mode="reflect"), {"p": np.array([0, 0, 5, 0, 0, 0, 0, 0])})
    with pytest.raises(ModelError, match=r"'it'.*must be smaller than the image \(5, 7\)"):
        load_onnx(path)
