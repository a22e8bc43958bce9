"""The jobs that follow from the results of others, where that is more than the matrix and its blocks."""

from __future__ import annotations

from pydantic import Field

from orchestrator.model.axes import MATRIX_AXES
from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Share

from .matrix import Matrix
from .workload import Workload


class LimitSearch(Model):
    """Grow one dimension until the device refuses or kills, on each device and in each configuration of the matrix."""

    dimension: str
    """An axis that is a number (`batch`), which the matrix has with one value; or a parameter of the network that
    `workload.parameters` has: `size`, or one number of a list, counted from 0: `hidden.0`. The search begins there."""
    most: int = Field(default=1 << 20, ge=2)
    """Nothing larger is tried."""
    tolerance: Share = 0.02
    """The search ends where the smallest value that did not run exceeds the largest that ran by this share at most."""
    step: int = Field(default=1, ge=1)
    """The unit of values between two others that were tried: `16` where a network needs multiples of that."""

    def begin(self, workload: Workload, matrix: Matrix) -> int:
        """The first value. Raises ValueError, which says what can be searched."""
        listed = matrix.options.get(self.dimension)
        axis = MATRIX_AXES.get(self.dimension)
        if axis is not None and axis.type is int:
            if listed is None or len(listed) != 1:
                raise ValueError(f"give `matrix.{self.dimension}` one value: the search begins there")
            return int(listed[0])
        name, _, place = self.dimension.partition(".")
        sizes = workload.parameters.get(name)
        if sizes is None:
            raise ValueError(
                f"`{self.dimension}` is neither an axis that is a number nor a parameter that `workload.parameters` has"
            )
        if isinstance(sizes, int):
            return sizes
        if not place.isdigit() or int(place) >= len(sizes):
            raise ValueError(f"`{name}` is a list: name one of its numbers, `{name}.0` to `{name}.{len(sizes) - 1}`")
        return sizes[int(place)]


class StrategyChoice(Model):
    """A search for a device's limits, or a strategy of your own; exactly one of the two."""

    limit_search: LimitSearch | None = None
    file: str | None = None
    """A Python file with a class `Strategy`, relative to the experiment file. It is code that runs with the scheduler's
    rights."""
    file_sha256: str | None = None
    """Filled in at submission."""
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """Keywords of its class."""

    @rule
    def _one_of(self) -> None:
        if (self.limit_search is None) == (self.file is None):
            raise ValueError("give exactly one of `limit_search` and `file`")
        if self.options and self.file is None:
            raise ValueError("`options` are those of your own `file`")
