"""Sequential sampling: a further round of the cells that are not precise enough yet (`sampling.target_interval`)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis import stopping_rule
from orchestrator.analysis.stopping_rule import Need
from orchestrator.spec.expansion import run_order
from orchestrator.spec.expansion.run_order import Slot

from .strategy import Place, Result


class UntilPrecise:
    """A round is one block of each such cell in the order of the design, and a canary where there are some."""

    stopped = None

    def __init__(self, place: Place) -> None:
        self._place, self._sampling = place, place.experiment.sampling
        self._made: dict[str, list[Result]] = {}
        self._canaries: list[Result] = []
        self.done = False

    def tell(self, results: Sequence[Result]) -> None:
        for result in results:
            if result.job.role == "work":
                self._made.setdefault(result.job.cell.cell_id, []).append(result)
            else:
                self._canaries.append(result)

    def ask(self) -> Sequence[Slot]:
        wanting = {cell_id: _following(own) for cell_id, own in self._made.items() if self._wants_more(own)}
        self.done = all(slot.block + 1 >= self._sampling.max_blocks for slot in wanting.values())
        if not wanting:
            return ()
        cells = [(slot.cell, slot.candidates) for slot in wanting.values()]
        number = max(slot.block for slot in wanting.values())
        last = self._place.experiment.placement.last
        order = run_order.arrange(cells, [number], self._sampling.order, self._place.experiment_id, last)
        return [
            *(wanting[slot.cell.cell_id] for slot in order),
            *([_following(self._canaries)] if self._canaries else ()),
        ]

    def _wants_more(self, own: Sequence[Result]) -> bool:
        blocks = [result.block for result in own if result.block is not None]
        return stopping_rule.decide(self._sampling, blocks, len(own)).need is Need.MORE


def _following(results: Sequence[Result]) -> Slot:
    """One more of the same."""
    job = results[0].job
    return Slot(job.cell, job.candidates, 1 + max(result.job.block for result in results), job.role)
