"""Values that exporters compute from shapes and constants are evaluated at import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx

from .onnx_models import assert_agrees, save_model


def int_constant(name: str, *values: int) -> Any:
    tensor = numpy_helper.from_array(np.array(values, np.int64))
    return helper.make_node("Constant", [], [name], value=tensor)


def test_flatten_by_shape_arithmetic(tmp_path: Path) -> None:
    """x.view(x.size(0), -1) as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Constant", [], ["zero"], value_int=0),
        helper.make_node("Gather", ["shape", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {"rest": np.array([-1], np.int64), "axes": np.array([0], np.int64)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": ("N", 3, 4)}, ["y"], constants)
    graph = assert_agrees(path, {"x": np.ones((2, 3, 4), np.float32)}, batch=2)
    assert [node.op for node in graph.nodes] == ["reshape"]
    assert graph.constants == {}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([helper.make_node("Slice", ["shape", "a1", "a3"], ["s"])], (3, 4)),
        ([helper.make_node("Slice", ["shape", "am1", "amin", "a0", "am1"], ["s"])], (5, 4, 3, 2)),
        ([helper.make_node("Shape", ["x"], ["s"], start=-2)], (4, 5)),
        ([helper.make_node("Mul", ["shape", "a3"], ["s"])], (6, 9, 12, 15)),
        ([helper.make_node("Div", ["shape", "a3"], ["s"])], (0, 1, 1, 1)),
        ([helper.make_node("Sub", ["shape", "a1"], ["t"]), helper.make_node("Add", ["t", "t"], ["s"])], (2, 4, 6, 8)),
        ([helper.make_node("Max", ["shape", "a3"], ["s"])], (3, 3, 4, 5)),
        ([helper.make_node("Min", ["a3", "shape"], ["s"])], (2, 3, 3, 3)),
        ([helper.make_node("Pow", ["shape", "a3"], ["s"])], (8, 27, 64, 125)),
        ([helper.make_node("Mul", ["shape", "shape"], ["q"]),
          helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT), helper.make_node("Sqrt", ["f"], ["r"]),
          helper.make_node("Cast", ["r"], ["s"], to=TensorProto.INT64)], (2, 3, 4, 5)),
        ([helper.make_node("Expand", ["a3", "a22"], ["q"]), helper.make_node("Reshape", ["q", "am1"], ["s"])],
         (3, 3, 3, 3)),
        ([helper.make_node("ConstantOfShape", ["a3"], ["s"],
                           value=numpy_helper.from_array(np.array([7], np.int64)))], (7, 7, 7)),
        ([helper.make_node("Cast", ["shape"], ["f"], to=TensorProto.FLOAT),
          helper.make_node("Cast", ["f"], ["s"], to=TensorProto.INT64)], (2, 3, 4, 5)),
        ([helper.make_node("Reshape", ["shape", "a22"], ["q"]), helper.make_node("Transpose", ["q"], ["t"]),
          helper.make_node("Reshape", ["t", "am1"], ["s"])], (2, 4, 3, 5)),
        ([helper.make_node("Unsqueeze", ["shape", "a0"], ["u"]), helper.make_node("Squeeze", ["u", "a0"], ["i"]),
          helper.make_node("Identity", ["i"], ["s"])], (2, 3, 4, 5)),
        ([helper.make_node("Constant", [], ["s"], value_ints=[6, 20])], (6, 20)),
    ],
)  # fmt: skip
def test_integer_arithmetic_equals_onnxruntimes(tmp_path: Path, nodes: list[Any], expected: tuple[int, ...]) -> None:
    """The computed numbers, made visible as the constant that is added to x."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]), int_constant("a0", 0), int_constant("a1", 1),
        int_constant("a3", 3), int_constant("am1", -1), int_constant("amin", -(2**31)),
        int_constant("a22", 2, 2), *nodes,
        helper.make_node("Cast", ["s"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["wide", "numbers"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]  # fmt: skip
    inputs = {"x": (2, 3, 4, 5), "wide": (2, len(expected))}
    path = save_model(tmp_path / "m.onnx", nodes, inputs, ["y", "z"])
    arrays = {name: np.full(shape, 0.5, np.float32) for name, shape in inputs.items()}
    graph = assert_agrees(path, arrays)
    (numbers,) = graph.constants.values()
    assert tuple(numbers.ravel()) == expected


def test_weights_in_constant_nodes(tmp_path: Path) -> None:
    weight = np.arange(72, dtype=np.float32).reshape(2, 4, 3, 3)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
        helper.make_node("Conv", ["x", "w"], ["y"]),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4, 5, 5)}, ["y"])
    graph = assert_agrees(path, {"x": np.ones((1, 4, 5, 5), np.float32)})
    np.testing.assert_array_equal(graph.constants["w"], weight)


def test_too_large_constant_is_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], {"s": np.array([1 << 20, 1 << 20], np.int64)})
    with pytest.raises(ModelError, match=r"bytes of constants that the model computes; at most 1073741824"):
        load_onnx(path)


def test_what_only_folds_is_refused_on_activations(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=7),
        helper.make_node("ConstantOfShape", ["i"], ["y"], name="grow"),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (4,)}, ["y"])
    with pytest.raises(UnsupportedNode, match=r"'grow'.*ConstantOfShape.*must be a constant"):
        load_onnx(path)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Gather", ["a", "far"], ["c"], name="bad"),
        helper.make_node("Div", ["a", "zero"], ["c"], name="bad"),
        helper.make_node("Reshape", ["a", "far"], ["c"], name="bad"),
        helper.make_node("Concat", ["a", "square"], ["c"], axis=0, name="bad"),
        helper.make_node("Expand", ["a", "far"], ["c"], name="bad"),
        helper.make_node("Expand", ["far", "wide"], ["c"], name="bad"),
    ],
)
def test_constants_that_do_not_fit(tmp_path: Path, node: Any) -> None:
    constants = {
        "a": np.ones(3, np.int64), "far": np.array([9], np.int64), "zero": np.zeros(3, np.int64),
        "square": np.ones((2, 2), np.int64), "wide": np.array([1 << 20, 1 << 20]),
    }  # fmt: skip
    relu = helper.make_node("Relu", ["x"], ["y"])
    path = save_model(tmp_path / "m.onnx", [node, relu], {"x": (2, 4)}, ["y"], constants)
    with pytest.raises(ModelError, match="'bad'"):
        load_onnx(path)


def test_weights_that_are_normalised_on_the_way(tmp_path: Path) -> None:
    """Convolutions of timm do so: batch normalisation in training mode, of weights by their own mean and variance."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("BatchNormalization", ["w", "s", "z", "mean", "o"], ["n", "m", "v"], training_mode=1),
        helper.make_node("Reshape", ["n", "shape"], ["k"]),
        helper.make_node("Conv", ["x", "k"], ["y"]),
    ]
    constants = {
        "w": rng.standard_normal((1, 6, 12)), "s": rng.standard_normal(6), "z": np.zeros(6), "o": np.ones(6),
        "mean": np.zeros(6),
    }  # fmt: skip
    stored = {name: array.astype(np.float32) for name, array in constants.items()}
    stored["shape"] = np.array([6, 12, 1, 1], np.int64)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 12, 3, 3)}, ["y"], stored)
    graph = assert_agrees(path, {"x": rng.standard_normal((1, 12, 3, 3)).astype(np.float32)})
    assert [node.op for node in graph.nodes] == ["conv"]


def test_a_constant_infinity_becomes_a_whole_number_without_a_warning(tmp_path: Path) -> None:
    """The masks of transformers are made so; warnings are errors here."""
    nodes = [
        helper.make_node("Cast", ["low"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Less", ["whole", "zero"], ["below"]),
        helper.make_node("Where", ["below", "x", "low"], ["y"]),
    ]
    constants = {"low": np.float32(-np.inf), "zero": np.int64(0)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 3)}, ["y"], constants)
    assert_agrees(path, {"x": np.ones((2, 3), np.float32)})
