"""TopK, and outputs of which only later ones are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.compile import compile_graph
from kernels.errors import OptionError, UnsupportedNode
from kernels.frontend.onnx import load_onnx, steps
from kernels.options import Limits, Options
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model


def top_k(folder: Path, shape: tuple[int, ...], k: int, **attributes: int) -> Path:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["values", "found"], **attributes),
        helper.make_node("Cast", ["found"], ["places"], to=TensorProto.FLOAT),
    ]
    return save_model(folder / "m.onnx", nodes, {"x": shape}, ["values", "places"], {"k": np.array([k])})


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (7, 1), (37, 5), (37, 16), (64, 64), (100, 33)])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_best_come_first(tmp_path: Path, seed: int, n: int, k: int, largest: int) -> None:
    """Equal numbers and infinities among them."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((2, n, 3)) * 3).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = -np.inf if largest else np.inf
    path = top_k(tmp_path, x.shape, k, axis=1, largest=largest)
    ours, theirs = evaluate(load_onnx(path), {"x": x}), run_onnxruntime(path, {"x": x})
    assert all(np.array_equal(ours[name], theirs[name]) for name in ("values", "places"))


def test_places_that_fp32_cannot_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_PLACES", 8)
    with pytest.raises(UnsupportedNode, match="places of 9 elements are computed; at most 8"):
        load_onnx(top_k(tmp_path, (1, 9), 2))


def test_places_that_halves_cannot_hold_are_refused(tmp_path: Path) -> None:
    graph = load_onnx(top_k(tmp_path, (1, 2049), 2))
    with pytest.raises(OptionError, match="fp16 holds whole numbers up to 2048; use fp32 or relaxed"):
        compile_graph(graph, Options("opencl", precision="fp16"), Limits())
    compile_graph(load_onnx(top_k(tmp_path, (1, 2048), 2)), Options("opencl", precision="fp16"), Limits())


def test_a_last_output_is_itself_where_one_before_it_is_not_read(tmp_path: Path, seed: int) -> None:
    """The cells of an LSTM, of which the last states are not read."""
    rng = np.random.default_rng(seed)
    shapes = {"w": (1, 16, 3), "r": (1, 16, 4)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["every", "state", "cell"], hidden_size=4),
        helper.make_node("Neg", ["cell"], ["y"]),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (5, 2, 3)}, ["y"], weights)
    assert_agrees(path, {"x": rng.standard_normal((5, 2, 3)).astype(np.float32)})


@pytest.mark.parametrize("batch", [0, 1])
def test_rows_are_reversed_up_to_a_computed_length(tmp_path: Path, seed: int, batch: int) -> None:
    """None, some and all of their steps."""
    nodes = [
        helper.make_node("Cast", ["lengths"], ["n"], to=TensorProto.INT64),
        helper.make_node("ReverseSequence", ["x", "n"], ["y"], batch_axis=batch, time_axis=1 - batch),
    ]
    x = np.random.default_rng(seed).standard_normal((4, 5, 3) if batch == 0 else (5, 4, 3)).astype(np.float32)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": x.shape, "lengths": (4,)}, ["y"])
    assert_agrees(path, {"x": x, "lengths": np.array([0, 1, 3, 5], np.float32)})
