"""Flatten, Reshape, Squeeze, Unsqueeze and Transpose of activations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from kernels.errors import ModelError
from kernels.ir.shapes import MAX_TRANSPOSE_RANK, Shape

from .context import Context, OnnxNode


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


def target_shape(given: Shape, wanted: Sequence[int], *, allow_zero: bool = False) -> Shape:
    """Resolve 0 (keep) and -1 (the rest) of a Reshape. The result may still hold another number of elements."""
    if min(wanted, default=0) < -1 or list(wanted).count(-1) > 1:
        raise ModelError(f"the target {list(wanted)} is no shape: one extent may be -1, the others not negative")
    kept = [given[i] if w == 0 and not allow_zero and i < len(given) else w for i, w in enumerate(wanted)]
    known = prod(w for w in kept if w != -1)
    rest = prod(given) // known if known else 0
    return tuple(rest if w == -1 else w for w in kept)


def squeeze(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    shape = to.shapes[x]
    axes = axes_of(node, to, len(shape))
    gone = axes if axes is not None else [i for i, extent in enumerate(shape) if extent == 1]
    to.reshape(node, x, tuple(extent for i, extent in enumerate(shape) if i not in gone))


def unsqueeze(node: OnnxNode, to: Context) -> None:
    x = to.activation(node)
    stored = _stored_axes(node, to) or to.constant(node, 1).reshape(-1)
    axes = node.distinct_axes(stored, rank := len(to.shapes[x]) + len(stored))
    extents = iter(to.shapes[x])
    to.reshape(node, x, tuple(1 if i in axes else next(extents) for i in range(rank)))


def axes_of(node: OnnxNode, to: Context, rank: int) -> list[int] | None:
    """Counted from 0; None where absent."""
    stored = _stored_axes(node, to)
    return None if stored is None else node.distinct_axes(stored, rank)


def _stored_axes(node: OnnxNode, to: Context) -> Sequence[int] | None:
    """Attribute `axes` (opset < 13), or the second input, a list or a single one; None where absent."""
    if (stored := node.attributes.get("axes")) is not None:
        return list(stored)
    if (value := to.optional_constant(node, 1)) is None:
        return None
    if value.ndim > 1:
        raise ModelError(f"node {node.name!r} ({node.op}): axes of shape {value.shape}, where a list belongs")
    return [int(axis) for axis in value.reshape(-1)]


def transpose(node: OnnxNode, to: Context) -> bool:
    """Move axes, neighbours that stay so as one, where the kernels know so many."""
    x = node.input(0)
    if not to.is_activation(x):
        return False
    shape = to.shapes[x]
    perm = tuple(int(p) for p in node.attributes.get("perm", range(len(shape))[::-1]))
    if sorted(perm) != list(range(len(shape))):
        raise ModelError(f"node {node.name!r} ({node.op}): perm {perm} does not permute the axes of {shape}")
    if len(shape) <= MAX_TRANSPOSE_RANK:
        to.emit(node, "transpose", (x,), {"perm": perm})
        return True
    merged, merged_perm = merge_axes(shape, perm)
    if len(merged) > MAX_TRANSPOSE_RANK:
        return False
    flat = to.reshape(node, x, merged, output=to.fresh(f"{node.outputs[0]}.merged"))
    turned = to.emit(node, "transpose", (flat,), {"perm": merged_perm}, output=to.fresh(f"{node.outputs[0]}.turned"))
    to.reshape(node, turned, tuple(shape[p] for p in perm))
    return True


def merge_axes(shape: Shape, perm: Sequence[int]) -> tuple[Shape, tuple[int, ...]]:
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
