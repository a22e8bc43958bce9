"""A model's file is read without its large weights, which are as ONNX has them when they are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import ModelError
from kernels.frontend.onnx import import_model, load_onnx, read_model
from kernels.frontend.onnx.reading.large_weights import LARGE
from kernels.reference import evaluate

KINDS = [
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT64,
    TensorProto.INT8, TensorProto.BOOL, TensorProto.INT4, TensorProto.FLOAT6E2M3,
]  # fmt: skip


def drawn(rng: np.random.Generator, name: str, size: int) -> onnx.TensorProto:
    """A tensor of some type, its numbers as raw bytes or in a field of their own."""
    kind = int(rng.choice(KINDS))
    if kind == TensorProto.FLOAT and rng.integers(2):
        return helper.make_tensor(name, kind, (size,), rng.standard_normal(size))
    numbers = rng.integers(0, 2, size).astype(helper.tensor_dtype_to_np_dtype(kind))
    return numpy_helper.from_array(numbers, name)


def test_every_weight_is_as_onnx_has_it(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = [drawn(rng, f"w{i}", int(rng.integers(1, 3 * LARGE))) for i in range(12)]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in "xy"]
    model = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:], weights), ir_version=13
    )
    onnx.save(model, tmp_path / "m.onnx")
    file = read_model(tmp_path / "m.onnx")
    assert [each.name for each in file.proto.graph.initializer] == [each.name for each in weights]
    for tensor, wanted in zip(file.proto.graph.initializer, weights, strict=True):
        found, expected = file.array(tensor), numpy_helper.to_array(wanted)
        assert found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
        if tensor.name in file.places:
            assert tensor.ByteSize() < 100
    assert file.places and file.whole() == model


def test_a_model_may_be_imported_again(tmp_path: Path, seed: int) -> None:
    """It has boxes that are suppressed, whose limit is written into the model, and a large weight."""
    rng = np.random.default_rng(seed)
    most = int(rng.integers(1, 7))
    nodes = [
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "many"], ["chosen"]),
        helper.make_node("Slice", ["chosen", "start", "end"], ["y"]),
        helper.make_node("MatMul", ["x", "w"], ["z"]),
    ]
    constants = {"many": np.array([50]), "start": np.array([0]), "end": np.array([most])}
    weights = [*(numpy_helper.from_array(each, name) for name, each in constants.items())]
    weights.append(numpy_helper.from_array(rng.standard_normal((LARGE, 2), np.float32), "w"))
    shapes = {"boxes": (1, 6, 4), "scores": (1, 1, 6), "x": ("n", LARGE)}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "yz"]
    model = helper.make_model(helper.make_graph(nodes, "g", ports, outputs, weights), ir_version=8)
    model.opset_import[0].version = 17
    onnx.save(model, tmp_path / "m.onnx")
    file = read_model(tmp_path / "m.onnx")
    given = {name: rng.random((1 if name == "x" else shape[0], *shape[1:])) for name, shape in shapes.items()}
    results = [evaluate(import_model(file, batch=1), given) for _ in range(2)] + [evaluate(load_onnx(file.path), given)]
    for name, wanted in results[2].items():
        assert all(np.array_equal(each[name], wanted) for each in results)
    assert import_model(file, batch=3).shapes["z"] == (3, 2)


@pytest.mark.parametrize("change", ["shorter", "gone"])
def test_a_file_that_changes_before_its_weights_are_taken_is_told(tmp_path: Path, change: str) -> None:
    path = tmp_path / "m.onnx"
    weight = numpy_helper.from_array(np.ones((LARGE, 1), np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, LARGE))
    node, y = helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "g", [x], [y], [weight])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    file = read_model(path)
    path.unlink()
    if change == "shorter":
        path.write_bytes(b"short")
    with pytest.raises(ModelError, match=r"m\.onnx: (cannot be read|it was written to)"):
        import_model(file)


def test_a_pipe_is_read_whole(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [x], [helper.make_empty_tensor_value_info("y")]
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(model.SerializeToString())
    assert load_onnx(Path(f"/dev/fd/{reading}")).outputs == ("y",)
    os.close(reading)


MEASURE = """
import re, sys
from pathlib import Path
from kernels.frontend.onnx import load_onnx

def peak_kib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

load_onnx(Path(sys.argv[1]))  # what the first import brings along
before = peak_kib()
load_onnx(Path(sys.argv[2]))
print((peak_kib() - before) << 10)
"""


def test_an_import_takes_little_more_memory_than_its_weights(tmp_path: Path) -> None:
    for name, wide in (("small", 8), ("large", 6 << 10)):
        weights = [numpy_helper.from_array(np.ones((2048, wide), np.float32), f"w{i}") for i in range(2)]
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("MatMul", ["x", "w1"], ["g"])]
        nodes.append(helper.make_node("Add", ["h", "g"], ["y"]))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2048))
        graph = helper.make_graph(nodes, "g", [x], [helper.make_empty_tensor_value_info("y")])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        model.graph.initializer.extend(weights)  # each of the calls above would copy them
        del weights
        onnx.save(model, tmp_path / f"{name}.onnx")
    files = [str(tmp_path / f"{name}.onnx") for name in ("small", "large")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *files], capture_output=True, text=True, check=True, timeout=60
    )
    size = (tmp_path / "large.onnx").stat().st_size
    assert 0.5 * size < int(done.stdout) < 1.5 * size
