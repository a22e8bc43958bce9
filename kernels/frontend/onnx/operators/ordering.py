"""TopK, and the places of what is true, by sorting. Of equal numbers the one that comes first is the better one."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows.counts import whole_numbers
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.extent import Count, most
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.steps import Steps


def top_k(node: OnnxNode, to: Context) -> None:
    """Values and places of the k largest, or smallest, along an axis, the best first."""
    s = Steps(node, to)
    x = s.operand(0)
    given = s.shape(x)
    axis, k = node.axis(s.attribute("axis", -1), len(given)), (s.whole_numbers(1, "k") or [0])[0]
    n = given[axis]
    if not 0 < k <= n:
        node.damaged(f"k is {k}; expected 1 to {n}, the extent of axis {axis}")
    s.places(n)
    perm = [other for other in range(len(given)) if other != axis] + [axis]
    numbers = s.reshape(s.transpose(x, perm), (prod(given) // n, n))
    lead = tuple(given[other] for other in perm[:-1])
    back = np.argsort(perm).tolist()
    for index, gives in enumerate(("values", "places")):
        if index < len(node.outputs) and node.outputs[index]:
            found = s.sort(numbers, k, gives, largest=bool(s.attribute("largest", 1)))
            s.end(s.transpose(s.reshape(found, (*lead, k)), back), index)


def _top(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    axis = r.node.axis(r.attribute("axis", -1), rank)
    wanted = whole_numbers(r.to, r.node.input(1)) if r.node.opset >= 10 else [int(r.attribute("k"))]
    if wanted is None:
        r.refuse("the number of those that it takes is computed otherwise than by counting")
    k = min(most(wanted[0]), r.shape(r.operand(0))[axis])
    found = r.masked(0, -np.inf if r.attribute("largest", 1) else np.inf, [axis])
    r.import_from(found, r.stored([k]) if r.node.opset >= 10 else None)
    valid = {other: count for other, count in r.counts(0).items() if other != axis}
    if isinstance(wanted[0], Count):
        valid[axis] = wanted[0]
    r.tell(valid, valid)


OPERATORS = (Operator("TopK", import_=top_k, counts_from=1, rows=_top),)
