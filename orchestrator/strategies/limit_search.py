"""Search a device's limits: one probe after the other in each cell of the matrix, each an ordinary job."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.limits import REPEATS, Ended, ended, next_value
from orchestrator.expansion.run_order import Slot

from .strategy import Place, Result


class LimitSearcher:
    """A probe that the farm lost says nothing of the device: it is repeated, some times."""

    done = False

    def __init__(self, place: Place) -> None:
        choice = place.experiment.strategy
        assert choice is not None and choice.limit_search is not None
        self._search = choice.limit_search
        self._series: dict[str, list[Result]] = {}

    def tell(self, results: Sequence[Result]) -> None:
        for result in results:
            if result.job.role == "work":
                self._series.setdefault(result.job.cell.at(self._search.dimension, 1).cell_id, []).append(result)

    def ask(self) -> Sequence[Slot]:
        return [slot for own in self._series.values() if (slot := self._next(own)) is not None]

    def _next(self, own: Sequence[Result]) -> Slot | None:
        dimension, job = self._search.dimension, own[0].job
        by_value: dict[int, list[Ended]] = {}
        for result in own:
            by_value.setdefault(result.job.cell.value(dimension), []).append(ended(result.outcome, result.cause))
        for value, ends in by_value.items():
            if ends.count("lost") == len(ends):
                return Slot(job.cell.at(dimension, value), job.candidates, len(ends)) if len(ends) < REPEATS else None
        if any("cancelled" in ends for ends in by_value.values()):
            return None
        ran = {value for value, ends in by_value.items() if "ran" in ends}
        following = next_value(self._search, ran, by_value.keys() - ran)
        return None if following is None else Slot(job.cell.at(dimension, following), job.candidates, 0)
