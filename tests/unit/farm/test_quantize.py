"""`farm quantize`: a trained model in 8 bits, which onnxruntime runs too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from farm.cli import main
from tests.unit.kernels.front.onnx_models import run_onnxruntime, save_model

TRAINED = 900


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, list[Any], list[Any]]:
    """Examples that the network has not seen, their classes, and the network's weights."""
    from sklearn.datasets import load_digits  # a second: each worker reads this file, one runs it
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    network = MLPClassifier((24,), random_state=0)
    for _ in range(60):
        network.partial_fit(x[:TRAINED] / 16, y[:TRAINED], classes=range(10))
    return x[TRAINED:].astype(np.uint8), y[TRAINED:], network.coefs_, network.intercepts_


def saved(folder: Path, digits: Any, opset: int = 17) -> tuple[Path, list[str]]:
    x, y, weights, biases = digits
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["m"]),
        helper.make_node("Add", ["m", "b1"], ["y"]),
    ]
    constants = {f"w{i}": w.astype(np.float32) for i, w in enumerate(weights)}
    constants |= {f"b{i}": b.astype(np.float32) for i, b in enumerate(biases)}
    path = save_model(folder / "m.onnx", nodes, {"x": ("n", 64)}, ["y"], constants, opset=opset)
    np.save(folder / "x.npy", x)
    (folder / "y.txt").write_text("".join(f"{each}\n" for each in y))
    words = ["quantize", path, "--data", folder / "x.npy", "--scale", "0.0625", "-o", folder / "q.onnx"]
    return path, list(map(str, words))


def test_predictions_are_those_of_onnxruntime(tmp_path: Path, digits: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path, words = saved(tmp_path, digits)
    assert main((*words, "--labels", str(tmp_path / "y.txt"), "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    x, y = digits[0].astype(np.float32) / 16, digits[1]
    single, whole = (run_onnxruntime(model, {"x": x})["y"].argmax(1) for model in (path, tmp_path / "q.onnx"))
    assert (told["layers"], told["examples"]) == (2, len(y))
    assert told["right_before"] == (single == y).sum() > 0.85 * len(y)
    # of the many steps some halves fall the other way, and with them a prediction or two
    assert abs(told["right_after"] - (whole == y).sum()) <= 2
    assert abs(told["agree"] - (single == whole).sum()) <= 2
    assert told["agree"] > 0.97 * len(y)
    share = told["agreement"]
    assert (share["count"], share["of"], share["interval"]["method"]) == (told["agree"], len(y), "exact")
    assert share["interval"]["low"] < told["agree"] / len(y) <= share["interval"]["high"]
    changed = told["became_right"] - told["became_wrong"]
    assert told["right_after"] - told["right_before"] == changed
    assert told["bytes_after"] < 0.6 * told["bytes_before"]


def test_weights_lie_in_8_bits_by_channels(tmp_path: Path, digits: Any) -> None:
    _, words = saved(tmp_path, digits)
    assert main((*words, "--first", "1", "--calibrate", "20")) == 0
    model = onnx.load(tmp_path / "q.onnx")
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, weight in (("w0", digits[2][0]), ("w1", digits[2][1])):
        assert name not in stored
        step = stored[f"{name}.scale"]
        assert step.shape == (weight.shape[1],)
        assert np.abs(stored[f"{name}.int8"] * step - weight).max() <= 0.501 * step.max()


def test_each_model_is_parsed_once(tmp_path: Path, digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is quantized, and the one in 8 bits."""
    _, words = saved(tmp_path, digits)
    parse, count = onnx.load_model_from_string, list[int]()
    monkeypatch.setattr(onnx, "load_model_from_string", lambda content: count.append(len(content)) or parse(content))
    assert main((*words, "--first", "1", "--calibrate", "2")) == 0
    assert len(count) == 2


def test_data_beside_the_model_are_counted_and_the_model_is_not_overwritten(
    tmp_path: Path, digits: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path, words = saved(tmp_path, digits)
    whole = path.stat().st_size
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert main((*words, "--first", "1", "--calibrate", "5", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["bytes_before"] == pytest.approx(whole, rel=0.05)
    before = path.read_bytes()
    assert main((*words[:-1], str(path))) == 1
    assert "is the model itself" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["FLOAT16", "quantized"])
def test_what_has_no_weights_in_fp32_is_told_the_reason(
    tmp_path: Path, digits: Any, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path, words = saved(tmp_path, digits)
    model = onnx.load(path)
    if kind == "FLOAT16":
        for port in (*model.graph.input, *model.graph.output):
            port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
        for tensor in model.graph.initializer:
            half = onnx.numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(onnx.numpy_helper.from_array(half, tensor.name))
        onnx.save(model, path)
    else:
        assert main((*words, "--first", "1", "--calibrate", "5")) == 0
        (tmp_path / "q.onnx").replace(path)
    assert main(words) == 1
    said = {"FLOAT16": "stored as FLOAT16; export the model in fp32", "quantized": "that is quantized already"}
    assert said[kind] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("opset", "more", "said"), [(11, (), "need opset 13"), (17, ("--labels", "few"), "2 labels for")]
)
def test_what_cannot_be_quantized(
    tmp_path: Path, digits: Any, capsys: pytest.CaptureFixture[str], opset: int, more: tuple[str, ...], said: str
) -> None:
    _, words = saved(tmp_path, digits, opset)
    (tmp_path / "few").write_text("1\n2\n")
    if opset < 13:
        (tmp_path / "x.npy").unlink()  # nothing is computed first
    given = tuple(str(tmp_path / word) if word == "few" else word for word in more)
    assert main((*words, *given)) == 1
    assert said in capsys.readouterr().err
    assert not [*tmp_path.glob("*q.onnx*")]
