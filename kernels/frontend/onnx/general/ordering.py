"""TopK: few numbers by their ranks, many by a bitonic sorting network that keeps the better half of two parts.

Both are made of comparisons of pairs (number, place): of equal numbers the one that comes first is the better one. NaN
has no order, and what becomes of it is not defined.

The network is K. E. Batcher's, Sorting networks and their applications, 1968.
"""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.ir.expressions import Expression

from .steps import Steps

MOST_PAIRS = 1 << 22
"""Pairs of numbers that may be compared at once: 16 MiB."""

_LARGER: Expression = ("less", "b", "a")
_SMALLER: Expression = ("less", "a", "b")


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
    last = s.transpose(x, perm)
    numbers = s.reshape(last, (prod(given) // n, n))
    found = by_size(s, numbers, k, largest=bool(s.attribute("largest", 1)))
    lead = tuple(given[other] for other in perm[:-1])
    back = np.argsort(perm).tolist()
    for index, each in enumerate(found):
        s.end(s.transpose(s.reshape(each, (*lead, k)), back), index)


def by_size(s: Steps, x: str, k: int, *, largest: bool = True) -> tuple[str, str]:
    """The k best numbers of each row and their places; of equal numbers the first comes first."""
    rows, n = s.shape(x)
    order = _by_ranks if rows * n * n <= MOST_PAIRS else _by_network
    return order(s, x, k, _LARGER if largest else _SMALLER)


def _before(better: Expression) -> Expression:
    """Whether (a, c) comes before (b, d)."""
    return ("max", better, ("mul", ("equal", "a", "b"), ("less", "c", "d")))


def _by_ranks(s: Steps, x: str, k: int, better: Expression) -> tuple[str, str]:
    """Each number's rank is how many come before it."""
    rows, n = s.shape(x)
    column, places = s.reshape(x, (rows, n, 1)), np.arange(n, dtype=np.float32)
    first = s.map(_before(better), column, s.reshape(x, (rows, 1, n)), places.reshape(1, n, 1), places)
    ranks = s.reshape(s.reduce(first, [1], "sum"), (rows, n, 1))
    wanted = np.arange(k, dtype=np.float32)
    values, found = (
        s.reduce(s.map(("select", ("equal", "a", "b"), "c", 0.0), ranks, wanted, part), [1], "sum")
        for part in (column, places.reshape(1, n, 1))
    )
    return values, found


def _by_network(s: Steps, x: str, k: int, better: Expression) -> tuple[str, str]:
    """Parts of a power of two are sorted, in turns upwards and downwards; of two parts the better half stays."""
    rows, n = s.shape(x)
    size = 1 << (k - 1).bit_length()
    parts = 1 << (-(-n // size) - 1).bit_length()
    filling = np.full((rows, parts * size - n), -np.inf if better == _LARGER else np.inf)
    values = s.concat([x, s.constant(filling)], 1) if filling.size else x
    places = s.constant(np.broadcast_to(np.arange(parts * size, dtype=np.float32), (rows, parts * size)))
    pairs = values, places
    for part in (1 << bits for bits in range(1, size.bit_length())):
        pairs = _merge(s, pairs, part, better)
    while parts > 1:
        pairs, parts = _halve(s, pairs, size, better), parts // 2
        pairs = _merge(s, pairs, size, better)
    values, places = (s.slice(each, 1, 0, k) for each in pairs)
    return values, places


Pairs = tuple[str, str]


def _merge(s: Steps, pairs: Pairs, part: int, better: Expression) -> Pairs:
    """Sort parts that rise and fall once, in turns upwards and downwards."""
    rows, n = s.shape(pairs[0])
    step = part // 2
    while step:
        shape = (rows, n // (2 * step), 2, step)
        values, places = (s.reshape(each, shape) for each in pairs)
        others = [s.pick(each, 2, [1, 0]) for each in (values, places)]
        first = s.map(_before(better), others[0], values, others[1], places)
        upwards = np.arange(n // (2 * step)) * 2 * step // part % 2 == 0
        wanted = np.stack([upwards, ~upwards], 1).astype(np.float32)[:, :, None]
        swap: Expression = ("select", ("equal", "a", "b"), "c", "d")
        values, places = (
            s.map(swap, first, wanted, other, own) for other, own in zip(others, (values, places), strict=True)
        )
        pairs = s.reshape(values, (rows, n)), s.reshape(places, (rows, n))
        step //= 2
    return pairs


def _halve(s: Steps, pairs: Pairs, part: int, better: Expression) -> Pairs:
    """Of each two parts, sorted against each other, the better number at each place: parts that rise and fall once."""
    rows, n = s.shape(pairs[0])
    both = [s.reshape(each, (rows, n // (2 * part), 2, part)) for each in pairs]
    (a, b), (c, d) = ([s.slice(each, 2, side, side + 1) for side in (0, 1)] for each in both)
    first = s.map(_before(better), a, b, c, d)
    values, places = (s.map(("select", "a", "b", "c"), first, *each) for each in ((a, b), (c, d)))
    return s.reshape(values, (rows, n // 2)), s.reshape(places, (rows, n // 2))


_LANE = 128
"""Numbers that are summed one behind the other at once."""


def true_places(s: Steps, truth: str) -> tuple[str, str]:
    """Places of the ones among ones and zeros (n), in their order, and how many there are (1): behind them places have
    no meaning. Each place is looked for, by halves, in the sums of what is before it."""
    (n,) = s.shape(truth)
    s.places(n)
    sums, wanted = _sums(s, truth), np.arange(1, n + 1, dtype=np.float32)
    step, found = 1 << (n - 1).bit_length(), s.constant(np.zeros(n))
    while step:
        ahead = s.map(("min", ("add", "a", step - 1.0), n - 1.0), found)
        fewer = ("less", "a", "b")
        found = s.map(("select", fewer, ("add", "c", float(step)), "c"), s.gather(sums, ahead, 0), wanted, found)
        step //= 2
    return s.map(("min", "a", n - 1.0), found), s.slice(sums, 0, n - 1, n)


def _sums(s: Steps, x: str) -> str:
    """Of each number and those before it, (n)."""
    (n,) = s.shape(x)
    lanes = -(-n // _LANE)
    width = min(n, _LANE)
    if lanes * width > n:
        x = s.concat([x, s.constant(np.zeros(lanes * width - n))], 0)
    rows = s.matmul(s.reshape(x, (lanes, width)), s.constant(np.triu(np.ones((width, width)))))
    if lanes > 1:
        totals = s.reshape(s.slice(rows, 1, width - 1, width), (lanes,))
        before = s.map(("sub", "a", "b"), _sums(s, totals), totals)
        rows = s.map(("add", "a", "b"), rows, s.reshape(before, (lanes, 1)))
    return s.slice(s.reshape(rows, (lanes * width,)), 0, 0, n)
