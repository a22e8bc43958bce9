"""Sums of whole numbers of which some terms together may pass 2^24, where fp32 rounds, although the whole stays below.

Terms of a plain sum are divided into groups of bits, few enough that fp32 adds each group exactly, and the groups' sums
are put together from the highest on. A mean divides the groups' sums one after the other, as one divides by hand. A sum
of products is infinite where the sizes of its terms pass 2^24 together.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

import numpy as np
import onnx

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.general.padded.whole_numbers import (
    MEAN,
    SUMS,
    SUMS_OF_PRODUCTS,
    bounds_of_sums,
    grows,
    keep_exact,
    reduced_axes,
    terms,
    within,
)  # fmt: skip
from kernels.frontend.onnx.operators import import_node

from .nodes import Nodes

_BITS = 24
"""Bits of the whole numbers that fp32 holds."""
_MOST = 2 ** (_BITS - 2)
"""Terms of a sum, whose groups of one bit are then exact."""


def may_round(node: OnnxNode, to: Context) -> bool:
    """Return whether a node adds whole numbers whose bounds do not show that all is exact."""
    if node.op not in SUMS | SUMS_OF_PRODUCTS | {MEAN}:
        return False
    if not all(n in to.shapes or n in to.constants for n in node.inputs if n):
        return False
    if node.op == MEAN and not to.counts.get(node.inputs[0], {}).keys().isdisjoint(reduced_axes(node, to)):
        return False
    if not grows(node, to) or node.attributes.get("reduction") == "mul" or terms(node, to) < 2:
        return False
    return not within(*bounds_of_sums(node, to))


def exact_sum(n: Nodes) -> None:
    """Write a node that `may_round`. Raises UnsupportedNode where a group of one bit would not do."""
    count = terms(n.node, n.to)
    if n.node.op not in SUMS_OF_PRODUCTS and count > _MOST:
        n.node.reject(f"{count} whole numbers are added; at most {_MOST} are supported: cast them to FLOAT")
    kind = onnx.helper.np_dtype_to_tensor_dtype(n.to.type_of(n.node.inputs[0]))
    makers = {**dict.fromkeys(SUMS, _in_groups), MEAN: _mean}
    found = makers.get(n.node.op, _of_products)(n)
    n.add("Cast", found, to_output=0, to=kind)
    keep_exact(n.node, n.to)


def _in_groups(n: Nodes) -> str:
    bits = max(1, _BITS - ceil(log2(terms(n.node, n.to))))
    sums, size = _groups(n, bits), n.store(2.0**bits, np.float32)
    found = sums[0]
    for lower in sums[1:]:
        found = n.add("Add", n.add("Mul", found, size), lower)
    return found


def _groups(n: Nodes, bits: int) -> list[str]:
    """The sum of each group of so many bits, from the highest on; all but the highest are at least 0."""
    added = (0, 2) if n.node.op.startswith("Scatter") else (0,)
    left = {index: n.add("Cast", n.node.inputs[index], to=onnx.TensorProto.FLOAT) for index in added}
    size, share = n.store(2.0**bits, np.float32), n.store(0.5**bits, np.float32)
    sums = []
    for _ in range(ceil(_BITS / bits) - 1):
        higher = {index: n.add("Floor", n.add("Mul", name, share)) for index, name in left.items()}
        sums.append(_same(n, {k: n.add("Sub", left[k], n.add("Mul", high, size)) for k, high in higher.items()}))
        left = higher
    return [_same(n, left), *reversed(sums)]


def _mean(n: Nodes) -> str:
    """The quotient is cut off. What is left of a group's sum is below the number of terms, so that with the group below
    it stays under 2^24."""
    count = terms(n.node, n.to)
    bits = max(1, _BITS - 1 - ceil(log2(count)))
    of = replace(n.node, op="ReduceSum")
    found = left = ""
    for total in _groups(Nodes(of, n.to), bits):
        if found:
            size = n.store(2.0**bits, np.float32)
            found, total = n.add("Mul", found, size), n.add("Add", n.add("Mul", left, size), total)
        share, many = n.store(count, np.float32), n.store(count, np.float32)
        more = n.add("Floor", n.add("Div", total, share))
        left = n.add("Sub", total, n.add("Mul", more, many))
        found = n.add("Add", found, more) if found else more
    zero = n.store(0, np.float32)
    cut = n.add("And", n.add("Less", found, zero), n.add("Greater", left, zero))
    return n.add("Add", found, n.add("Cast", cut, to=onnx.TensorProto.FLOAT))


def _of_products(n: Nodes) -> str:
    given = {k: n.add("Cast", name, to=onnx.TensorProto.FLOAT) for k, name in enumerate(n.node.inputs) if name}
    factors = {key: abs(n.node.attributes[key]) for key in ("alpha", "beta") if key in n.node.attributes}
    found, sizes = _same(n, given), _same(n, {k: n.add("Abs", name) for k, name in given.items()}, **factors)
    zero, most = (n.store(number, np.float32) for number in (0, 2**_BITS))
    beyond = n.add("Where", n.add("Less", found, zero), n.add("Neg", sizes), sizes)
    return n.add("Where", n.add("Less", sizes, most), found, beyond)


def _same(n: Nodes, given: dict[int, str], **attributes: float) -> str:
    """The node, some of its inputs and attributes replaced."""
    inputs = tuple(given.get(index, name) for index, name in enumerate(n.node.inputs))
    target = n.fresh(n.node.op)
    node = OnnxNode(target, n.node.op, n.node.opset, inputs, (target,), {**n.node.attributes, **attributes})
    import_node(node, "", n.to)
    return target
