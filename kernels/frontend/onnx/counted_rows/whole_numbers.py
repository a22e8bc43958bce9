"""Whole numbers that fp32 may not hold are marked, with the reason where it is known not to."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, prod

from kernels.frontend.onnx.axes import axes_of, letters_of
from kernels.frontend.onnx.context import Context, OnnxNode, may_wrap
from kernels.frontend.onnx.steps import MAX_PLACES, Steps
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


def mark(node: OnnxNode, to: Context, made: Sequence[Node]) -> None:
    """Mark a result, or sums on its way, unless bounds show that fp32 holds them. `made`: what the node became."""
    name = node.outputs[0]
    if not grows(node, to) or name not in to.shapes:
        return
    is_sum = node.op in SUMS_OF_PRODUCTS | SUMS | {MEAN}
    sums = bounds_of_sums(node, to) if is_sum else (0.0, 0.0)
    if is_sum and node.op not in ("ReduceSum", MEAN):
        to.bounds[name] = sums
    low, high = bounds_of(to, name)
    if not within(low, high):
        to.beyond[name] = _known(node, to, (low, high)) if node.op in _PRODUCTS else ""
    if not within(*sums):
        to.beyond |= {each.output: "" for each in made if _adds(each)}


def _adds(node: Node) -> bool:
    """Return whether a node computes a part of a sum."""
    return node.op in ("reduce", "dense", "matmul") or ("add", "a", "b") in node.attributes.get("expression", ())


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


def _known(node: OnnxNode, to: Context, bounds: tuple[float, float]) -> str:
    """Return why fp32 does not hold a product, where that is known, as of hashes; '' where only a run can tell."""
    known = [to.constants[other] for other in node.inputs if other in to.constants]
    found = [float(value) for array in known if array.size for value in (array.min(), array.max())] + [*bounds]
    largest = max((abs(value) for value in found if isfinite(value)), default=0.0)
    if largest <= MAX_PLACES * _ROUNDED:
        return ""
    return (
        f"node {node.name!r} ({node.op}): its whole numbers reach beyond 2^24 (up to {largest:.0f}), which fp32 does "
        f"not hold: compute {node.outputs[0]!r} with smaller ones, or let the network take it as an input"
    )
