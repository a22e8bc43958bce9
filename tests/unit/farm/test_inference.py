"""Tensors are written under names that never leave the folder; outputs that look like scores get a top five."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.cli.engine.inference import describe, looks_like_scores, write_tensors


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/abs", "a/b", "a\\b", "..", ".", "", "x" * 500, "index.json", ".hidden", "a\x00b"]
)
def test_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "dump"
    files = write_tensors(folder, {name: np.ones(3)})
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"index.json", files[name]}
    assert (folder / files[name]).parent == folder
    np.testing.assert_array_equal(np.load(folder / files[name]), np.ones(3, np.float32))


def test_ordinary_names_are_kept(tmp_path: Path) -> None:
    files = write_tensors(tmp_path, {"conv1": np.ones(1), "fire2/relu:0": np.ones(1)})
    assert files == {"conv1": "conv1.npy", "fire2/relu:0": "fire2_relu:0.npy"}
    assert json.loads((tmp_path / "index.json").read_text()) == files


@settings(deadline=None, max_examples=30)
@given(names=st.lists(st.text(alphabet="aA/\\_.~2", max_size=6), unique=True, max_size=12))
def test_no_two_tensors_meet(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    folder = tmp_path_factory.mktemp("dump")
    tensors = {name: np.full(1, i) for i, name in enumerate(names)}
    files = write_tensors(folder, tensors)
    assert len({file.lower() for file in files.values()}) == len(names)
    for i, name in enumerate(names):
        assert np.load(folder / files[name])[0] == i


@pytest.mark.parametrize(
    ("shape", "scores"),
    [((1, 1000), True), ((1, 10, 1, 1), True), ((1000,), True), ((1, 3, 8, 8), False), ((1, 4), False)],
)
def test_what_looks_like_scores(shape: tuple[int, ...], scores: bool) -> None:
    assert looks_like_scores(shape) is scores


def test_top_five_are_the_largest_in_order() -> None:
    found = describe(np.linspace(0, 1, 20).reshape(1, 20))
    assert [row["class"] for row in found["top5"]] == [19, 18, 17, 16, 15]
    assert found["finite"]


def test_infinity_and_nan_are_said() -> None:
    found = describe(np.array([[1.0, np.nan] + [0.0] * 20]))
    assert found["finite"] is False
    assert "top5" not in found
    json.dumps(found, allow_nan=False)


def test_an_inference_on_this_host_loads_neither_adb_nor_redis(tmp_path: Path) -> None:
    """Half a second of the processor; and a model that is refused waits for nothing of the workers."""
    (tmp_path / "no.onnx").write_bytes(b"no model")
    program = (
        "import sys; from farm.cli import main; main(['infer', 'no.onnx']); print('workers.infer' in sys.modules); "
        "import workers.infer; print(sorted({'adbutils', 'redis', 'requests', 'sqlalchemy'} & {*sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[:2] == ["False", "[]"]
