"""What of bitwise operators fp32 cannot hold is refused; their results are in the fuzzer (`onnx_draws/`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx

from .onnx_models import assert_agrees, save_model

node = helper.make_node


def bits(folder: Path, op: str, kind: int, constant: Any = None) -> Path:
    nodes = [
        node("Cast", ["x"], ["whole"], to=kind),
        node(op, ["whole"] if constant is None else ["whole", "c"], ["bits"], name="it"),
        node("Cast", ["bits"], ["y"], to=TensorProto.FLOAT),
    ]
    return save_model(
        folder / "m.onnx", nodes, {"x": (5,)}, ["y"], {} if constant is None else {"c": constant}, opset=18
    )


@pytest.mark.parametrize("op", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_the_largest_and_smallest_numbers(tmp_path: Path, op: str) -> None:
    x = np.array([-(1 << 24), -1, 0, 1, (1 << 24) - 1], np.float32)
    assert_agrees(bits(tmp_path, op, TensorProto.INT64, np.array([0x5555, -3, -1, 1, 0xABCDEF])), {"x": x}, tolerance=0)


@pytest.mark.parametrize(
    ("op", "kind", "constant"),
    [("BitwiseAnd", TensorProto.INT64, np.array([1 << 32])), ("BitwiseNot", TensorProto.UINT32, None)],
)
def test_numbers_beyond_fp32_are_refused(tmp_path: Path, op: str, kind: int, constant: Any) -> None:
    with pytest.raises(UnsupportedNode, match=r"'it'.*beyond 2\^24"):
        load_onnx(bits(tmp_path, op, kind, constant))
