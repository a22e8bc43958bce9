"""Sets of examples: what a file of them gives to a network, and what is wrong with other files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.errors import InputError
from kernels.frontend.examples import Examples
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph


def graph(batch: int = 1) -> Graph:
    return load_workload(network="cifar10_quick", onnx=None, seed=1, batch=batch)


def saved(tmp_path: Path, array: np.ndarray) -> Path:
    np.save(tmp_path / "set.npy", array)
    return tmp_path / "set.npy"


@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float32, np.dtype(">f8")])
def test_examples_by_channel(tmp_path: Path, kind: np.dtype, seed: int) -> None:
    raw = np.random.default_rng(seed).integers(0, 256, (7, 3, 32, 32)).astype(kind)
    examples = Examples(graph(batch=2), saved(tmp_path, raw[:6]), mean=(104.0, 117.0, 123.0), scale=(0.5,))
    assert len(examples) == 6
    ((_, found),) = examples.inferences(range(2, 6)).items()
    assert found.shape == (2, 2, 3, 32, 32) and found.dtype == np.float32
    mean = np.array([104.0, 117.0, 123.0])[:, None, None]
    assert np.allclose(found.reshape(4, 3, 32, 32), (raw[2:6].astype(np.float64) - mean) * 0.5)


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((4, 3, 32, 31), np.float32), "4 x 3 x 32 x 31; .* takes examples x 3 x 32 x 32"),
        (np.zeros((4, 3, 32, 32), np.int64), "int64; a set holds uint8"),
        (np.zeros((0, 3, 32, 32), np.uint8), "0 x 3 x 32 x 32"),
        (np.zeros((5, 3, 32, 32), np.uint8), "5 examples are no multiple of the batch, 2"),
        (np.array([[None]]), "Python objects"),
    ],
)
def test_what_no_set_is(tmp_path: Path, array: np.ndarray, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Examples(graph(batch=2), saved(tmp_path, array))


def test_damaged_files_channels_and_numbers(tmp_path: Path) -> None:
    path = saved(tmp_path, np.ones((2, 3, 32, 32), np.float32))
    with pytest.raises(InputError, match="mean: 2 numbers; give one, or one of each of the 3 channels"):
        Examples(graph(), path, mean=(1.0, 2.0))
    raw = np.ones((2, 3, 32, 32), np.float32)
    raw[1, 0, 0, 0] = np.nan
    with pytest.raises(InputError, match="example 1 holds NaN"):
        Examples(graph(), saved(tmp_path, raw)).inferences(range(2))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="no readable"):
        Examples(graph(), path)
    path.write_bytes(b"not an array")
    with pytest.raises(InputError, match="no readable"):
        Examples(graph(), path)
