"""Numbers that are linear in places along axes and in a position, and two such that inequalities choose between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernels.ir.shapes import Shape


@dataclass(frozen=True)
class Linear:
    """number + position * the position + the sum of axes[k] * the place along axis k, counted from the last one."""

    number: float
    position: float = 0.0
    axes: tuple[float, ...] = ()

    @classmethod
    def along(cls, axis: int, by: float = 1.0) -> Linear:
        """The place along an axis, times a number."""
        return cls(0.0, 0.0, (*(0.0,) * axis, by) if by else ())

    def __add__(self, other: Linear) -> Linear:
        wide = range(max(len(self.axes), len(other.axes)))
        axes = [self.by(axis) + other.by(axis) for axis in wide]
        while axes and not axes[-1]:
            axes.pop()
        return Linear(self.number + other.number, self.position + other.position, tuple(axes))

    def __sub__(self, other: Linear) -> Linear:
        return self + other.times(-1)

    def times(self, number: float) -> Linear:
        axes = tuple(by * number for by in self.axes) if number else ()
        return Linear(self.number * number if number else 0.0, self.position * number, axes)

    def by(self, axis: int) -> float:
        """Return how much it grows with the place along an axis."""
        return self.axes[axis] if axis < len(self.axes) else 0.0

    def at(self, axis: int, place: Linear) -> Linear:
        """Return what it is where the place along an axis is another linear number."""
        return self - Linear.along(axis, self.by(axis)) + place.times(self.by(axis))

    @property
    def constant(self) -> float | None:
        return None if self.position or any(self.axes) else self.number

    def ends(self, box: Box) -> tuple[float, float]:
        """Return the least and the largest of its values."""
        reach = [by * most for by, most in zip((self.position, *self.axes), (box.position, *box.places), strict=False)]
        return self.number + sum(min(0.0, each) for each in reach), self.number + sum(max(0.0, each) for each in reach)


@dataclass(frozen=True)
class Box:
    """The largest position, and the largest place along each axis, from the last one; the least are 0."""

    position: int
    places: tuple[int, ...]

    @classmethod
    def of(cls, position: int, shape: Shape) -> Box:
        return cls(position, tuple(extent - 1 for extent in reversed(shape)))


@dataclass(frozen=True)
class Form:
    """`inside` where all of `where` are 0 or more, else `outside`."""

    inside: Linear
    outside: Linear = field(default=Linear(0.0))
    where: frozenset[Linear] = frozenset()

    @property
    def number(self) -> float | None:
        """The number that it is everywhere."""
        return None if self.where else self.inside.constant

    @property
    def flipped(self) -> Form:
        """The same form told by what it is outside, where it has one condition: not r >= 0 is -r - 1 >= 0."""
        if len(self.where) != 1:
            return self
        (rest,) = self.where
        return Form(self.outside, self.inside, frozenset({rest.times(-1) - Linear(1.0)}))

    @property
    def upright(self) -> Form:
        """The same form with the larger number inside, where it has one condition."""
        inside, outside = self.inside.constant, self.outside.constant
        return self if inside is None or outside is None or inside >= outside else self.flipped

    def mapped(self, each: Callable[[Linear], Linear]) -> Form:
        return Form(each(self.inside), each(self.outside), frozenset(map(each, self.where)))

    def moved(self, to: Mapping[int, int]) -> Form | None:
        """The form whose axes are others, all counted from the last one; None where one of them has no other."""
        parts = (self.inside, self.outside, *self.where)
        if any(by and axis not in to for part in parts for axis, by in enumerate(part.axes)):
            return None

        def each(part: Linear) -> Linear:
            whole = Linear(part.number, part.position)
            for axis, by in enumerate(part.axes):
                whole += Linear.along(to.get(axis, 0), by)
            return whole

        return self.mapped(each)


def truth(rest: Linear, box: Box) -> Form | None:
    """The truth of a linear whole number being 0 or more."""
    low, high = rest.ends(box)
    if any(number % 1 for number in (rest.number, rest.position, *rest.axes)):
        return None
    if low >= 0 or high < 0:
        return Form(Linear(float(low >= 0)))
    return Form(Linear(1.0), Linear(0.0), frozenset({rest}))


def chosen(condition: Form | None, a: Form | None, b: Form | None) -> Form | None:
    """`a` where a truth holds, else `b`."""
    if condition is None or condition.number is not None:
        return None if condition is None else a if condition.number else b
    inside, outside = condition.inside.constant, condition.outside.constant
    if inside is None or outside is None or (inside != 0) == (outside != 0):
        return None
    first, second = (a, b) if inside else (b, a)
    if first is None or second is None or second.where:
        return None
    if first.where <= condition.where:
        return Form(first.inside, second.inside, condition.where).upright
    same = first.outside == second.inside
    return Form(first.inside, second.inside, condition.where | first.where).upright if same else None


def in_each_case(forms: list[Form], compute: Callable[[list[Linear]], Form | None]) -> Form | None:
    """A function of forms; where two of them have cases, it is one and the same but where both are inside, or both
    outside."""
    if not any(form.where for form in forms):
        return compute([form.inside for form in forms])
    found = _by_case(forms, compute) or _by_case([form.flipped for form in forms], compute)
    return None if found is None else found.upright


def _by_case(forms: list[Form], compute: Callable[[list[Linear]], Form | None]) -> Form | None:
    cases = [form for form in forms if form.where]

    def of(insides: list[bool]) -> Linear | None:
        found = compute([form.inside if inside else form.outside for form, inside in zip(forms, insides, strict=True)])
        return found.inside if found is not None and not found.where else None

    inside, outside = of([True] * len(forms)), of([not form.where for form in forms])
    if inside is None or outside is None:
        return None
    if len({form.where for form in cases}) > 1:
        mixed = {of([other is not form for other in forms]) for form in cases}
        if len(cases) > 2 or mixed != {outside}:
            return None
    return Form(inside, outside, frozenset().union(*(form.where for form in cases)))


def combined(function: str, forms: list[Form], box: Box) -> Form | None:
    """A function of numbers, where it leaves them linear."""

    def compute(values: list[Linear]) -> Form | None:
        found = _computed(function, values, box)
        return None if found is None else Form(found)

    return in_each_case(forms, compute)


def _computed(function: str, values: list[Linear], box: Box) -> Linear | None:
    numbers = [value.constant for value in values]
    match function, values:
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a - b
        case "neg", [a]:
            return a.times(-1)
        case "mul", [a, b] if numbers[0] is not None or numbers[1] is not None:
            return b.times(numbers[0]) if numbers[0] is not None else a.times(numbers[1] or 0.0)
        case "div", [a, b] if numbers[1]:
            return a.times(1 / numbers[1])
        case "equal", [a, b]:
            low, high = (a - b).ends(box)
            return Linear(float(low == high == 0)) if low == high or low > 0 or high < 0 else None
        case (("max" | "min"), [a, b]):
            low, high = (a - b).ends(box)
            if low >= 0 or high <= 0:
                return a if (low >= 0) == (function == "max") else b
    return None


def best_along(form: Form, axis: int, kind: str, box: Box) -> Form | None:
    """The largest or the least along an axis (`kind`: max or min), where one of each row is inside, and that is it."""
    inside, outside = form.inside.constant, form.outside.constant
    if inside is None or outside is None or kind not in ("max", "min") or (kind == "max") != (inside >= outside):
        return None
    for edge in form.where:
        by = edge.by(axis)
        place = edge.at(axis, Linear(0.0)).times(-1 / by) if abs(by) == 1 else Linear(0.0)
        low, high = place.ends(box)
        if low >= 0 and high <= box.places[axis] and all(each.at(axis, place).ends(box)[0] >= 0 for each in form.where):
            return Form(form.inside)
    return None
