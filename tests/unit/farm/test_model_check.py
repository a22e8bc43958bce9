"""`farm networks check`: every obstacle of a model at once, or what each backend makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import helper

from tests.unit.kernels.front.onnx_models import save_model

from .conftest import Run


def test_obstacles_are_told_at_once(farm: Run, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Bernoulli", ["x"], ["a"], name="first"),
        helper.make_node("LRN", ["x"], ["y"], name="second", size=-1),
    ]
    save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4, 8, 8)}, ["y"])
    code, out, _ = farm("networks", "check", "m.onnx", "--json")
    told = json.loads(out)
    assert (code, told["ok"]) == (1, False)
    assert [(each["node"], each["operator"], each["opset"]) for each in told["obstacles"]] == [
        ("first", "Bernoulli", 17), ("second", "LRN", 17),
    ]  # fmt: skip
    code, out, _ = farm("networks", "check", "m.onnx")
    assert code == 1 and "first" in out and "size is -1" in out


def test_a_file_that_is_no_model(farm: Run, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    code, out, _ = farm("networks", "check", "m.onnx")
    assert code == 1 and "no ONNX model" in out


def test_each_backend_says_what_it_would_run(farm: Run, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("Mul", ["a", "b"], ["y"]),
    ]
    save_model(tmp_path / "m.onnx", nodes, {"x": ("n", 4, 8, 8)}, ["y"], {"w": np.ones((8, 4, 1, 1), np.float32)})
    code, out, _ = farm("networks", "check", "m.onnx", "--batch", "2", "--json")
    told = json.loads(out)
    assert (code, told["ok"], told["inputs"]) == (0, True, {"x": [2, 4, 8, 8]})
    assert told["backends"].keys() == {"cpu", "opencl", "vulkan"}
    for answer in told["backends"].values():
        assert answer["refused"] == "" and answer["memory_bytes"] > 0
        assert (answer["kernels"]["map"], sum(kind.startswith("conv") for kind in answer["kernels"])) == (1, 1)
    code, out, _ = farm("networks", "check", "m.onnx")
    assert code == 0 and "1 map" in out
