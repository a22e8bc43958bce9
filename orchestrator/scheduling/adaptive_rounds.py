"""Decide in each turn of the scheduler which held jobs are added (sequential sampling).

A device's cells are decided about when its blocks are over. Those that need it get one more block each, as a round in
the order of the design with a canary at its end where there are canaries; the rest is dropped. The ledger tells when
there is something to decide, so that a turn without costs one look at an index. Another scheduler may take over at
any time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from orchestrator.analysis import stopping_rule
from orchestrator.analysis.statistics import newest_attempts
from orchestrator.analysis.stopping_rule import Need
from orchestrator.errors import ServiceDown
from orchestrator.expansion import run_order
from orchestrator.expansion.expand import job as job_of
from orchestrator.ledger import JobRow, JobState, Lane, Ledger
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job

log = logging.getLogger(__name__)

LANES_PER_TURN = 5


class Rounds:
    """Decides by the figures of blocks, which are read anew each time: it remembers nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def run(self) -> int:
        """Decide where something is to be decided; the number of blocks that were added."""
        return sum(self._decide(lane) for lane in self._ledger.undecided(LANES_PER_TURN))

    def _decide(self, lane: Lane) -> int:
        """A decision that fails adds nothing: what was measured stands, and the experiment ends."""
        try:
            experiment = self._ledger.experiment(lane.experiment_id).experiment
            jobs = self._ledger.lane_jobs(lane)
            add, reserve = self._more(experiment, lane, jobs)
        except ServiceDown:
            raise
        except Exception:
            log.exception(
                "event=judging_failed experiment=%s devices=%s", lane.experiment_id, ",".join(lane.candidates)
            )
            add, reserve = [], []
        if not self._ledger.extend(lane, add, reserve):
            return 0
        log.info(
            "event=extended experiment=%s devices=%s blocks=%d",
            lane.experiment_id, ",".join(lane.candidates), len(add),
        )  # fmt: skip
        return len(add)

    def _more(self, experiment: Experiment, lane: Lane, jobs: Sequence[JobRow]) -> tuple[list[Job], list[Job]]:
        """The jobs of the next round, and those that are held for the one after."""
        over = _over(jobs)
        found = newest_attempts(self._ledger.figures_of([row.job_id for row in over]))
        wanting = []
        for row in (row for row in jobs if row.state is JobState.HELD):
            cell_id = row.job.cell.cell_id
            own = [each for each in found if each.cell_id == cell_id]
            made = sum(each.job.cell.cell_id == cell_id for each in over)
            if stopping_rule.decide(experiment.sampling, own, made).need is Need.MORE:
                wanting.append(row.job)
        return _next_round(experiment, lane, wanting, jobs), _after(experiment, lane, wanting)


def _over(jobs: Sequence[JobRow]) -> list[JobRow]:
    """Blocks of a lane that is to be decided, without canaries: all but the held ones."""
    return [row for row in jobs if row.state is not JobState.HELD and row.job.role == "work"]


def _next_round(experiment: Experiment, lane: Lane, wanting: Sequence[Job], jobs: Sequence[JobRow]) -> list[Job]:
    """One block of each cell that wants one, in the order of the design, and a canary after them."""
    if not wanting:
        return []
    by_cell = {job.cell.cell_id: job for job in wanting}
    number = max(job.block for job in wanting)
    slots = run_order.arrange(
        [(job.cell, lane.candidates) for job in wanting], [number], experiment.sampling.order, lane.experiment_id
    )
    ordered = [by_cell[slot.cell.cell_id] for slot in slots]
    canaries = [row.job for row in jobs if row.job.role == "canary"]
    if canaries:
        following = run_order.canary(canaries[0].cell, lane.candidates, 1 + max(job.block for job in canaries))
        ordered.append(job_of(experiment, lane.experiment_id, following))
    return ordered


def _after(experiment: Experiment, lane: Lane, wanting: Sequence[Job]) -> list[Job]:
    """What may follow the next round: nothing for cells that it brings to the cap."""
    return [
        job_of(experiment, lane.experiment_id, run_order.Slot(job.cell, lane.candidates, job.block + 1))
        for job in wanting
        if job.block + 1 < experiment.sampling.max_blocks
    ]
