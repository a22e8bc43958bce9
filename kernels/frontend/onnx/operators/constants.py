"""Constants: those of nodes, and what follows from shapes alone."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows import counts, shaping
from kernels.frontend.onnx.operator import Operator, Values
from kernels.frontend.onnx.steps import Steps


def size(node: OnnxNode, to: Context) -> None:
    """Shapes are static, so it is a constant."""
    to.constants[node.outputs[0]] = np.asarray(prod(Steps(node, to).shape(node.input(0))), np.int64)


def eye_like(node: OnnxNode, to: Context) -> None:
    """Make a constant that follows from the shape alone."""
    rows, columns = Steps(node, to).shape(node.input(0))
    to.constants[node.outputs[0]] = np.eye(
        rows, columns, node.attributes.get("k", 0), dtype=to.cast_target(node, "dtype")
    )


def constant(node: OnnxNode, to: Context) -> None:
    """A Constant node: the importer has decoded its tensor; the other forms are numbers."""
    for key, dtype in _CONSTANT_FORMS.items():
        if key in node.attributes:
            to.constants[node.outputs[0]] = np.asarray(node.attributes[key], dtype)
            return
    node.reject(f"a constant of form {sorted(node.attributes)}; supported: {', '.join(_CONSTANT_FORMS)}")


_CONSTANT_FORMS: dict[str, type | None] = {
    "value": None,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def shape(node: OnnxNode, to: Context) -> None:
    """Shape of anything: shapes are static, so it is a constant."""
    name = node.input(0)
    to.require(node, name, "input 0")
    extents = to.constants[name].shape if name in to.constants else to.shapes[name]
    window = slice(node.attributes.get("start", 0), node.attributes.get("end"))
    to.constants[node.outputs[0]] = np.asarray(extents[window], np.int64)


def _constant_of_shape(node: OnnxNode, values: Values) -> AnyArray:
    shape = tuple(int(extent) for extent in values[0])
    value = np.asarray(node.attributes.get("value", _ZERO)).reshape(())
    return np.full(shape, value)


_ZERO = np.zeros(1, np.float32)


def _filled_bytes(node: OnnxNode, values: Values) -> int:
    return prod(int(extent) for extent in values[0]) * np.asarray(node.attributes.get("value", _ZERO)).itemsize


def _range(_: OnnxNode, values: Values) -> AnyArray:
    return np.arange(*(each.reshape(-1)[0] for each in values), dtype=values[0].dtype)


def _range_bytes(_: OnnxNode, values: Values) -> int:
    start, limit, step = (np.asarray(value).reshape(-1)[0] for value in values)
    return max(0, ceil((float(limit) - float(start)) / float(step))) * int(values[0].itemsize)


OPERATORS = (
    Operator("Constant", import_=constant, may_be_infinite=True),
    Operator(
        "ConstantOfShape", operands=("k",), sizes=(0,), counts_from=0, rows=shaping.filled, fold=_constant_of_shape,
        fold_bytes=_filled_bytes,
    ),
    Operator("EyeLike", import_=eye_like),
    Operator("Range", sizes=(0, 1, 2), counts_from=0, rows=shaping.counted, fold=_range, fold_bytes=_range_bytes),
    Operator("Shape", import_=shape, follow=counts.shape),
    Operator("Size", import_=size, follow=counts.size),
)  # fmt: skip
