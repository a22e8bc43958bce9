"""Search a device's limits: one probe after the other in each cell of the matrix, each an ordinary job."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.limits import REPEATS, Ended, ended, stand
from orchestrator.model.stopped import Stopped
from orchestrator.spec.expansion.run_order import Slot

from .strategy import Place, Result

MEND_LOST = "see in `farm status` why they were lost; `farm retry {}` goes on with the search"
MEND_FAILED = "mend the cause; `farm retry {}` tries the value again and goes on"


class LimitSearcher:
    """A probe that the farm lost says nothing of the device: it is repeated, some times; so is one kill."""

    done = False

    def __init__(self, place: Place) -> None:
        choice = place.experiment.strategy
        assert choice is not None and choice.limit_search is not None
        self._search, self._id = choice.limit_search, place.experiment_id
        self._series: dict[str, list[Result]] = {}
        self._stopped: list[Stopped] = []

    def tell(self, results: Sequence[Result]) -> None:
        for result in results:
            if result.job.role == "work":
                self._series.setdefault(result.job.cell.at(self._search.dimension, 1).cell_id, []).append(result)

    def ask(self) -> Sequence[Slot]:
        return [slot for own in self._series.values() if (slot := self._next(own)) is not None]

    @property
    def stopped(self) -> Stopped | None:
        """Return the reason of the first of several cells, with how many there are."""
        if not self._stopped:
            return None
        first, *others = self._stopped
        return Stopped(why=f"{first.why}; and so {len(others)} more", remedy=first.remedy) if others else first

    def _next(self, own: Sequence[Result]) -> Slot | None:
        by_value: dict[int, list[Result]] = {}
        for result in own:
            by_value.setdefault(result.job.cell.value(self._search.dimension), []).append(result)
        ends = {value: [_ended(result) for result in results] for value, results in by_value.items()}
        found = stand(self._search, ends)
        if found.stopped_at is not None and "cancelled" not in ends[found.stopped_at]:
            self._stopped.append(self._why(by_value[found.stopped_at]))
        if found.following is None:
            return None
        cell = own[0].job.cell.at(self._search.dimension, found.following)
        return Slot(cell, own[0].job.candidates, len(ends.get(found.following, ())))

    def _why(self, results: Sequence[Result]) -> Stopped:
        where = f"the search for a limit ended at `{results[0].job.cell.label}`"
        failed = next((result for result in results if _ended(result) == "failed"), None)
        if failed is None:
            causes = ", ".join(dict.fromkeys(result.cause for result in results if result.cause))
            return Stopped(why=f"{where}: lost {REPEATS} times ({causes})", remedy=MEND_LOST.format(self._id))
        reasons = failed.block.reasons[:1] if failed.block else ()
        why = ": ".join(filter(None, (failed.cause or failed.outcome, *reasons)))
        return Stopped(why=f"{where}: {why}", remedy=MEND_FAILED.format(self._id))


def _ended(result: Result) -> Ended:
    return ended(result.outcome, result.cause)
