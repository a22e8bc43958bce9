"""Interval arithmetic (R. E. Moore, 1966): bounds of a function from bounds of what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, floor, inf, sqrt

import numpy as np

from .programs import WRAPS
from .types import ElementType, to_numpy

Bounds = tuple[float, float]
ANY: Bounds = (-inf, inf)


def widened(low: float, high: float) -> Bounds:
    """Widen bounds by the rounding of fp32 in some steps."""
    slack = 0.0 if inf in (abs(low), abs(high)) else 4e-6 * max(abs(low), abs(high))
    return low - slack, high + slack


def hull(*parts: Bounds) -> Bounds:
    """Return the bounds of what lies in any of these."""
    return min(low for low, _ in parts), max(high for _, high in parts)


def clipped(of: Bounds, low: float, high: float) -> Bounds:
    """Return the bounds of what is clipped to `low` and `high`."""
    return min(max(of[0], low), high), min(max(of[1], low), high)


def times(a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of products."""
    return widened(*_products(a, b))


def _products(a: Bounds, b: Bounds) -> Bounds:
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _rising(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    def ends(a: Bounds) -> Bounds:
        try:
            return widened(function(a[0]), function(a[1]))
        except (OverflowError, ValueError):
            return ANY

    return ends


def _floor(x: float) -> float:
    return x if abs(x) == inf else floor(x)


def rounded(kind: ElementType, a: Bounds) -> Bounds:
    """Return the bounds as numbers of a type."""
    with np.errstate(over="ignore"):
        low, high = np.asarray(a).astype(to_numpy(kind)).astype(np.float64)
    return float(low), float(high)


def ends_of(kind: ElementType) -> Bounds:
    """Return the least and the largest number of a type of whole numbers."""
    if kind == "bool":
        return 0.0, 1.0
    bits = int(kind[1:])
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if kind[0] == "i" else (0.0, 2.0**bits - 1)


def is_in(bounds: Bounds, ends: Bounds) -> bool:
    """Return whether bounds lie within others."""
    return ends[0] <= bounds[0] and bounds[1] <= ends[1]


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of quotients that are cut off, which are 0 by 0."""
    if b[0] < 1 or inf in (*a, -a[0], b[1]):
        return -max(map(abs, a)), max(map(abs, a))
    ends = [float(int(x / y)) for x in a for y in b]
    return min(ends), max(ends)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    most = max(max(map(abs, b)) - 1, 0.0)
    return max(-most, min(a[0], 0.0)), min(most, max(a[1], 0.0))


def _bits_of_both(a: Bounds, b: Bounds) -> Bounds:
    least = [bounds[1] for bounds in (a, b) if bounds[0] >= 0]
    return (0.0, min(least)) if least else ANY


def _bits_of_any(a: Bounds, b: Bounds) -> Bounds:
    most = max(a[1], b[1])
    return (0.0, 2.0 ** int(most).bit_length() - 1) if min(a[0], b[0]) >= 0 and most < inf else ANY


def _within(kind: ElementType) -> Callable[[Bounds], Bounds]:
    return lambda a: a if is_in(a, ends_of(kind)) else ends_of(kind)


FUNCTIONS: Mapping[str, Callable[..., Bounds]] = {
    "add": lambda a, b: widened(a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: widened(a[0] - b[1], a[1] - b[0]),
    "mul": times,
    "div": lambda a, b: ANY if b[0] <= 0 <= b[1] else times(a, (1 / b[1], 1 / b[0])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "less": lambda *_: (0.0, 1.0),
    "equal": lambda *_: (0.0, 1.0),
    "select": lambda _, a, b: hull(a, b),
    "neg": lambda a: (-a[1], -a[0]),
    "abs": lambda a: ((0.0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))),
    "exp": _rising(exp),
    "sqrt": _rising(sqrt),
    "floor": lambda a: (_floor(a[0]), _floor(a[1])),
    "round": lambda a: (_floor(a[0]), _floor(a[1]) + 1),
    "float16": lambda a: rounded("f16", a),
    "bfloat16": lambda a: rounded("bf16", a),
    "tanh": lambda _: (-1.0, 1.0),
    "erf": lambda _: (-1.0, 1.0),
    "sin": lambda _: (-1.0, 1.0),
    "cos": lambda _: (-1.0, 1.0),
}
WHOLE: Mapping[str, Callable[..., Bounds]] = {
    **{name: FUNCTIONS[name] for name in ("min", "max", "less", "equal", "select", "neg", "abs")},
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _products,
    "div": _quotient,
    "remainder": _remainder,
    "bit_and": _bits_of_both,
    "bit_or": _bits_of_any,
    "bit_xor": _bits_of_any,
    "shift_right": lambda a, _: (0.0, a[1]) if a[0] >= 0 else ANY,
    **{name: _within(kind) for kind, name in WRAPS.items()},
}
"""Bounds of functions of whole numbers, exactly; what is beyond their type wraps around (`bounds.py`)."""
