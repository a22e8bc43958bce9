"""Sequences of tensors are followed while a model is read: what is left computes what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SHAPES = {"x": X.shape}
node = helper.make_node


def numbers(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values if len(values) > 1 else values[0], np.int64)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("new_axis", [0, 1])
def test_split_by_ones_and_joined_in_another_order(tmp_path: Path, opset: int, keep: int, new_axis: int) -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=-1, keepdims=keep),
        node("SequenceAt", ["parts", "last"], ["end"]),
        node("SequenceErase", ["parts"], ["fewer"]),
        node("SequenceErase", ["fewer", "first"], ["fewest"]),
        node("SequenceInsert", ["fewest", "end", "first"], ["turned"]),
        node("SequenceInsert", ["turned", "end", "last"], ["more"]),
        node("SequenceInsert", ["more", "end"], ["most"]),
        node("ConcatFromSequence", ["most"], ["y"], axis=1, new_axis=new_axis),
    ]
    path = save_model(
        tmp_path / "m.onnx", nodes, SHAPES, ["y"], {"last": numbers(-1), "first": numbers(0)}, opset=opset
    )
    assert_agrees(path, {"x": X})


@pytest.mark.parametrize("sizes", [numbers(1, 3), numbers(3), numbers(4), numbers(2, 2, 0)])
def test_split_by_sizes(tmp_path: Path, sizes: Any) -> None:
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["parts"], axis=2),
        node("SequenceLength", ["parts"], ["count"]),
        node("SequenceAt", ["parts", "first"], ["one"]),
        node("Cast", ["count"], ["number"], to=TensorProto.FLOAT),
        node("Mul", ["one", "number"], ["y"]),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], {"sizes": sizes, "first": numbers(0)})
    assert_agrees(path, {"x": X})


def test_a_loop_collects_what_it_makes(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            node("Gather", ["x", "turn"], ["row"], axis=1),
            node("SequenceInsert", ["given", "row"], ["longer"]),
            node("Identity", ["goes"], ["goes_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, ()),
            helper.make_tensor_value_info("goes", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("given", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, ()),
            helper.make_tensor_sequence_value_info("longer", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        node("SequenceEmpty", [], ["none"], dtype=TensorProto.FLOAT),
        node("Loop", ["turns", "", "none"], ["rows"], body=body),
        node("ConcatFromSequence", ["rows"], ["y"], axis=0),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], {"turns": numbers(3)})
    assert_agrees(path, {"x": X})


def test_constants_stay_constants(tmp_path: Path) -> None:
    nodes = [
        node("SplitToSequence", ["c"], ["parts"], keepdims=0),
        node("SequenceConstruct", ["one", "two"], ["own"]),
        node("SequenceAt", ["parts", "two"], ["third"]),
        node("SequenceAt", ["own", "one"], ["again"]),
        node("Reshape", ["x", "third"], ["flat"]),
        node("Gather", ["flat", "again"], ["y"], axis=0),
    ]
    constants = {"c": np.array([[1, 1], [3, 8], [-1, 6]], np.int64), "one": numbers(1), "two": numbers(2)}
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], constants)
    assert_agrees(path, {"x": X})


def test_a_model_gives_each_tensor_of_a_sequence(tmp_path: Path) -> None:
    """A network with a head for each task gives their scores as one sequence."""
    nodes = [
        node("Relu", ["x"], ["r"]), node("SequenceConstruct", ["r", "c", "x"], ["own"]), node("Neg", ["x"], ["z"]),
    ]  # fmt: skip
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["z"], {"c": X + 1})
    model = onnx.load(path)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    model.graph.output.append(helper.make_value_info("own", kind))
    onnx.save(model, path)
    wanted, found = run_onnxruntime(path, {"x": X}), evaluate(load_onnx(path), {"x": X})
    assert list(found) == ["z", "own.0", "own.1", "own.2"]
    for index, part in enumerate(wanted["own"]):
        np.testing.assert_array_equal(found[f"own.{index}"], part)


@pytest.mark.parametrize(
    ("nodes", "output", "kind", "words"),
    [
        ([node("SequenceEmpty", [], ["none"])], "none", ModelError, "is a sequence of no tensors"),
        ([node("Relu", ["parts"], ["y"])], "y", ModelError, "is a sequence of tensors"),
        ([node("SequenceAt", ["parts", "far"], ["y"])], "y", ModelError, "place 3 is outside of 3 tensors"),
        ([node("SequenceLength", ["x"], ["y"])], "y", ModelError, "is no sequence"),
        ([node("Cast", ["x"], ["i"], to=TensorProto.INT64), node("Squeeze", ["i"], ["s"]),
          node("SequenceAt", ["parts", "s"], ["y"])], "y", UnsupportedNode, "must be a constant"),
    ],
)  # fmt: skip
def test_what_is_refused(
    tmp_path: Path, nodes: list[onnx.NodeProto], output: str, kind: type[Exception], words: str
) -> None:
    nodes = [node("SplitToSequence", ["x"], ["parts"], axis=0), *nodes]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (3, 1)}, [output], {"far": numbers(3)})
    with pytest.raises(kind, match=words):
        load_onnx(path)


def test_optionals_are_followed(tmp_path: Path) -> None:
    """One that is there, one that is not, and which branch is taken by it."""
    of_numbers = helper.make_tensor_type_proto(TensorProto.FLOAT, X.shape)
    double = helper.make_graph(
        [node("OptionalGetElement", ["some"], ["e"]), node("Add", ["e", "e"], ["d"])], "then", [],
        [helper.make_tensor_value_info("d", TensorProto.FLOAT, X.shape)],
    )  # fmt: skip
    same = helper.make_graph(
        [node("Identity", ["x"], ["s"])], "else", [], [helper.make_tensor_value_info("s", TensorProto.FLOAT, X.shape)]
    )
    nodes = [
        node("Optional", ["x"], ["some"]),
        node("Optional", [], ["none"], type=of_numbers),
        node("OptionalHasElement", ["some"], ["yes"]),
        node("OptionalHasElement", ["none"], ["no"]),
        node("If", ["yes"], ["a"], then_branch=double, else_branch=same),
        node("If", ["no"], ["b"], then_branch=double, else_branch=same),
        node("Sub", ["a", "b"], ["y"]),
    ]
    assert_agrees(save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], opset=18), {"x": X})
