"""Nodes whose inputs are all constants, as exporters emit them to compute shapes: evaluated at import."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from kernels.errors import ModelError

from .context import AnyArray, Context, OnnxNode
from .layout import target_shape
from .reading import native
from .scales import dequantized


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


def fold(node: OnnxNode, to: Context) -> None:
    """Evaluate a node of `FOLDS` whose inputs are all constants."""
    values = [to.constants[name] if name else None for name in node.inputs]
    try:
        to.reserve(node, _result_bytes(node, values))
        result = np.asarray(FOLDS[node.op](node, values))
    except ModelError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError) as e:
        raise ModelError(f"node {node.name!r} ({node.op}): its constant inputs do not fit: {e}") from e
    to.constants[node.outputs[0]] = result


Values = list[Any]
_VIEWS = ("Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def _result_bytes(node: OnnxNode, values: Values) -> int:
    """Memory that a result takes, before it is computed."""
    if node.op in _VIEWS:
        return 0
    if node.op == "DequantizeLinear":
        return int(values[0].size) * _ZERO.itemsize
    if node.op == "ConstantOfShape":
        return prod(int(extent) for extent in values[0]) * np.asarray(node.attributes.get("value", _ZERO)).itemsize
    if node.op == "Concat":
        return sum(value.nbytes for value in values)
    data = values[0]
    if node.op == "NonZero":
        return 8 * int(np.count_nonzero(data)) * int(data.ndim)
    if node.op == "Range":
        start, limit, step = (np.asarray(value).reshape(-1)[0] for value in values)
        return max(0, ceil((float(limit) - float(start)) / float(step))) * int(data.itemsize)
    if node.op == "Gather":
        axis = node.axis(node.attributes.get("axis", 0), data.ndim)
        return int(data.nbytes // max(1, data.shape[axis]) * values[1].size)
    if node.op == "Cast":
        return int(data.size * onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]).itemsize)
    shapes = [tuple(values[1])] if node.op == "Expand" else [value.shape for value in values[1:]]
    return prod(map(int, np.broadcast_shapes(data.shape, *shapes))) * int(data.itemsize)


_ZERO = np.zeros(1, np.float32)


def _concat(node: OnnxNode, values: Values) -> AnyArray:
    return np.concatenate(values, axis=node.attributes["axis"])


def _gather(node: OnnxNode, values: Values) -> AnyArray:
    return np.asarray(np.take(values[0], values[1], axis=node.attributes.get("axis", 0)))


def _axes(node: OnnxNode, values: Values) -> tuple[int, ...] | None:
    stored = node.attributes.get("axes", values[1] if len(values) > 1 else None)
    return None if stored is None else tuple(int(axis) for axis in np.reshape(stored, -1))


def _squeeze(node: OnnxNode, values: Values) -> AnyArray:
    return np.asarray(np.squeeze(values[0], axis=_axes(node, values)))


def _unsqueeze(node: OnnxNode, values: Values) -> AnyArray:
    return np.expand_dims(values[0], _axes(node, values) or ())


def _slice(node: OnnxNode, values: Values) -> AnyArray:
    """Slice with attributes (opset < 10) or inputs."""
    data: AnyArray = values[0]
    names = ("starts", "ends", "axes", "steps")
    given = {n: values[i] for i, n in enumerate(names, 1) if i < len(values) and values[i] is not None}
    parts = {n: np.reshape(v, -1) for n, v in {**node.attributes, **given}.items() if n in names}
    count = len(parts["starts"])
    axes, steps = parts.get("axes", np.arange(count)), parts.get("steps", np.ones(count, int))
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, parts["starts"], parts["ends"], steps, strict=True):
        whole_to_front = step < 0 and end < -data.shape[axis]
        index[axis] = slice(int(start), None if whole_to_front else int(end), int(step))
    return np.asarray(data[tuple(index)])


def _cast(node: OnnxNode, values: Values) -> AnyArray:
    with np.errstate(invalid="ignore", over="ignore"):  # of infinity a whole number is made, as onnxruntime does
        out: AnyArray = values[0].astype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    return out


def _reshape(node: OnnxNode, values: Values) -> AnyArray:
    data: AnyArray = values[0]
    wanted = [int(extent) for extent in values[1]]
    return data.reshape(target_shape(data.shape, wanted, allow_zero=bool(node.attributes.get("allowzero", 0))))


def _transpose(node: OnnxNode, values: Values) -> AnyArray:
    return np.transpose(values[0], node.attributes.get("perm"))


def _constant_of_shape(node: OnnxNode, values: Values) -> AnyArray:
    shape = tuple(int(extent) for extent in values[0])
    value = np.asarray(node.attributes.get("value", _ZERO)).reshape(())
    return np.full(shape, value)


def _expand(_: OnnxNode, values: Values) -> AnyArray:
    return np.broadcast_to(values[0], np.broadcast_shapes(values[0].shape, tuple(int(extent) for extent in values[1])))


def _div(_: OnnxNode, values: Values) -> AnyArray:
    """Integers are divided towards zero."""
    a, b = values
    if not np.all(b):
        raise ValueError("division by zero")
    if np.issubdtype(np.asarray(a).dtype, np.integer):
        return np.asarray(np.trunc(a / b)).astype(a.dtype)
    return np.asarray(a / b)


FOLDS: dict[str, Callable[[OnnxNode, Values], AnyArray]] = {
    "Add": lambda _, v: np.asarray(v[0] + v[1]),
    "Cast": _cast,
    "Concat": _concat,
    "Expand": _expand,
    "ConstantOfShape": _constant_of_shape,
    "DequantizeLinear": lambda node, v: dequantized(node, *v),
    "Div": _div,
    "Gather": _gather,
    "Identity": lambda _, v: np.asarray(v[0]),
    "Max": lambda _, v: np.asarray(np.maximum.reduce(np.broadcast_arrays(*v))),
    "Min": lambda _, v: np.asarray(np.minimum.reduce(np.broadcast_arrays(*v))),
    "Mul": lambda _, v: np.asarray(v[0] * v[1]),
    "NonZero": lambda _, v: np.asarray(np.nonzero(v[0]), np.int64),
    "Pow": lambda _, v: np.asarray(v[0] ** v[1]).astype(v[0].dtype),
    "Range": lambda _, v: np.arange(*(each.reshape(-1)[0] for each in v), dtype=v[0].dtype),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sqrt": lambda _, v: np.asarray(np.sqrt(v[0])),
    "Sub": lambda _, v: np.asarray(v[0] - v[1]),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""Operators that are evaluated where every input is a constant."""
OF_NO_OPERANDS = frozenset({"Constant"})
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_OF_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
_TIMES_LARGER = {"Unique": 4}
"""Operators that give no more elements than so often as many as they are given, of 8 bytes at most."""


def can_compute(node: OnnxNode) -> bool:
    """Return whether ONNX's reference implementation can compute the node."""
    return node.op not in RANDOM | _OF_GRAPHS


def compute(node: OnnxNode, to: Context) -> None:
    """Evaluate any other node whose inputs are all constants, by ONNX's reference implementation.

    Its result is no larger than shape inference says, which is asked first.
    """
    names = [name for name in node.inputs if name]
    outputs = list(node.outputs)
    if node.op == "BatchNormalization" and node.attributes.get("training_mode"):  # of weights: three outputs
        outputs += [f"{outputs[0]}.mean", f"{outputs[0]}.variance"]
    proto = onnx.helper.make_node(node.op, list(node.inputs), outputs, **node.attributes)
    wanted = [name for name in node.outputs if name]
    graph = onnx.helper.make_graph(
        [proto],
        "constant",
        [],
        [onnx.helper.make_empty_tensor_value_info(name) for name in wanted],
        [onnx.numpy_helper.from_array(to.constants[name], name) for name in dict.fromkeys(names)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.opset)])
    try:
        if node.op in _TIMES_LARGER:
            to.reserve(node, 8 * _TIMES_LARGER[node.op] * sum(to.constants[name].size for name in names))
        for port in native.with_types(model).graph.output:
            if node.op in _TIMES_LARGER:
                continue
            inferred = port.type.tensor_type
            if not inferred.HasField("shape") or not all(extent.HasField("dim_value") for extent in inferred.shape.dim):
                node.reject("its constant result has no shape that is known before: fold it before the export")
            to.reserve(node, 8 * prod(extent.dim_value for extent in inferred.shape.dim))
        results = ReferenceEvaluator(model).run(None, {})
    except ModelError:
        raise
    except Exception as e:  # whatever the reference implementation meets in a damaged model
        raise ModelError(f"node {node.name!r} ({node.op}): its constant inputs do not fit: {e}") from e
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        node.reject("its constant result is no tensor")
    to.constants |= {name: np.asarray(result) for name, result in zip(wanted, results, strict=True)}
