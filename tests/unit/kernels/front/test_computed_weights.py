"""Convolutions whose weights the network computes, as StyleGAN, dynamic convolutions and trackers have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx

from .onnx_models import assert_agrees, save_model

ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"strides": [2, 1], "pads": [1, 0, 2, 1]},
    {"dilations": [2, 3], "pads": [2, 2, 2, 2]},
    {"group": 2, "strides": [3, 2]},
    {"group": 4, "pads": [0, 1, 1, 0]},
    {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
]


def agrees(folder: Path, op: str, shapes: dict[str, tuple[int, ...]], attributes: dict[str, Any], seed: int) -> None:
    node = helper.make_node(op, [*shapes], ["y"], **attributes)
    rng = np.random.default_rng(seed)
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert_agrees(save_model(folder / "m.onnx", [node], shapes, ["y"]), inputs)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_convolution(tmp_path: Path, attributes: dict[str, Any], batch: int, seed: int) -> None:
    shapes = {"x": (batch, 4, 11, 12), "w": (8, 4 // attributes.get("group", 1), 3, 2), "b": (8,)}
    agrees(tmp_path, "Conv", shapes, attributes, seed)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("attributes", [*ATTRIBUTES[:-1], {"strides": [2, 3], "output_padding": [1, 2]}])
def test_transposed_convolution(tmp_path: Path, attributes: dict[str, Any], batch: int, seed: int) -> None:
    shapes = {"x": (batch, 4, 5, 6), "w": (4, 8 // attributes.get("group", 1), 3, 2), "b": (8,)}
    agrees(tmp_path, "ConvTranspose", shapes, attributes, seed)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("extents", [(9,), (5, 6, 7)])
def test_other_dimensions(tmp_path: Path, op: str, extents: tuple[int, ...], seed: int) -> None:
    axes = len(extents)
    shapes = {"x": (2, 4, *extents), "w": (4, 2, *(3 for _ in extents))}
    agrees(tmp_path, op, shapes, {"group": 2, "strides": [2] * axes, "pads": [1] * 2 * axes}, seed)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_computed_bias_of_constant_weights(tmp_path: Path, op: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    node = helper.make_node(op, ["x", "w", "b"], ["y"], strides=[2, 2])
    weights = {"w": rng.standard_normal((4, 4, 3, 3)).astype(np.float32)}
    shapes = {"x": (2, 4, 7, 8), "b": (4,)}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert_agrees(save_model(tmp_path / "m.onnx", [node], shapes, ["y"], weights), inputs)


@pytest.mark.parametrize(
    ("op", "shapes", "words"),
    [
        ("Conv", {"x": (1, 4, 7, 7), "w": (8, 3, 3, 3)}, "do not fit 4 channels"),
        ("Conv", {"x": (1, 4, 2, 2), "w": (8, 4, 3, 3)}, "does not fit into"),
        ("Conv", {"x": (1, 4, 7, 7), "w": (8, 4, 3, 3), "b": (7,)}, "M = 8"),
        ("ConvTranspose", {"x": (1, 4, 7, 7), "w": (4, 8, 3, 3), "b": (7,)}, "cannot become"),
        ("ConvTranspose", {"x": (1, 4, 7, 7), "w": (3, 8, 3, 3)}, "does not fit"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, op: str, shapes: dict[str, tuple[int, ...]], words: str) -> None:
    path = save_model(tmp_path / "m.onnx", [helper.make_node(op, [*shapes], ["y"])], shapes, ["y"])
    with pytest.raises(ModelError, match=words):
        load_onnx(path)
