"""Checks the operands of each ONNX operator: their number by its schema, their types by it, their shapes by its entry.

The entry says for each input by its place which shape it has (`kernels/ir/operands.py`), where it is a tensor that the
import knows. Which axis, index or target shape makes sense is for the operator's own function.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import onnx

from kernels.errors import ModelError
from kernels.ir.operands import bind

from .context import Context, OnnxNode
from .operator import Operator

_TYPES = ("to", "output_dtype")
"""Attributes that say a result's type."""


def result_types(node: OnnxNode, to: Context) -> dict[str, np.dtype[Any]]:
    """The type of each output by the schema: one of its own, an input's, or that which the node names."""
    schema = onnx.defs.get_schema(node.op, node.opset)
    inputs = {
        schema.inputs[min(index, len(schema.inputs) - 1)].type_str: to.type_of(name)
        for index, name in reversed([*enumerate(node.inputs)])
        if name and schema.inputs
    }
    found = {}
    for index, name in enumerate(node.outputs):
        declared = schema.outputs[min(index, len(schema.outputs) - 1)]
        if declared.type_str in inputs:
            found[name] = inputs[declared.type_str]
        elif len(declared.types) == 1:
            number = onnx.TensorProto.DataType.Value(next(iter(declared.types))[7:-1].upper())
            found[name] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
        elif node.op == "QuantizeLinear" and not node.attributes.get("output_dtype"):
            found[name] = np.dtype(np.uint8)
        else:
            found[name] = to.cast_target(node, next((key for key in _TYPES if node.attributes.get(key)), "dtype"))
    return found


def check_operands(node: OnnxNode, to: Context, entry: Operator) -> None:
    """Raise ModelError for an operand of a type that the schema refuses, or of a shape that does not fit the others.

    The message says which operand of which node, what was expected and found.
    """
    for key, value in node.attributes.items():
        if isinstance(value, float) and not isfinite(value) and not entry.may_be_infinite:
            node.damaged(f"attribute {key} is {value}; expected a finite number")
    if not onnx.defs.has(node.op, node.opset):
        node.reject(f"it came after opset {node.opset}; export the model with the opset of the operator")
    formal = onnx.defs.get_schema(node.op, node.opset).inputs
    types: dict[str, tuple[str, str]] = {}
    shapes: list[tuple[str, str, tuple[int, ...] | None]] = []
    for index, name in enumerate(node.inputs):
        if not name:
            continue
        to.require(node, name, f"input {index}")
        declared = formal[min(index, len(formal) - 1)]
        what = f"{declared.name} ({name!r})"
        _check_type(node, what, declared, _type(name, to), types)
        shape = to.shape_of(name)
        shapes.append((what, entry.operands[min(index, len(entry.operands) - 1)], shape))
    try:
        bind(shapes)
    except ModelError as e:
        raise ModelError(f"node {node.name!r} ({node.op}): {e}") from e


def _type(name: str, to: Context) -> str:
    """Return the type as schemas write it."""
    number = onnx.helper.np_dtype_to_tensor_dtype(to.type_of(name))
    return f"tensor({onnx.TensorProto.DataType.Name(number).lower()})"


def _check_type(
    node: OnnxNode,
    what: str,
    declared: onnx.defs.OpSchema.FormalParameter,
    found: str,
    types: dict[str, tuple[str, str]],
) -> None:
    """`types` has the type of each of the schema's type variables so far, and whose it was."""
    first, wanted = types.setdefault(declared.type_str, (what, found))
    if found != wanted and declared.is_homogeneous:
        node.damaged(f"{what} is {found}; expected {wanted}, as {first} is")
    if found not in declared.types:
        expected = ", ".join(sorted(declared.types))
        node.damaged(f"{what} is {found}; expected {expected}")
