"""An experiment's file made small: one virtual phone of those that fit, few samples, the first value of each axis; with
the same conditions and quantities."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from onnx import TensorProto, helper, save

MOST = {"blocks": 1, "warmup": 0, "samples": 1, "frames": 4}
SHORT = {"load": "1 s", "idle": "1 s"}
EPOCHS = {"epochs": 6, "pretraining": 1}
"""The length of a training: every phase is gone through."""
SMALLER = {"pynet_conv_0": "pynet_conv_11", "pynet_level_3": "squeezenet_v1_1", "caffenet": "cifar10_quick"}
"""Networks that take minutes on a workstation's cores, and a small one of the same kind."""
WIDEST = 2048
"""The value at which a search for a limit ends."""
WHOLE = ("backend",)
"""Axes that keep all their values: each is another driver and another half of the engine."""


def small(path: Path, folder: Path) -> Path:
    """A small copy of an experiment's file in a folder, with a model and a set where the file names some."""
    asked = yaml.safe_load(path.read_text())
    asked["workload"] = {name: _smaller(value) for name, value in asked["workload"].items()}
    asked["matrix"] = {axis: _first(axis, values) for axis, values in asked["matrix"].items()}
    devices = asked["devices"]
    wheres = [devices.get("where", ""), 'source == "virtual"']
    devices["where"] = " and ".join(f"({each})" for each in wheres if each and "profile ==" not in each)
    if devices.get("count") == "all":
        devices["count"] = 1
    sampling = asked["sampling"]
    sampling |= {name: min(sampling[name], most) for name, most in MOST.items() if name in sampling}
    sampling |= {name: short for name, short in SHORT.items() if name in sampling}
    _make_files(asked["workload"], folder)
    if training := asked["workload"].get("training"):
        training |= EPOCHS
    if search := asked.get("strategy", {}).get("limit_search"):
        search["most"] = WIDEST
    if choices := asked["workload"].get("choices"):
        shutil.copy(path.with_name(choices), folder)
    if published := asked.get("published"):
        published["study"] = str(path.parent / published["study"])
    copy = folder / path.name
    copy.write_text(yaml.safe_dump(asked, sort_keys=False))
    return copy


def _first(axis: str, values: Any) -> Any:
    kept = values if axis in WHOLE else values[:1] if isinstance(values, list) else values
    return [_smaller(value) for value in kept] if isinstance(kept, list) else kept


def _smaller(value: Any) -> Any:
    return SMALLER.get(value, value) if isinstance(value, str) else value


def _make_files(workload: dict[str, Any], folder: Path) -> None:
    """The model, input, set and labels that a workload names, for images of three channels."""
    dataset = workload.get("dataset", {})
    if "onnx" in workload:
        _model(folder / workload["onnx"])
    if "input" in workload:
        np.save(folder / workload["input"], np.ones((1, 3, 16, 16), dtype=np.float32))
    if dataset:
        np.save(folder / dataset["inputs"], np.arange(3 * 3 * 16 * 16, dtype=np.uint8).reshape(3, 3, 16, 16))
        (folder / dataset["labels"]).write_text("0\n1\n2\n")


def _model(path: Path) -> None:
    """A convolution, ReLU and mean over positions: ten scores of an image of 3 x 16 x 16."""
    weights = np.random.default_rng(1).normal(size=(10, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["p"]),
            helper.make_node("Flatten", ["p"], ["y"]),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
