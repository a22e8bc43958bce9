"""One form for all spellings of an expression, so that a function is known however an exporter wrote it.

A sum of products: monomials of atoms, each with a coefficient. An atom is an operand, or a function of canonical forms.
Bounds are taken of an atom sum whose first coefficient is 1 and which adds no constant: 6 * clip(x / 6 + 1/2, 0, 1) and
clip(x + 3, 0, 6) are one form. Numbers are compared to six digits, as exporters round them to fp32.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import inf
from typing import Any

from kernels.ir.expressions import Expression

Form = tuple[tuple[tuple[Hashable, ...], float], ...]
"""Monomials, sorted, each with its coefficient."""
_Sum = dict[tuple[Hashable, ...], float]
_MOST_TERMS, _MOST_POWER, _NONE = 16, 4, 1e-12


@lru_cache(maxsize=4096)
def canonical(expression: Expression) -> Form:
    """Return the form that all spellings of a function of fp32 share, up to rounding."""
    return tuple(sorted(_rounded(exact(expression)), key=repr))


def exact(expression: Expression) -> Form:
    """Return this form with its numbers as they are."""
    return _frozen(_sum(expression))


def clipped(form: Form) -> tuple[float, float, float, float] | None:
    """Return (k, d, low, high) where a form of `a` is k * clip(a, low, high) + d; None where it is another."""
    terms = dict(form)
    shift = terms.pop((), 0.0)
    match list(terms.items()):
        case [((("clip", inner, float(low), float(high)),), factor)] if inner == exact("a"):
            return factor, shift, low, high
    return None


def leaking(form: Form) -> float | None:
    """Return the factor of negative numbers where a form of `a` keeps the others; None where it is another."""
    terms = dict(form)
    positive, negative = (("clip", exact("a"), *ends) for ends in ((0.0, inf), (-inf, 0.0)))
    return terms[negative,] if terms.keys() == {(positive,), (negative,)} and terms[positive,] == 1 else None


def _frozen(terms: _Sum) -> Form:
    return tuple(sorted(((monomial, factor) for monomial, factor in terms.items() if abs(factor) > _NONE), key=repr))


def _rounded(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(map(_rounded, part))
    return float(f"{part:.6g}") if isinstance(part, float) else part


def _sum(expression: Expression) -> _Sum:
    match expression:
        case str(operand):
            return {(operand,): 1.0}
        case int(number) | float(number):
            return {(): float(number)}
        case ("add", left, right):
            return _added(_sum(left), _sum(right))
        case ("sub", left, right):
            return _added(_sum(left), _sum(right), -1.0)
        case ("neg", inner):
            return _added({}, _sum(inner), -1.0)
        case ("mul", left, right):
            return _times(_sum(left), _sum(right))
        case ("div", left, right):
            return _times(_sum(left), _inverse(_sum(right)))
        case ("pow", inner, float(power)) if power in range(2, _MOST_POWER + 1):
            return _times(_sum(inner), _sum(("pow", inner, power - 1)) if power > 2 else _sum(inner))
        case ("pow", inner, float(power)) if power in (-1.0, 1.0):
            return _sum(inner) if power > 0 else _inverse(_sum(inner))
        case ("max" | "min" as way, *sides) if any(isinstance(side, int | float) for side in sides):
            bound, inner = sorted(sides, key=lambda side: not isinstance(side, int | float))
            return _bounded(_sum(inner), *((bound, inf) if way == "max" else (-inf, bound)))
        case ("select", ("less", x, 0.0), ("mul", float(slope), y) | ("mul", y, float(slope)), z) if x == y == z:
            negative = {each: slope * by for each, by in _bounded(_sum(x), -inf, 0.0).items()}
            return _added(_bounded(_sum(x), 0.0, inf), negative)
    name, *arguments = expression
    forms = [exact(argument) for argument in arguments]
    return {((name, *(sorted(forms, key=repr) if name in ("max", "min", "equal") else forms)),): 1.0}


def _added(left: _Sum, right: _Sum, sign: float = 1.0) -> _Sum:
    return {each: left.get(each, 0.0) + sign * right.get(each, 0.0) for each in {**left, **right}}


def _times(left: _Sum, right: _Sum) -> _Sum:
    if len(left) * len(right) > _MOST_TERMS:
        return {tuple(sorted((_frozen(left), _frozen(right)), key=repr)): 1.0}
    found: _Sum = {}
    for one, factor in left.items():
        for other, by in right.items():
            monomial = tuple(sorted((*one, *other), key=repr))
            found[monomial] = found.get(monomial, 0.0) + factor * by
    return found


def _inverse(terms: _Sum) -> _Sum:
    return {(): 1 / terms[()]} if set(terms) == {()} and terms[()] else {(("inverse", _frozen(terms)),): 1.0}


def _bounded(terms: _Sum, low: float, high: float) -> _Sum:
    shift = terms.get((), 0.0)
    others = {each: factor for each, factor in terms.items() if each and factor}
    if not others:
        return {(): min(max(shift, low), high)}
    factor = others[min(others, key=repr)]
    low, high = sorted(((low - shift) / factor, (high - shift) / factor))
    inner = _frozen({each: by / factor for each, by in others.items()})
    bounded: Hashable = inner
    match inner:
        case (((("clip", within, float(least), float(most)),), 1.0),) if max(low, least) <= min(high, most):
            bounded, low, high = within, max(low, least), min(high, most)
    return {(("clip", bounded, low, high),): factor, (): shift}
