"""Operators of whole numbers: cut off after a division, and within the range of their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx

from .onnx_models import assert_agrees, save_model

X = np.array([7, -7, 9, 80], np.float32)
BYTES = np.array([9, 5, 200, 255], np.float32)


def typed(folder: Path, kind: int, op: str, inputs: list[str], constants: dict[str, Any], **attributes: Any) -> Path:
    """y = op(x in this type, constants)."""
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=kind),
        helper.make_node(op, inputs, ["z"], **attributes),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    return save_model(folder / "m.onnx", nodes, {"x": (4,)}, ["y"], constants)


@pytest.mark.parametrize("divisor", [np.int64(2), np.array([-3], np.int64), np.array([2, 3, 4, 7])])
def test_division_by_a_constant_is_cut_off(tmp_path: Path, divisor: Any) -> None:
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Div", ["w", "c"], {"c": divisor}), {"x": X})


@pytest.mark.parametrize("numbers", [[1, 2, 2, 2], [-1, -2, -2, -2], [3, 3, 3, 3]])
def test_the_mean_of_whole_numbers_is_cut_off(tmp_path: Path, numbers: list[int]) -> None:
    path = typed(tmp_path, TensorProto.INT64, "ReduceMean", ["w"], {})
    assert_agrees(path, {"x": np.array(numbers, np.float32)})


@pytest.mark.parametrize(("op", "inputs", "kind"), [
    ("Sub", ["w", "c"], np.uint8), ("Sub", ["c", "w"], np.uint8), ("Add", ["w", "c"], np.uint8),
    ("Add", ["w", "w"], np.uint8), ("Mul", ["w", "c"], np.uint8), ("Sub", ["w", "c"], np.uint32),
])  # fmt: skip
def test_bytes_start_again_at_the_end_of_their_range(tmp_path: Path, op: str, inputs: list[str], kind: Any) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    assert_agrees(typed(tmp_path, number, op, inputs, {"c": np.array([7, 3, 99, 2], kind)}), {"x": BYTES})


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8, TensorProto.INT16, TensorProto.UINT16])
def test_casts_to_smaller_types_start_again(tmp_path: Path, kind: int) -> None:
    x = {"x": np.array([300, -1, 40000, -70000], np.float32)}
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Cast", ["w"], {}, to=kind), x)


@pytest.mark.parametrize("exponent", [np.float32(2), np.int64(3)])
def test_powers_of_whole_numbers(tmp_path: Path, exponent: Any) -> None:
    assert_agrees(typed(tmp_path, TensorProto.INT64, "Pow", ["w", "c"], {"c": exponent}), {"x": X})


def test_a_computed_power_is_cut_off(tmp_path: Path) -> None:
    path = typed(tmp_path, TensorProto.INT64, "Pow", ["w", "x"], {})
    assert_agrees(path, {"x": np.array([-1, 2, 3, 5], np.float32)})


@pytest.mark.parametrize(("op", "inputs"), [("Pow", ["w", "c"]), ("ReduceL2", ["w"]), ("ReduceLogSumExp", ["w"])])
def test_what_would_have_to_be_cut_off_exactly_is_refused(tmp_path: Path, op: str, inputs: list[str]) -> None:
    path = typed(tmp_path, TensorProto.INT64, op, inputs, {"c": np.float32(0.5)})
    with pytest.raises(UnsupportedNode, match=r"cast (it|them) to FLOAT"):
        load_onnx(path)
