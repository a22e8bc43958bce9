"""Further rounds of blocks: the part of the scheduler's turn that decides about held jobs (sequential sampling).

A device's cells are judged when its blocks are over. Those that need it get one more block each, as a round in the
order of the design with a canary at its end where there are canaries; the rest is dropped. The ledger tells when there
is something to decide, so that a turn without costs one look at an index. Another scheduler may take over at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from . import design, matrix, sequential
from .errors import ServiceDown
from .ledger import JobRow, JobState, Lane, Ledger
from .model.experiment import Experiment
from .model.job import Job
from .sequential import BlockFigures, Need
from .statistics import newest_attempts

log = logging.getLogger(__name__)

LANES_PER_TURN = 5
MAX_KNOWN = 20_000
"""Blocks whose figures are kept in memory: a record is large, and each round needs all of its cell."""


class Rounds:
    """Remembers the figures of the blocks that it has read; it may forget them at any time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, BlockFigures | None] = {}

    def run(self) -> int:
        """Decide where something is to be decided; the number of blocks that were added."""
        return sum(self._decide(lane) for lane in self._ledger.undecided(LANES_PER_TURN))

    def _decide(self, lane: Lane) -> int:
        """A decision that fails adds nothing: what was measured stands, and the experiment ends."""
        try:
            add, reserve = self._more(lane)
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

    def _more(self, lane: Lane) -> tuple[list[Job], list[Job]]:
        """The jobs of the next round, and those that are held for the one after."""
        experiment = self._ledger.experiment(lane.experiment_id).experiment
        jobs = self._ledger.lane_jobs(lane)
        over = [row for row in jobs if row.state is not JobState.HELD and row.job.role == "work"]
        found = self._figures(experiment, over)
        wanting = []
        for row in (row for row in jobs if row.state is JobState.HELD):
            cell_id = row.job.cell.cell_id
            own = [each for each in found if each.cell_id == cell_id]
            made = sum(each.job.cell.cell_id == cell_id for each in over)
            if sequential.judge(experiment.sampling, own, made).need is Need.MORE:
                wanting.append(row.job)
        return _next_round(experiment, lane, wanting, jobs), _after(experiment, lane, wanting)

    def _figures(self, experiment: Experiment, rows: Sequence[JobRow]) -> list[BlockFigures]:
        unknown = [row.job_id for row in rows if row.job_id not in self._known]
        if len(self._known) > MAX_KNOWN:
            self._known, unknown = {}, [row.job_id for row in rows]
        self._known |= dict.fromkeys(unknown)
        for record in newest_attempts(self._ledger.records_of(unknown)):
            self._known[record.job_id] = sequential.figures(record, experiment.sampling.mode)
        return [found for row in rows if (found := self._known[row.job_id]) is not None]


def _next_round(experiment: Experiment, lane: Lane, wanting: Sequence[Job], jobs: Sequence[JobRow]) -> list[Job]:
    """One block of each cell that wants one, in the order of the design, and a canary after them."""
    if not wanting:
        return []
    by_cell = {job.cell.cell_id: job for job in wanting}
    number = max(job.block for job in wanting)
    slots = design.arrange(
        [(job.cell, lane.candidates) for job in wanting], [number], experiment.sampling.order, lane.experiment_id
    )
    ordered = [by_cell[slot.cell.cell_id] for slot in slots]
    canaries = [row.job for row in jobs if row.job.role == "canary"]
    if canaries:
        following = design.canary(canaries[0].cell, lane.candidates, 1 + max(job.block for job in canaries))
        ordered.append(matrix.job(experiment, lane.experiment_id, following))
    return ordered


def _after(experiment: Experiment, lane: Lane, wanting: Sequence[Job]) -> list[Job]:
    """What may follow the next round: nothing for cells that it brings to the cap."""
    return [
        matrix.job(experiment, lane.experiment_id, design.Slot(job.cell, lane.candidates, job.block + 1))
        for job in wanting
        if job.block + 1 < experiment.sampling.max_blocks
    ]
