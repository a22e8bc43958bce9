"""Flatten, Reshape, Squeeze, Unsqueeze and Transpose of activations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows import counts, shaping
from kernels.frontend.onnx.counted_rows.rules import elementwise
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.operator import AXES, Fold, Operator, Values, no_bytes
from kernels.frontend.onnx.steps import Steps
from kernels.ir.shapes import MAX_TRANSPOSE_RANK


def flatten(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    shape = to.shapes[x]
    axis = node.attributes.get("axis", 1)
    axis = len(shape) if axis == len(shape) else node.axis(axis, len(shape))
    to.reshape(node, x, (prod(shape[:axis]), prod(shape[axis:])))


def reshape(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    wanted = [int(extent) for extent in to.constant(node, 1)]
    try:
        shape = target_shape(to.shapes[x], wanted, allow_zero=bool(node.attributes.get("allowzero", 0)))
    except ModelError as e:
        raise ModelError(f"node {node.name!r} (Reshape): {e}") from e
    to.reshape(node, x, shape)


def target_shape(given: tuple[int, ...], wanted: Sequence[int], *, allow_zero: bool = False) -> tuple[int, ...]:
    """Resolve 0 (keep) and -1 (the rest) of a Reshape. The result may still hold another number of elements."""
    if min(wanted, default=0) < -1 or list(wanted).count(-1) > 1:
        raise ModelError(f"the target {list(wanted)} is no shape: one extent may be -1, the others not negative")
    kept = [given[i] if w == 0 and not allow_zero and i < len(given) else w for i, w in enumerate(wanted)]
    known = prod(w for w in kept if w != -1)
    rest = prod(given) // known if known else 0
    return tuple(rest if w == -1 else w for w in kept)


def squeeze(node: OnnxNode, to: Context) -> None:
    x, stored = to.activation(node), Steps(node, to).whole_numbers(1, "axes")
    shape = to.shapes[x]
    gone = [i for i, n in enumerate(shape) if n == 1] if stored is None else node.distinct_axes(stored, len(shape))
    to.reshape(node, x, tuple(extent for i, extent in enumerate(shape) if i not in gone))


def unsqueeze(node: OnnxNode, to: Context) -> None:
    x, stored, given = (
        to.activation(node),
        Steps(node, to).whole_numbers(1, "axes") or [],
        to.optional_constant(node, 1),
    )
    if given is not None and given.ndim > 1:
        node.damaged(f"axes of shape {given.shape}, where a list belongs")
    axes = node.distinct_axes(stored, rank := len(to.shapes[x]) + len(stored))
    extents = iter(to.shapes[x])
    to.reshape(node, x, tuple(1 if i in axes else next(extents) for i in range(rank)))


def transpose(node: OnnxNode, to: Context) -> None:
    """Move axes, neighbours that stay so as one where the kernels do not know so many."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    perm = tuple(int(p) for p in node.attributes.get("perm", range(len(shape))[::-1]))
    if sorted(perm) != list(range(len(shape))):
        node.damaged(f"perm {perm} does not permute the axes of {shape}")
    merged, merged_perm = merge_axes(shape, perm)
    if not to.is_activation(x) or len(merged) > MAX_TRANSPOSE_RANK:
        s.end(s.transpose(x, perm))
    elif len(shape) <= MAX_TRANSPOSE_RANK:
        to.emit(node, "transpose", (x,), {"perm": perm})
    else:
        flat, output = to.fresh(f"{node.outputs[0]}.merged"), to.fresh(f"{node.outputs[0]}.turned")
        to.reshape(node, x, merged, output=flat)
        turned = to.emit(node, "transpose", (flat,), {"perm": merged_perm}, output=output)
        to.reshape(node, turned, tuple(shape[p] for p in perm))


def merge_axes(shape: tuple[int, ...], perm: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Join axes that stay neighbours in a transposition: the smallest shape and permutation that move the same."""
    groups: list[list[int]] = []
    for p in perm:
        if groups and groups[-1][-1] + 1 == p:
            groups[-1].append(p)
        else:
            groups.append([p])
    order = sorted(range(len(groups)), key=lambda i: groups[i][0])
    merged = tuple(prod(shape[axis] for axis in groups[i]) for i in order)
    return merged, tuple(order.index(i) for i in range(len(groups)))


def identity(node: OnnxNode, to: Context) -> None:
    to.reshape(node, x := to.activation(node), to.shapes[x])


def dropout(node: OnnxNode, to: Context) -> None:
    """Pass the input on, as at inference, with the mask that keeps everything. Raises UnsupportedNode for one that
    drops something."""
    s = Steps(node, to)
    training, ratio = to.optional_constant(node, 2), to.optional_constant(node, 1)
    if training is not None and np.any(training) and (ratio is None or np.any(ratio)):
        node.reject("training mode is not supported; export the model for inference (model.eval())")
    s.end(s.operand(0))
    if len(node.outputs) > 1:
        to.constants[node.outputs[1]] = np.ones(s.shape(s.operand(0)), np.bool_)


def _folded_axes(node: OnnxNode, values: Values) -> tuple[int, ...] | None:
    stored = node.attributes.get("axes", values[1] if len(values) > 1 else None)
    return None if stored is None else tuple(int(axis) for axis in np.reshape(stored, -1))


def _squeezed(node: OnnxNode, values: Values) -> AnyArray:
    return np.asarray(np.squeeze(values[0], axis=_folded_axes(node, values)))


def _unsqueezed(node: OnnxNode, values: Values) -> AnyArray:
    return np.expand_dims(values[0], _folded_axes(node, values) or ())


def _reshaped(node: OnnxNode, values: Values) -> AnyArray:
    data: AnyArray = values[0]
    wanted = [int(extent) for extent in values[1]]
    return data.reshape(target_shape(data.shape, wanted, allow_zero=bool(node.attributes.get("allowzero", 0))))


def _transposed(node: OnnxNode, values: Values) -> AnyArray:
    return np.transpose(values[0], node.attributes.get("perm"))


def _copy_sequence(n: Nodes) -> None:
    n.to.sequences[n.node.outputs[0]] = n.to.sequences[n.node.input(0)]


def _view(fold: Fold) -> dict[str, Any]:
    """Fields of an operator whose result is a view of its first input, be it of constants or of counts."""
    return {"fold": fold, "fold_bytes": no_bytes, "follow": counts.placed(fold)}


OPERATORS = (
    Operator("Dropout", operands=("...", "", ""), import_=dropout, rows=elementwise),
    Operator("Flatten", import_=flatten, rows=shaping.flattened),
    Operator(
        "Identity", import_=identity, rows=elementwise, **_view(lambda _, values: np.asarray(values[0])),
        write=_copy_sequence, writes=lambda node, to: node.input(0) in to.sequences,
    ),
    Operator(
        "Reshape", operands=AXES, import_=reshape, sizes=(1,), counts_from=1, rows=shaping.reshaped, **_view(_reshaped)
    ),
    Operator("Squeeze", operands=AXES, import_=squeeze, rows=shaping.squeezed, **_view(_squeezed)),
    Operator(
        "Transpose", import_=transpose, rows=shaping.transposed, **_view(_transposed)
    ),
    Operator("Unsqueeze", import_=unsqueeze, rows=shaping.unsqueezed, **_view(_unsqueezed)),
)  # fmt: skip
