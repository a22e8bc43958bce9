"""Resizing an image: the place in the source for each row or column of the result, in whole numbers.

The source coordinate of result element o is (o * step + start) / divisor, kept inside the source. `nearest` takes the
element at the floor of it, `linear` mixes that one and the next by the fraction that remains.

| mode | coordinates | as in ONNX |
|---|---|---|
| linear | half_pixel, asymmetric, align_corners | coordinate_transformation_mode |
| nearest | asymmetric | nearest_mode floor |
| nearest | half_pixel | nearest_mode round_prefer_floor |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernels.errors import ModelError


@dataclass(frozen=True)
class Ratio:
    """Coordinates along one axis; see the module."""

    step: int
    start: int
    divisor: int


_RATIOS: dict[tuple[str, str], Callable[[int, int], Ratio]] = {
    ("linear", "half_pixel"): lambda source, size: Ratio(2 * source, source - size, 2 * size),
    ("linear", "asymmetric"): lambda source, size: Ratio(source, 0, size),
    ("linear", "align_corners"): lambda source, size: Ratio(source - 1, 0, max(size - 1, 1)),
    ("nearest", "asymmetric"): lambda source, size: Ratio(source, 0, size),
    ("nearest", "half_pixel"): lambda source, size: Ratio(2 * source, source - 1, 2 * size),
}

PAD_MODES = {"constant": 0, "reflect": 1, "edge": 2}
"""The numbers that kernels and the CPU operation give the modes of padding."""


def check_coordinates(mode: str, coordinates: str) -> None:
    """Raise ModelError for a way of resizing that is not known."""
    if (mode, coordinates) not in _RATIOS:
        known = ", ".join(" ".join(pair) for pair in _RATIOS)
        raise ModelError(f"resizing by {mode} {coordinates} is not known; known are {known}")


def ratio(mode: str, coordinates: str, source: int, size: int) -> Ratio:
    """Coordinates of an axis of `source` elements that becomes `size` long."""
    return _RATIOS[mode, coordinates](source, size)
