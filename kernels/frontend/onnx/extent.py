"""Extents of axes: whole numbers, or numbers of rows between two bounds that are known when a plan runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any


@dataclass(frozen=True)
class Count:
    """`expression`: the name of a tensor (1,) that holds the number, or (function, operand, operand) of counts and
    whole numbers; `least` and `most` are its bounds. Two are equal if they are computed in the same way."""

    expression: tuple[Any, ...] | str
    least: int
    most: int

    def __add__(self, other: Extent) -> Extent:
        if is_number(other, 0):
            return self
        for whole, part in ((self, other), (other, self)):
            if isinstance(whole, Count) and whole.expression[0] == "sub" and whole.expression[2] == part:
                rest: Extent = whole.expression[1]  # type: ignore[assignment]
                return rest
        return _of("add", self, other, low(other) + self.least, high(other) + self.most)

    __radd__ = __add__

    def __sub__(self, other: Extent) -> Extent:
        if other == self:
            return 0
        if is_number(other, 0):
            return self
        if self.expression[0] == "add" and other in self.expression[1:]:
            rest: Extent = self.expression[2 if self.expression[1] == other else 1]  # type: ignore[assignment]
            return rest
        return _of("sub", self, other, self.least - high(other), self.most - low(other))

    def __rsub__(self, other: int) -> Extent:
        return _of("sub", int(other), self, other - self.most, other - self.least)

    def __mul__(self, other: Extent) -> Extent:
        if not isinstance(other, Count):
            if other in (0, 1):
                return self if other else 0
            base, times = factors(self)
            if len(times) == 1 and times[0] != self:
                return times[0] * (base * int(other))
        ends = [a * b for a in (self.least, self.most) for b in (low(other), high(other))]
        return _of("mul", self, other, min(ends), max(ends))

    __rmul__ = __mul__


Extent = int | Count


def is_number(extent: Any, number: int) -> bool:
    return not isinstance(extent, Count) and int(extent) == number


def low(extent: Extent) -> int:
    return extent.least if isinstance(extent, Count) else int(extent)


def high(extent: Extent) -> int:
    return extent.most if isinstance(extent, Count) else int(extent)


def _of(function: str, a: Extent, b: Extent, least: int, most: int) -> Count:
    a, b = (part if isinstance(part, Count) else int(part) for part in (a, b))
    return Count((function, a, b), least, most)


def smaller(a: Extent, b: Extent) -> Extent:
    if a == b or high(a) <= low(b):
        return a
    return b if high(b) <= low(a) else _of("min", a, b, min(low(a), low(b)), min(high(a), high(b)))


def larger(a: Extent, b: Extent) -> Extent:
    if a == b or low(a) >= high(b):
        return a
    return b if low(b) >= high(a) else _of("max", a, b, max(low(a), low(b)), max(high(a), high(b)))


def factors(extent: Extent) -> tuple[int, list[Count]]:
    """A whole number and the counts that it is multiplied by."""
    if not isinstance(extent, Count):
        return int(extent), []
    if isinstance(extent.expression, tuple) and extent.expression[0] == "mul":
        (a, first), (b, second) = (factors(part) for part in extent.expression[1:])
        return a * b, first + second
    return 1, [extent]


def most(extent: Extent) -> int:
    """The extent to which an axis is padded."""
    return max(0, high(extent))


def quotient(of: list[Extent], by: list[Extent]) -> Extent:
    """The product of these extents, divided by the product of those. Raises ValueError where that is no extent."""
    (top, counts), (bottom, less) = (_product(part) for part in (of, by))
    for count in less:
        counts.remove(count)  # ValueError where it is not there
    if not bottom or top % bottom:
        raise ValueError(f"{top} is no multiple of {bottom}")
    found: Extent = top // bottom
    for count in counts:
        found = count * found
    return found


def _product(extents: list[Extent]) -> tuple[int, list[Count]]:
    parts = [factors(extent) for extent in extents]
    return prod(base for base, _ in parts), [count for _, counts in parts for count in counts]
