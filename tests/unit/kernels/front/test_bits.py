"""What of bitwise operators fp32 cannot hold is refused; their results are in the fuzzer (`onnx_draws/`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.errors import UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.ir.expressions import BITS
from kernels.ir.graph import Graph, Node
from kernels.ir.types import of_numpy
from kernels.passes.types import in_single
from kernels.reference import evaluate

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
    path = bits(tmp_path, op, TensorProto.INT64, np.array([0x5555, -3, -1, 1, 0xABCDEF]))
    assert_agrees(path, {"x": x}, tolerance=0)
    graph = load_onnx(path)
    np.testing.assert_array_equal(evaluate(in_single(graph), {"x": x})["y"], evaluate(graph, {"x": x})["y"])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32"])
def test_functions_of_bits_in_fp32_are_those_of_whole_numbers(kind: str, seed: int) -> None:
    """Numbers that fp32 holds, of which one is stored, given, or a number in the expression."""
    draw, dtype = np.random.default_rng(seed), np.dtype(kind)
    most = min(np.iinfo(dtype).max, (1 << 24) - 1)
    for function in BITS:
        shifts = function.startswith("shift")
        least = 0 if shifts else max(np.iinfo(dtype).min, -most)
        x = draw.integers(least, most >> 4 if shifts else most, 7).astype(dtype)
        other = draw.integers(least, 4 if shifts else most, 7).astype(dtype)
        for second in ("b", float(other[0])):
            expression = (function, "a") if function == "bit_not" else (function, "a", second)
            inputs = ("x", "y") if "b" in expression else ("x",)
            types = dict.fromkeys((*inputs, "z"), of_numpy(dtype))
            nodes = [Node("it", "map", inputs, ("z",), {"expression": expression})]
            graph = Graph("bits", inputs, ("z",), nodes, dict.fromkeys((*inputs, "z"), (7,)), {}, types=types)
            given = dict(zip(inputs, (x, other), strict=False))
            wanted = evaluate(graph, given)["z"]
            single = {name: array.astype(np.float32) for name, array in given.items()}
            np.testing.assert_array_equal(evaluate(in_single(graph), single)["z"], wanted, str(expression))


@pytest.mark.parametrize(
    ("op", "kind", "constant"),
    [("BitwiseAnd", TensorProto.INT64, np.array([1 << 32])), ("BitwiseNot", TensorProto.UINT32, None)],
)
def test_numbers_beyond_fp32_are_refused(tmp_path: Path, op: str, kind: int, constant: Any) -> None:
    graph = load_onnx(bits(tmp_path, op, kind, constant))
    with pytest.raises(UnsupportedNode, match=r"^it: .*beyond 2\^24"):
        in_single(graph)
