"""The windows of a tensor that holds the places of the largest elements of windows."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Maxima:
    """Windows of which a tensor holds the places: numbers of elements among all rows (pictures x channels)."""

    rows: int
    extents: tuple[int, ...]
    counts: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    """Pads before each axis."""
    by_column: bool
    """Elements of a row are counted along its first axis first."""

    @property
    def plane(self) -> int:
        return prod(self.extents)

    @property
    def steps(self) -> list[int]:
        """The distance of two elements' numbers that are neighbours along an axis."""
        axes = range(len(self.extents))
        return [prod(self.extents[:axis] if self.by_column else self.extents[axis + 1 :]) for axis in axes]

    def numbers(self) -> npt.NDArray[np.intp]:
        """Return the numbers of the elements of a row, in its shape."""
        return np.tensordot(self.steps, np.indices(self.extents), 1)
