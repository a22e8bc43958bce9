"""The meaning of every canonical operation, in NumPy: what a kernel must equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.errors import checkpoint
from kernels.ir.graph import Graph, Node
from kernels.ir.programs import APART, computed_in, held, whole_expression
from kernels.ir.types import ElementType, as_type, is_whole
from kernels.options import HALF

from .inputs import check_inputs
from .operations import OPERATIONS, AnyArray

__all__ = ["OPERATIONS", "check_inputs", "evaluate", "roundings"]


def evaluate(
    graph: Graph, inputs: Mapping[str, AnyArray], *, dtype: type[np.floating] = np.float64, keep: bool = False,
    in_halves: bool = False,
) -> dict[str, AnyArray]:  # fmt: skip
    """Evaluate a graph on the host.

    `inputs`: one array per graph input. Arithmetic and results are in `dtype`, but tensors of whole numbers, which are
    in their own types; with `in_halves` every result is rounded to a half where it is stored. Returns the graph's
    outputs by name; with `keep` every activation, inputs included. Raises InputError for an input that is missing,
    unknown or does not fit.
    """
    check_inputs(graph, inputs)
    values = {name: _stored(inputs[name], graph.types[name], dtype) for name in graph.inputs}
    last_use = {name: i for i, node in enumerate(graph.nodes) for name in node.inputs}
    for i, node in enumerate(graph.nodes):
        checkpoint()
        found = _run(graph, node, values, dtype)
        values[node.output] = _in_halves(found) if in_halves else found
        if not keep:
            _forget(graph, values, {name for name in node.inputs if last_use[name] == i})
    constants = [name for name in graph.outputs if name in graph.constants]
    values |= {name: _stored(graph.constants[name], graph.types[name], dtype) for name in constants}
    return values if keep else {name: values[name] for name in graph.outputs}


def roundings(precision: str) -> dict[str, Any]:
    """Return the arguments with which `evaluate` rounds like this precision, to tell what rounding alone loses."""
    return {"in_halves": True} if precision in HALF else {"dtype": np.float32}


def _run(graph: Graph, node: Node, values: dict[str, AnyArray], dtype: type[np.floating]) -> AnyArray:
    def value(index: int, name: str) -> AnyArray | None:
        if not name:
            return None
        own = graph.types[name] if node.op in APART and index else kind
        return _stored(values[name] if name in values else graph.constants[name], own, dtype)

    kind = computed_in(node, graph.types)
    if node.op == "map" and kind != "f32":
        node = replace(node, attributes={"expression": whole_expression(node.attributes["expression"])})
    operands = [value(index, name) for index, name in enumerate(node.inputs)]
    out = OPERATIONS[node.op](node, operands, graph.shapes[node.output])
    return np.asarray(_stored(np.asarray(out), graph.types[node.output], dtype), order="C")


def _stored(array: AnyArray, kind: ElementType, dtype: type[np.floating]) -> AnyArray:
    """Return numbers in a type, of which any floating point is `dtype`. Of a float beyond 32 or 64 bits, whichever hold
    the type, the least whole number of these is converted."""
    if not is_whole(kind):
        return np.asarray(array, dtype)
    if array.dtype.kind == "f" and kind != "bool":
        end = 2.0 ** (63 if held(kind) == "i64" else 31)
        array = np.where((array >= -end) & (array < end), array, -end)
    return as_type(array, kind)


def _in_halves(array: AnyArray) -> AnyArray:
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):
        return np.where(array == np.rint(array), array, array.astype(np.float16))


def _forget(graph: Graph, values: dict[str, AnyArray], names: set[str]) -> None:
    for name in names - set(graph.outputs):
        values.pop(name, None)
