"""Numbers put for others: what is missing, what is a category, what lies above a threshold."""

from __future__ import annotations

import math

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.general.steps import MAX_PLACES, Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

_TEXT = "text is not supported: encode it before the model"


def binarizer(node: OnnxNode, to: Context) -> None:
    """1 above the threshold, else 0."""
    s = Steps(node, to)
    threshold = float(s.attribute("threshold", 0.0))
    s.end(s.map(("select", ("less", threshold, "a"), 1.0, 0.0), s.operand(0)))


def imputer(node: OnnxNode, to: Context) -> None:
    """One value, often NaN, is replaced in each column by that column's number."""
    s = Steps(node, to)
    kind = "int64" if "imputed_value_int64s" in node.attributes else "float"
    put, replaced = _numbers(s, f"imputed_value_{kind}s"), float(s.attribute(f"replaced_value_{kind}", 0.0))
    x = s.operand(0)
    if put.size not in (1, s.shape(x)[-1]):
        raise ModelError(f"node {node.name!r} ({node.op}): {put.size} numbers for {s.shape(x)[-1]} columns")
    found: Expression = ("equal", "a", replaced)
    if not math.isfinite(replaced):
        found = c.is_nan("a") if math.isnan(replaced) else c.is_infinite("a", replaced < 0, replaced > 0)
    s.end(s.map(("select", found, "b", "a"), x, put))


def one_hot_encoder(node: OnnxNode, to: Context) -> None:
    """A further axis with 1 at the place of the category; nothing but zeros for one that is not known."""
    s = Steps(node, to)
    known, x = _numbers(s, "cats_int64s"), s.operand(0)
    s.check_size((*s.shape(x), known.size))
    given: Expression = "a" if to.type_of(x).kind in "iub" else c.trunc("a")
    s.end(s.map(("select", ("equal", given, "b"), 1.0, 0.0), s.reshape(x, (*s.shape(x), 1)), known))


def label_encoder(node: OnnxNode, to: Context) -> None:
    """The value of each key; a default where there is none."""
    s = Steps(node, to)
    kind = "int64" if "values_int64s" in node.attributes else "float"
    values = _numbers(s, f"values_{kind}s")
    keys = _numbers(s, "keys_int64s" if "keys_int64s" in node.attributes else "keys_floats")
    if keys.size != values.size:
        raise ModelError(f"node {node.name!r} ({node.op}): {keys.size} keys and {values.size} values")
    if np.isnan(keys).any() or np.unique(keys).size < keys.size:
        node.reject("a key is NaN, or is there twice; replace such numbers before the model (Imputer)")
    default = float(s.attribute(f"default_{kind}", -1.0 if kind == "int64" else 0.0))
    x = s.operand(0)
    s.check_size((*s.shape(x), keys.size))
    wide, axis = s.reshape(x, (*s.shape(x), 1)), [len(s.shape(x))]
    found = s.reduce(s.map(("select", ("equal", "a", "b"), "c", 0.0), wide, keys, values), axis, "sum", keep=False)
    if default:
        known = s.reduce(s.map(("equal", "a", "b"), wide, keys), axis, "max", keep=False)
        found = s.map(("select", "b", "a", default), found, known)
    s.end(found)
    if kind == "int64":
        to.types[node.outputs[0]] = np.dtype(np.int64)


def _numbers(s: Steps, name: str) -> AnyArray:
    """Those of an attribute. Raises UnsupportedNode where it is absent: the node has text instead."""
    if name not in s.node.attributes:
        s.node.reject(f"{name} is absent: {_TEXT}")
    found = np.asarray(s.node.attributes[name], np.float64)
    if name.endswith("int64s") and np.abs(found).max(initial=0) > MAX_PLACES:
        s.node.reject(f"{name} has whole numbers beyond 2^24, which fp32 does not hold: number them anew before")
    return found
