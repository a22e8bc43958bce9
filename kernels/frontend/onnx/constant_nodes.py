"""A node of constants, computed as the import would compute it from an activation: its first input is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from kernels.errors import CompileError
from kernels.ir.graph import Graph
from kernels.reference import evaluate

from .context import MAX_COMPUTED_BYTES, AnyArray, Context, OnnxNode
from .operands import result_types
from .steps import MAX_PLACES


def computed(node: OnnxNode, to: Context, emit: Callable[[OnnxNode, Context], None]) -> bool:
    """Return whether `emit` knows the node; its results are constants then, computed in double precision.

    False, too, for numbers that fp32 does not hold, and for what takes more memory than constants may.
    """
    wanted = [name for name in node.outputs if name]
    inside, first = _inside(node, to), node.input(0)
    if inside is None:
        return False
    given = inside.constants.pop(first)
    try:
        inside.add_shape(first, given.shape)
        inside.types[first] = given.dtype
        emit(node, inside)
        if inside.counts or 8 * sum(prod(shape) for shape in inside.shapes.values()) > MAX_COMPUTED_BYTES:
            return False
        types = result_types(node, inside)
        inside.types |= types
        graph = Graph(
            node.name, (first,), tuple(wanted), inside.nodes, inside.shapes, inside.weights,
            types=inside.element_types(inside.shapes),
        )  # fmt: skip
        with np.errstate(all="ignore"):
            found = evaluate(graph, {first: given.astype(np.float64)})
    except (CompileError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    results = {name: found[name] for name in wanted}
    if not all(_fits(result, types[name]) for name, result in results.items()):
        return False
    to.reserve(node, sum(result.nbytes for result in results.values()))
    to.constants |= {name: np.asarray(result).astype(types[name]) for name, result in results.items()}
    return True


def _inside(node: OnnxNode, to: Context) -> Context | None:
    """A context that knows the node's inputs alone; None where one of them is not exact in fp32."""
    names = [name for name in node.inputs if name]
    values = {name: to.constants[name] for name in names}
    if not names or names.count(node.input(0)) != 1 or not all(_exact(value) for value in values.values()):
        return None
    return Context(to.opset, values, {}, to.folder)


def _exact(value: AnyArray) -> bool:
    if not value.size or value.dtype.kind not in "biuf" or (value.dtype.kind == "f" and value.dtype != np.float32):
        return False
    return value.dtype.kind in "bf" or bool(np.abs(value.astype(np.float64)).max() <= MAX_PLACES)


def _fits(result: AnyArray, kind: np.dtype[Any]) -> bool:
    """Return whether a type holds the numbers."""
    if kind.kind not in "iu":
        return kind.kind == "b" or kind == np.float32
    limits = np.iinfo(kind)
    return bool(np.isfinite(result).all() and limits.min <= result.min() and result.max() <= limits.max)
