"""TopK, and the places of what is true, by sorting. Of equal numbers the one that comes first is the better one."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode

from .steps import Steps


def top_k(node: OnnxNode, to: Context) -> None:
    """Values and places of the k largest, or smallest, along an axis, the best first."""
    s = Steps(node, to)
    x = s.operand(0)
    given = s.shape(x)
    axis, k = node.axis(s.attribute("axis", -1), len(given)), (s.whole_numbers(1, "k") or [0])[0]
    n = given[axis]
    if not 0 < k <= n:
        raise ModelError(f"node {node.name!r} (TopK): k is {k}; expected 1 to {n}, the extent of axis {axis}")
    s.places(n)
    perm = [other for other in range(len(given)) if other != axis] + [axis]
    numbers = s.reshape(s.transpose(x, perm), (prod(given) // n, n))
    lead = tuple(given[other] for other in perm[:-1])
    back = np.argsort(perm).tolist()
    for index, gives in enumerate(("values", "places")):
        if index < len(node.outputs) and node.outputs[index]:
            found = best(s, numbers, k, gives, largest=bool(s.attribute("largest", 1)))
            s.end(s.transpose(s.reshape(found, (*lead, k)), back), index)


def best(s: Steps, x: str, k: int, gives: str, *, largest: bool = True) -> str:
    """The k best numbers of each row, or their places."""
    return s.emit("sort", (s.tensor(x),), {"k": k, "largest": largest, "gives": gives})


def true_places(s: Steps, truth: str) -> tuple[str, str]:
    """Places of the ones among ones and zeros (n), in their order, and how many there are (1): behind them places have
    no meaning."""
    (n,) = s.shape(truth)
    s.places(n)
    places = best(s, s.reshape(truth, (1, n)), n, "places")
    return s.reshape(places, (n,)), s.reduce(truth, [0], "sum")
