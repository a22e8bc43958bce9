"""Ask in each turn of the scheduler the strategies of experiments which jobs follow.

A strategy is asked about a choice of devices when its jobs there are over. As long as something may follow, one job is
held there, so that the experiment is not finished; it is never run. The ledger tells where there is something to ask,
so that a turn without costs one look at an index. Another scheduler may take over at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from orchestrator.analysis.statistics import newest_attempts
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import JobRow, JobState, Lane, Ledger
from orchestrator.model.errors import FarmError, ServiceDown, SpecError, Unreadable
from orchestrator.model.job import Job
from orchestrator.model.stopped import Stopped
from orchestrator.spec.expansion.expand import job as job_of

from .registry import strategy_for
from .strategy import Place, Result

log = logging.getLogger(__name__)

LANES_PER_TURN = 5
OWN_AT_ONCE = 2
"""Files of users that are asked at the same time."""
TOLD = 1000
"""Characters of why a strategy failed."""


class FurtherJobs:
    """Results are read from the ledger anew each time: it remembers nothing but whom it is asking. A user's own file is
    asked beside the turn, and what it says counts when it comes."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger, self._artifacts = ledger, artifacts
        self._pool = ThreadPoolExecutor(OWN_AT_ONCE, thread_name_prefix="strategy")
        self._asking: dict[int, Future[int]] = {}
        """The questions under way, by lane."""

    def run(self) -> int:
        """Ask where something is to be asked; the number of jobs that were added."""
        over = [lane for lane, answer in self._asking.items() if answer.done()]
        added = sum(self._asking.pop(lane).result() for lane in over)
        lanes = self._ledger.undecided(LANES_PER_TURN + len(self._asking))
        for lane in [lane for lane in lanes if lane.lane_id not in self._asking]:
            if self._is_own(lane):
                self._asking[lane.lane_id] = self._pool.submit(self._decide, lane)
            else:
                added += self._decide(lane)
        return added

    def close(self) -> None:
        """Wait for what is being asked."""
        self._pool.shutdown(cancel_futures=True)

    def _is_own(self, lane: Lane) -> bool:
        try:
            choice = self._ledger.experiment(lane.experiment_id).experiment.strategy
        except ServiceDown:
            raise
        except FarmError:  # it cannot be read: whoever decides says so
            return False
        return choice is not None and choice.file is not None

    def _decide(self, lane: Lane) -> int:
        """A decision that fails adds nothing: what was measured stands, and the experiment ends."""
        try:
            add, hold, stopped = self._asked(lane)
        except ServiceDown:
            raise
        except Exception as e:
            log.exception(
                "event=judging_failed experiment=%s devices=%s", lane.experiment_id, ",".join(lane.candidates)
            )
            add, hold, stopped = [], [], _failed(e)
        if not self._ledger.extend(lane, add, hold, stopped):
            return 0
        log.info(
            "event=extended experiment=%s devices=%s blocks=%d",
            lane.experiment_id, ",".join(lane.candidates), len(add),
        )  # fmt: skip
        return len(add)

    def _asked(self, lane: Lane) -> tuple[list[Job], list[Job], Stopped | None]:
        """The jobs that follow, the one that is held until they are over, and why it ended early."""
        if not lane.candidates:
            raise Unreadable("its choice of devices in the ledger cannot be read", remedy="run the experiment again")
        experiment = self._ledger.experiment(lane.experiment_id).experiment
        results = self._results([row for row in self._ledger.lane_jobs(lane) if row.state is not JobState.HELD])
        strategy = strategy_for(Place(experiment, lane.experiment_id, lane.candidates), self._artifacts)
        strategy.tell(results)
        add = [job_of(experiment, lane.experiment_id, slot) for slot in strategy.ask()]
        known = [each.job.job_id for each in results] + [job.job_id for job in add]
        if len(set(known)) < len(known):
            raise SpecError(
                "the strategy asks for a job a second time",
                remedy="give each block of a configuration its own number in the strategy's file, "
                "then run the experiment again",
            )
        if not add or strategy.done:
            return add, [], strategy.stopped
        block = 1 + max(job.block for job in (*add, *(each.job for each in results)))
        return add, [add[0].with_block(block)], strategy.stopped

    def _results(self, over: Sequence[JobRow]) -> list[Result]:
        work = [row.job_id for row in over if row.job.role == "work"]
        blocks = {block.job_id: block for block in newest_attempts(self._ledger.figures_of(work))}
        return [Result(row.job, row.outcome, row.cause, blocks.get(row.job_id)) for row in over]


def _failed(error: Exception) -> Stopped:
    """Return an error as it can be stored and shown."""
    why = str(error.args[0]) if isinstance(error, FarmError) else f"{type(error).__name__}: {error}"
    remedy = error.remedy if isinstance(error, FarmError) else None
    plain = why.encode(errors="replace").decode().replace("\0", "?")
    return Stopped(why=plain[:TOLD], remedy=remedy or "the scheduler's log has more (`event=judging_failed`)")
