"""Whole numbers that fp32 may not hold: refused where that is known, infinite where only a run can tell."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from kernels.frontend.onnx.context import Context, OnnxNode, may_wrap
from kernels.frontend.onnx.general.steps import MAX_PLACES
from kernels.ir.compositions import whole
from kernels.ir.graph import Node

from .bounds import bounds_of

_ROUNDED = 1.001
"""By what bounds may be too wide."""
_PRODUCTS = ("Mul", "Pow")
_GROW = frozenset({
    *_PRODUCTS, "Add", "CumProd", "CumSum", "Einsum", "Gemm", "MatMul", "ReduceL1", "ReduceProd", "ReduceSum",
    "ReduceSumSquare", "Sub",
})  # fmt: skip
"""Operators of which a result may be larger than every operand."""


def keep_exact(node: OnnxNode, to: Context) -> None:
    """See to it that a result of 2^24 or more becomes infinite, unless bounds show that there is none.

    Raises UnsupportedNode for a product that is known to reach beyond, as hashes compute it.
    """
    name = node.outputs[0]
    if node.op not in _GROW or name not in to.shapes:
        return
    kind = to.type_of(node.inputs[0])
    if kind.kind not in "iu" or may_wrap(kind):
        return
    if node.op == "CumSum":
        low, high = bounds_of(to, node.inputs[0])
        count = max(to.shapes[name], default=1)  # at least as many as there are along the axis
        to.bounds[name] = min(0.0, low * count), max(0.0, high * count)
    low, high = bounds_of(to, name)
    if node.op in _PRODUCTS:
        _refuse(node, to, (low, high))
    if max(-low, high) > MAX_PLACES * _ROUNDED:
        _bound(node, to, name)


def _refuse(node: OnnxNode, to: Context, bounds: tuple[float, float]) -> None:
    known = [to.constants[other] for other in node.inputs if other in to.constants]
    found = [float(value) for array in known if array.size for value in (array.min(), array.max())] + [*bounds]
    largest = max((abs(value) for value in found if isfinite(value)), default=0.0)
    if largest > MAX_PLACES * _ROUNDED:
        node.reject(
            f"its whole numbers reach beyond 2^24 (up to {largest:.0f}), which fp32 does not hold: compute "
            f"{node.outputs[0]!r} with smaller ones, or let the network take it as an input"
        )


def _bound(node: OnnxNode, to: Context, name: str) -> None:
    """The result goes through one more node."""
    index = next((index for index in reversed(range(len(to.nodes))) if to.nodes[index].output == name), None)
    if index is None:  # an input of another name
        return
    source = to.fresh(f"{name}.whole")
    to.nodes[index] = replace(to.nodes[index], outputs=(source,))
    to.add_shape(source, to.shapes[name])
    to.nodes.append(Node(node.name, "map", (source,), (name,), {"expression": whole("a")}))
