"""Functions that are made of the ones that every backend has (`expressions.py`)."""

from __future__ import annotations

from math import pi, sqrt

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
    return ("min", ("max", x, low), high)


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
    """log(1 + x) of x from 0 to 1, of small ones too: x * log(u) / (u - 1) with u = 1 + x rounded."""
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
    return ("sub", ("less", 0.0, x), ("less", x, 0.0))


def ceil(x: E) -> E:
    return ("neg", ("floor", ("neg", x)))


def trunc(x: E) -> E:
    return ("select", ("less", x, 0.0), ceil(x), ("floor", x))


_LARGEST = 3.4028234663852886e38


def _unless_endless(b: E, of_endless: E, of_others: E) -> E:
    """What a quotient by infinity would make NaN."""
    return ("select", ("less", _LARGEST, ("abs", b)), of_endless, of_others)


def remainder(a: E, b: E) -> E:
    """Of the sign of b (ONNX's Mod of whole numbers)."""
    apart: E = ("select", ("less", ("mul", a, sign(b)), 0.0), b, a)
    return _unless_endless(b, apart, ("sub", a, ("mul", b, ("floor", ("div", a, b)))))


def remainder_of_dividend(a: E, b: E) -> E:
    """Of the sign of a (C's fmod)."""
    return _unless_endless(b, a, ("sub", a, ("mul", b, trunc(("div", a, b)))))


def is_nan(x: E) -> E:
    return unequal(x, x)


def is_infinite(x: E, negative: bool, positive: bool) -> E:
    of: E = ("abs", x) if negative and positive else ("neg", x) if negative else x
    return ("less", _LARGEST, of) if negative or positive else ("mul", 0.0, ("equal", x, x))


def whole(x: E) -> E:
    """x, a whole number, or infinity of its sign from 2^24 on, where it may have been rounded."""
    return ("select", ("less", 2.0**24 - 1, ("abs", x)), ("mul", x, _LARGEST), x)


def sinh(x: E) -> E:
    large = ("mul", 0.5, ("sub", ("exp", x), ("exp", ("neg", x))))
    cube = ("mul", ("mul", x, x), x)
    small = ("add", x, ("mul", cube, 1 / 6))
    return ("select", ("less", ("abs", x), 0.05), small, large)


def cosh(x: E) -> E:
    return ("mul", 0.5, ("add", ("exp", x), ("exp", ("neg", x))))


def asinh(x: E) -> E:
    size = ("abs", x)
    root = ("sqrt", ("add", ("mul", size, size), 1.0))
    return ("mul", sign(x), ("log", ("add", size, root)))


def acosh(x: E) -> E:
    return ("log", ("add", x, ("sqrt", ("sub", ("mul", x, x), 1.0))))


def atanh(x: E) -> E:
    return ("mul", 0.5, ("log", ("div", ("add", 1.0, x), ("sub", 1.0, x))))
