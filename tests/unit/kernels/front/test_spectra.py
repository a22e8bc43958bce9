"""DFT, STFT and Col2Im of activations: what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate

from .onnx_models import assert_agrees, save_model


def save(
    folder: Path, shape: tuple[int, ...], op: str, *stored: int | list[int] | None, window: Any = None, opset: int = 20,
    **attributes: Any,
) -> Path:  # fmt: skip
    """One node of an input and stored operands; None: absent."""
    names = ["" if value is None else f"i{place}" for place, value in enumerate(stored)]
    arrays = {name: np.asarray(value, np.int64) for name, value in zip(names, stored, strict=True) if name}
    if window is not None:
        names, arrays["w"] = [names[0], "w", *names[1:]], window
    node = helper.make_node(op, ["x", *names], ["y"], name="it", **attributes)
    return save_model(folder / "m.onnx", [node], {"x": shape}, ["y"], arrays, opset=opset)


def given(seed: int, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft(tmp_path: Path, seed: int, parts: int, length: int | None, inverse: int) -> None:
    shape = (2, 7, 6, parts)
    for axis in (0, 1, -2):
        assert_agrees(save(tmp_path, shape, "DFT", length, axis, inverse=inverse), given(seed, shape))


@pytest.mark.parametrize("extent", [7, 8])
def test_half_of_a_spectrum_and_back(tmp_path: Path, seed: int, extent: int) -> None:
    real, half = (3, extent, 1), (3, extent // 2 + 1, 2)
    assert_agrees(save(tmp_path, real, "DFT", onesided=1, axis=1, opset=17), given(seed, real))
    forth = given(seed, real)["x"][..., 0]
    graph = load_onnx(save(tmp_path, half, "DFT", extent, 1, onesided=1, inverse=1))
    spectrum = np.fft.rfft(forth)
    parts = np.stack([spectrum.real, spectrum.imag], -1)
    np.testing.assert_allclose(evaluate(graph, {"x": parts})["y"][..., 0], forth, atol=1e-6)


@pytest.mark.parametrize(("parts", "onesided"), [(1, 1), (1, 0), (2, 0)])
def test_stft(tmp_path: Path, seed: int, parts: int, onesided: int) -> None:
    shape = (2, 50, parts)
    window = np.hanning(16).astype(np.float32)
    assert_agrees(save(tmp_path, shape, "STFT", 7, 16, window=window, onesided=onesided), given(seed, shape))
    assert_agrees(save(tmp_path, shape, "STFT", 5, None, 15, onesided=onesided), given(seed, shape))


@pytest.mark.parametrize(
    "window", [{}, {"strides": [2, 1], "pads": [1, 0, 2, 1]}, {"dilations": [2, 3], "pads": [0, 2, 1, 2]}]
)
def test_col2im(tmp_path: Path, seed: int, window: dict[str, Any]) -> None:
    image, block = [9, 10], [3, 2]
    strides, dilations, pads = (
        window.get(key, [n] * k) for key, n, k in (("strides", 1, 2), ("dilations", 1, 2), ("pads", 0, 4))
    )
    counts = [
        (image[axis] + pads[axis] + pads[axis + 2] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in (0, 1)
    ]
    shape = (2, 3 * 6, counts[0] * counts[1])
    assert_agrees(save(tmp_path, shape, "Col2Im", image, block, **window), given(seed, shape))


@pytest.mark.parametrize(
    ("shape", "op", "stored", "attributes", "message"),
    [
        ((2, 8, 1), "DFT", [None, -1], {}, "the last one, of 1 or 2, is no signal"),
        ((2, 8, 3), "DFT", [], {}, "the last one, of 1 or 2, is no signal"),
        ((2, 8, 1), "DFT", [0], {}, "0 values are no signal"),
        ((2, 8, 2), "DFT", [], {"onesided": 1}, "onesided of a complex signal"),
        ((2, 8, 1), "DFT", [], {"onesided": 1, "inverse": 1}, "no imaginary part"),
        ((2, 8, 1), "STFT", [2, None, 9], {}, "frames of 9 every 2 do not fit a signal of 8"),
        ((2, 8, 1), "STFT", [0, None, 4], {}, "frames of 4 every 0 do not fit"),
        ((2, 12, 9), "Col2Im", [[5, 5], [2, 2]], {}, r"are not \[4, 4\] windows of \[2, 2\]"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, shape: tuple[int, ...], op: str, stored: list[Any], attributes: dict[str, int], message: str
) -> None:
    with pytest.raises(ModelError, match=f"'it'.*{message}"):
        load_onnx(save(tmp_path, shape, op, *stored, **attributes))
