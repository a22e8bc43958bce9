"""Whole numbers that fp32 may not hold: refused where that is known, infinite where only a run can tell."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite, prod

from kernels.frontend.onnx.context import Context, OnnxNode, may_wrap
from kernels.frontend.onnx.general.products import letters_of
from kernels.frontend.onnx.general.reductions import axes_of
from kernels.frontend.onnx.general.steps import MAX_PLACES, Steps
from kernels.ir.compositions import whole
from kernels.ir.graph import Node

from .bounds import Bounds, bounds_of, times

_ROUNDED = 1.001
"""The factor by which bounds may be too wide: who refuses by them allows for it."""
_PRODUCTS = ("Mul", "Pow")
SUMS = frozenset({"CumSum", "ReduceSum", "ScatterElements", "ScatterND"})
"""Operators that add elements; `SUMS_OF_PRODUCTS` add products of two operands or more."""
MEAN = "ReduceMean"
SUMS_OF_PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
_GROW = frozenset({
    *_PRODUCTS, *SUMS, *SUMS_OF_PRODUCTS, MEAN, "Add", "CumProd", "ReduceL1", "ReduceProd", "ReduceSumSquare", "Sub",
})  # fmt: skip
"""Operators of which a result, or a sum on its way, may be larger than every operand."""


def grows(node: OnnxNode, to: Context) -> bool:
    """Return whether a node computes whole numbers of 32 or 64 bits that may be larger than every operand."""
    kind = to.type_of(node.inputs[0]) if node.op in _GROW else None
    if kind is None or kind.kind not in "iu" or may_wrap(kind):
        return False
    return not node.op.startswith("Scatter") or node.attributes.get("reduction") in ("add", "mul")


def keep_exact(node: OnnxNode, to: Context) -> None:
    """See to it that a result of 2^24 or more becomes infinite, unless bounds show that there is none.

    Raises UnsupportedNode for a product that is known to reach beyond, as hashes compute it.
    """
    name = node.outputs[0]
    if not grows(node, to) or name not in to.shapes:
        return
    if node.op in SUMS_OF_PRODUCTS | SUMS - {"ReduceSum"}:
        to.bounds[name] = bounds_of_sums(node, to)
    low, high = bounds_of(to, name)
    if node.op in _PRODUCTS:
        _refuse(node, to, (low, high))
    if not within(low, high):
        _bound(node, to, name)


def within(low: float, high: float) -> bool:
    """Return whether fp32 holds every whole number between these."""
    return max(-low, high) < MAX_PLACES


def bounds_of_sums(node: OnnxNode, to: Context) -> Bounds:
    """Return the bounds of every sum of some of a result's terms, of a node of `SUMS` or `SUMS_OF_PRODUCTS`."""
    bounds = [bounds_of(to, name) for name in node.inputs if name]
    count, start = terms(node, to), (0.0, 0.0)
    if node.op.startswith("Scatter"):
        if node.attributes["reduction"] == "mul":
            return -inf, inf
        start, term = bounds[0], bounds[2]
    elif node.op == "Gemm":
        alpha, beta = (float(node.attributes.get(key, 1.0)) for key in ("alpha", "beta"))
        start = times(bounds[2], (beta, beta)) if len(bounds) > 2 else start
        term = times(times(bounds[0], bounds[1]), (alpha, alpha))
    else:
        term = bounds[0]
        for other in bounds[1:] if node.op in SUMS_OF_PRODUCTS else ():
            term = times(term, other)
    ends = [(one, one + count * other) for one, other in zip(start, term, strict=True)]
    return min(0.0, *ends[0]), max(0.0, *ends[1])


def reduced_axes(node: OnnxNode, to: Context) -> list[int]:
    """Return the axes that a ReduceSum or ReduceMean adds along."""
    s = Steps(node, to)
    return axes_of(s, len(s.shape(s.operand(0))))


def terms(node: OnnxNode, to: Context) -> int:
    """Return how many elements, or products, a result of such a node is the sum of, at most."""
    s = Steps(node, to)
    shape = s.shape(s.operand(0))
    if node.op == "CumSum":
        (axis,) = s.whole_numbers(1) or [0]
        return shape[node.axis(axis, len(shape))]
    if node.op in ("ReduceSum", MEAN):
        return prod(shape[axis] for axis in reduced_axes(node, to))
    if node.op == "ScatterElements":
        return 1 + s.shape(s.operand(1))[node.axis(s.attribute("axis", 0), len(shape))]
    if node.op == "ScatterND":
        return 1 + prod(s.shape(s.operand(1))[:-1])
    if node.op == "MatMul":
        return max(1, *shape[-1:])
    if node.op == "Gemm":
        return shape[0 if s.attribute("transA", 0) else -1]
    names = [s.operand(index) for index in range(len(node.inputs))]
    letters, result = letters_of(s, str(s.attribute("equation")).replace(" ", ""), names)
    extents: dict[str, int] = {}
    for name, term in zip(names, letters, strict=True):
        for letter, extent in zip(term, s.shape(name), strict=True):
            extents[letter] = max(extents.get(letter, 1), extent)
    return prod(extent for letter, extent in extents.items() if letter not in result)


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
