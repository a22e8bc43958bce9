"""Functions that are made of the ones that every backend has (`expressions.py`)."""

from __future__ import annotations

from math import inf, log, pi, sqrt

from .expressions import Expression

E = Expression


def unequal(a: E, b: E) -> E:
    return ("sub", 1.0, ("equal", a, b))


def less_or_equal(a: E, b: E) -> E:
    return ("max", ("less", a, b), ("equal", a, b))


def truth(x: E) -> E:
    return unequal(x, 0.0)


def negation(x: E) -> E:
    return ("equal", x, 0.0)


def both(a: E, b: E) -> E:
    return ("mul", truth(a), truth(b))


def either(a: E, b: E) -> E:
    return ("max", truth(a), truth(b))


def differ(a: E, b: E) -> E:
    return unequal(truth(a), truth(b))


def clip(x: E, low: E, high: E) -> E:
    """A bound that is infinite bounds nothing: plans hold finite numbers alone."""
    above = x if low == -inf else ("max", x, low)
    return above if high == inf else ("min", above, high)


def relu(x: E) -> E:
    return ("max", x, 0.0)


def leaky_relu(x: E, slope: float) -> E:
    return below(x, ("mul", slope, x))


def hard_sigmoid(x: E, alpha: float, beta: float) -> E:
    return clip(("add", ("mul", alpha, x), beta), 0.0, 1.0)


def hard_swish(x: E) -> E:
    return ("mul", x, hard_sigmoid(x, 1 / 6, 0.5))


def sigmoid(x: E) -> E:
    return ("div", 1.0, ("add", 1.0, ("exp", ("neg", x))))


def silu(x: E, alpha: float = 1.0) -> E:
    return ("mul", x, sigmoid(x if alpha == 1 else ("mul", x, alpha)))


def softplus(x: E) -> E:
    """log(1 + exp(x)), of large numbers too."""
    return ("add", ("max", x, 0.0), log1p(("exp", ("neg", ("abs", x)))))


def log1p(x: E) -> E:
    """log(1 + x) of x from 0 on, where x * log(x) is finite: x * log(u) / (u - 1) with u = 1 + x rounded."""
    u = ("add", 1.0, x)
    return ("select", ("equal", u, 1.0), x, ("div", ("mul", x, ("log", u)), ("sub", u, 1.0)))


def expm1(x: E) -> E:
    """exp(x) - 1, of small numbers too: (u - 1) * x / log(u) with u = exp(x) rounded."""
    u = ("exp", x)
    small = ("div", ("mul", ("sub", u, 1.0), x), ("log", u))
    return ("select", ("equal", u, 1.0), x, ("select", ("less", ("abs", x), 0.5), small, ("sub", u, 1.0)))


def mish(x: E) -> E:
    return ("mul", x, ("tanh", softplus(x)))


def gelu(x: E) -> E:
    return ("mul", ("mul", 0.5, x), ("add", 1.0, ("erf", ("mul", x, sqrt(0.5)))))


def gelu_tanh(x: E) -> E:
    inner = ("mul", sqrt(2 / pi), ("add", x, ("mul", 0.044715, ("mul", x, ("mul", x, x)))))
    return ("mul", ("mul", 0.5, x), ("add", 1.0, ("tanh", inner)))


def below(x: E, of_negative: E) -> E:
    """x where it is not negative, else the other."""
    return ("select", ("less", x, 0.0), of_negative, x)


def elu(x: E, alpha: float) -> E:
    return below(x, ("mul", alpha, expm1(x)))


def selu(x: E, alpha: float, gamma: float) -> E:
    return ("mul", gamma, elu(x, alpha))


def celu(x: E, alpha: float) -> E:
    return below(x, ("mul", alpha, expm1(("mul", x, 1 / alpha))))


def softsign(x: E) -> E:
    return ("div", x, ("add", 1.0, ("abs", x)))


def shrink(x: E, lambd: float, bias: float) -> E:
    high = ("select", ("less", lambd, x), ("sub", x, bias), 0.0)
    return ("select", ("less", x, -lambd), ("add", x, bias), high)


def sign(x: E) -> E:
    """-1, 0 or 1; of NaN 0, as in PyTorch."""
    return ("sub", ("less", 0.0, x), ("less", x, 0.0))


def ceil(x: E) -> E:
    return ("neg", ("floor", ("neg", x)))


def trunc(x: E) -> E:
    return ("select", ("less", x, 0.0), ceil(x), ("floor", x))


_LARGEST = 3.4028234663852886e38


def _unless_endless(b: E, of_endless: E, of_others: E) -> E:
    """Replace a quotient by infinity, which would make NaN."""
    return ("select", ("less", _LARGEST, ("abs", b)), of_endless, of_others)


def remainder(a: E, b: E) -> E:
    """Take the remainder with the sign of b (ONNX's Mod of whole numbers)."""
    apart: E = ("select", ("less", ("mul", a, sign(b)), 0.0), b, a)
    return _unless_endless(b, apart, ("sub", a, ("mul", b, ("floor", ("div", a, b)))))


def remainder_of_dividend(a: E, b: E) -> E:
    """Take the remainder with the sign of a (C's fmod); of an operand that is not finite it is NaN. The quotient is
    rounded to fp32, so from 2^24 on it is another number."""
    return _unless_endless(b, ("add", a, ("sub", a, a)), ("sub", a, ("mul", b, trunc(("div", a, b)))))


def is_nan(x: E) -> E:
    return unequal(x, x)


def is_infinite(x: E, negative: bool, positive: bool) -> E:
    of: E = ("abs", x) if negative and positive else ("neg", x) if negative else x
    return ("less", _LARGEST, of) if negative or positive else ("mul", 0.0, ("equal", x, x))


def sinh(x: E) -> E:
    """Near 0 its series, up to x^9; else of |x|, without an overflow before its own."""
    square: E = ("mul", x, x)
    series: E = 1 / 362880
    for factor in (1 / 5040, 1 / 120, 1 / 6):
        series = ("add", ("mul", square, series), factor)
    near: E = ("add", x, ("mul", ("mul", x, square), series))
    half = _half_exp(("abs", x))
    far: E = ("mul", sign(x), ("sub", half, ("div", 0.25, half)))
    return ("select", ("less", ("abs", x), 1.0), near, far)


def cosh(x: E) -> E:
    half = _half_exp(("abs", x))
    return ("add", half, ("div", 0.25, half))


def _half_exp(x: E) -> E:
    """exp(x) / 2, which is finite for a little longer than exp(x)."""
    root: E = ("exp", ("mul", 0.5, x))
    return ("mul", root, ("mul", 0.5, root))


_FAR = 1e4
"""The number from which on log(2 x) is asinh and acosh of x to a part of 2^-24; x * x, which may be infinite, is not
needed."""


def asinh(x: E) -> E:
    size: E = ("abs", x)
    square: E = ("mul", size, size)
    near = log1p(("add", size, ("div", square, ("add", 1.0, ("sqrt", ("add", square, 1.0))))))
    return ("mul", sign(x), ("select", ("less", _FAR, size), _log_of_twice(size), near))


def acosh(x: E) -> E:
    more: E = ("sub", x, 1.0)
    root: E = ("mul", ("sqrt", more), ("sqrt", ("add", x, 1.0)))
    return ("select", ("less", _FAR, x), _log_of_twice(x), log1p(("add", more, root)))


def _log_of_twice(x: E) -> E:
    return ("add", ("log", x), log(2))


def atanh(x: E) -> E:
    size: E = ("abs", x)
    near = log1p(("div", ("mul", 2.0, size), ("sub", 1.0, size)))
    far: E = ("log", ("div", ("add", 1.0, size), ("sub", 1.0, size)))
    return ("mul", ("mul", 0.5, sign(x)), ("select", ("less", size, 0.5), near, far))


# -- values rounded to whole numbers of 8 bits, x = (whole - zero) * scale, as ONNX's DynamicQuantizeLinear does ------

_HIGH: Expression = ("max", "a", 0.0)
_LOW: Expression = ("min", "b", 0.0)
SCALE: Expression = ("select", ("equal", _HIGH, _LOW), 1.0, ("div", ("sub", _HIGH, _LOW), 255.0))
"""The scale of a range whose largest value is a and whose least is b."""
ZERO: Expression = ("round", clip(("div", ("neg", ("min", "a", 0.0)), "b"), 0.0, 255.0))
"""The zero of a range whose least value is a, at scale b."""
ROUNDED: Expression = clip(("add", ("round", ("div", "a", "b")), "c"), 0.0, 255.0)
"""The number of uint8 that a value a becomes at scale b and zero c."""
BACK: Expression = ("mul", ("sub", ROUNDED, "c"), "b")
"""The value that this number stands for."""
