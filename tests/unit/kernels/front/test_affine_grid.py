"""AffineGrid, as spatial transformers have it: what onnxruntime computes, also in a batch of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.ir.shapes import Shape

from .onnx_models import assert_agrees, save_model


def save(folder: Path, theta: Shape, size: list[int], ends: int) -> Path:
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], name="it", align_corners=ends)
    return save_model(folder / "m.onnx", [node], {"theta": theta}, ["y"], {"size": np.array(size)}, opset=20)


@pytest.mark.parametrize("ends", [0, 1])
@pytest.mark.parametrize("size", [[1, 2, 5, 6], [3, 1, 4, 3], [1, 2, 3, 4, 5], [2, 2, 2, 5, 3]])
def test_affine_grid(tmp_path: Path, seed: int, size: list[int], ends: int) -> None:
    theta = (size[0], len(size) - 2, len(size) - 1)
    given = np.random.default_rng(seed).standard_normal(theta).astype(np.float32)
    assert_agrees(save(tmp_path, theta, size, ends), {"theta": given})


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'it'.*theta of \(1, 2, 3\) does not fit a size of \[2, 3, 4, 5\]"):
        load_onnx(save(tmp_path, (1, 2, 3), [2, 3, 4, 5], 0))
    with pytest.raises(ModelError, match=r"'it'.*runtimes disagree"):
        load_onnx(save(tmp_path, (1, 3, 4), [1, 2, 1, 4, 5], 1))
