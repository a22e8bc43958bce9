"""Operands that broadcast to a result, as strides along as few axes as tell the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from .shapes import Shape

MAX_AXES = 6
"""Axes of a `map` that the agent computes."""


@dataclass(frozen=True)
class Strided:
    """Extents of the result, outermost first, and for each operand the elements from one to the next along each."""

    extents: Shape
    strides: tuple[Shape, ...]

    @property
    def natural(self) -> Shape:
        """Strides of the result, and of an operand of its shape."""
        return _natural(self.extents)


def _natural(shape: Shape) -> Shape:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def strided(shape: Shape, operands: Sequence[Shape]) -> Strided:
    """Axes of one element go, and neighbours join where each operand lets them."""
    columns: list[tuple[int, tuple[int, ...]]] = []
    aligned = [(1,) * (len(shape) - len(given)) + given for given in operands]
    natural = [_natural(given) for given in aligned]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        steps = tuple(stride[axis] if given[axis] > 1 else 0 for given, stride in zip(aligned, natural, strict=True))
        if columns and all(before == step * extent for before, step in zip(columns[-1][1], steps, strict=True)):
            extent *= columns.pop()[0]
        columns.append((extent, steps))
    columns = columns or [(1, (0,) * len(operands))]
    return Strided(
        tuple(extent for extent, _ in columns),
        tuple(tuple(steps[k] for _, steps in columns) for k in range(len(operands))),
    )


def along_channels(given: Shape, shape: Shape, *, constant: bool) -> str:
    """Tell how an operand goes with a result (N, C, ...): f(ull), c(hannels), one value each, or p(ixels), the same in
    all channels; in capitals where each picture has its own. Empty: otherwise."""
    if given == shape:
        return "F"
    n, c, *rest = (1,) * (len(shape) - len(given)) + given
    if n not in (1, shape[0]) or (len(given) < len(shape) and not constant):
        return ""
    same = (c == shape[1], *(extent == whole for extent, whole in zip(rest, shape[2:], strict=True)))
    one = (c == 1, *(extent == 1 for extent in rest))
    if same[0] and all(one[1:]):
        return "C" if n == shape[0] else "c"
    if len(given) < len(shape):
        return ""
    if one[0] and all(same[1:]):
        return "P" if n == shape[0] else "p"
    return "f" if all(same) and n == 1 else ""
