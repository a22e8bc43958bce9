"""Casts: every number of the graph has a type that fp32 or whole numbers hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode, may_wrap
from kernels.frontend.onnx.counted_rows import counts
from kernels.frontend.onnx.counted_rows.bounds import bounds_of
from kernels.frontend.onnx.counted_rows.rules import elementwise
from kernels.frontend.onnx.operator import Operator, Values
from kernels.frontend.onnx.operators.arithmetic import wrapped
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c


def cast(node: OnnxNode, to: Context) -> None:
    """Cut floats off; they start again past the end of 8 and 16 bits (so do onnxruntime's up to 2^31). Conditions
    are 0 and 1, halves are rounded (what is made of them is not, as there)."""
    s = Steps(node, to)
    wanted, given, constant = to.cast_target(node), to.type_of(node.input(0)), to.constants.get(node.input(0))
    if constant is not None and node.input(1):  # beside an activation whose type it takes
        with np.errstate(invalid="ignore", over="ignore"):
            to.constants[node.outputs[0]] = constant.astype(wanted)
    elif wanted == np.bool_:
        s.end(s.map(c.truth("a"), s.operand(0)))
    elif wanted.kind not in "iuf" and wanted.name not in HALVES:
        node.reject(
            f"numbers of type {wanted.name} are not supported: cast to a wider type, and export the model again"
        )
    elif wanted.name in HALVES and not _holds(wanted, given):
        s.end(s.map((wanted.name, "a"), s.operand(0)))
    elif np.issubdtype(wanted, np.integer) and not (np.issubdtype(given, np.integer) or given == np.bool_):
        whole = c.trunc("a")
        s.end(s.map(whole if _within(to, node.input(0), wanted) else wrapped(whole, wanted), s.operand(0)))
    elif may_wrap(wanted) and not np.can_cast(given, wanted):
        s.end(s.map(wrapped("a", wanted), s.operand(0)))
    else:
        s.end(s.operand(0))


def _within(to: Context, name: str, kind: np.dtype[Any]) -> bool:
    """Return whether a type holds all that a tensor may hold, cut off."""
    limits, (low, high) = np.iinfo(kind), bounds_of(to, name)
    return limits.min - 1 < low and high < limits.max + 1


HALVES = ("float16", "bfloat16")
"""Types to which a cast rounds, and the functions that do."""


def _holds(kind: np.dtype[Any], given: np.dtype[Any]) -> bool:
    """Return whether halves of one kind hold every number of another type."""
    return kind == given or given.kind == "b" or (given.kind in "iu" and given.itemsize == 1)


def _folded(node: OnnxNode, values: Values) -> AnyArray:
    with np.errstate(invalid="ignore", over="ignore"):  # of infinity a whole number is made, as onnxruntime does
        out: AnyArray = values[0].astype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    return out


def _bytes(node: OnnxNode, values: Values) -> int:
    return int(values[0].size * onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]).itemsize)


OPERATORS = (
    Operator("Cast", import_=cast, rows=elementwise, follow=counts.by(counts.cast), fold=_folded, fold_bytes=_bytes),
    Operator("CastLike", import_=cast, rows=elementwise),
)
