"""The standing of an experiment: its jobs, why they wait, when it ends, what did not go well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.ledger.rows import block_label, label
from orchestrator.model.live.waiting import WaitReason
from orchestrator.model.record import Outcome
from orchestrator.model.stopped import Stopped

from .ending import Ending
from .waiting import Wait, wait_data, why_jobs_wait

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow, Ledger
    from orchestrator.ledger.queue.listed import OpenJob

BAD = frozenset(each.value for each in Outcome if each is not Outcome.OK)


@dataclass(frozen=True)
class Problem:
    """A job that did not end well."""

    job: str
    label: str
    outcome: str
    cause: str
    reasons: tuple[str, ...]
    """The reasons of its newest record."""
    attempts: int
    devices: tuple[str, ...]

    @property
    def data(self) -> dict[str, Any]:
        """Return the problem for `--json`."""
        return {**vars(self), "reasons": list(self.reasons), "devices": list(self.devices)}


@dataclass(frozen=True)
class Standing:
    """The standing of one experiment."""

    row: ExperimentRow
    waits: tuple[Wait, ...]
    ends: Ending | None
    """None: it is over."""
    problems: tuple[Problem, ...]
    stopped: tuple[Stopped, ...] = ()
    """Strategies that ended without what they were asked for."""

    def data(self, unfinished: Sequence[OpenJob] = ()) -> dict[str, Any]:
        """Return the standing for programs."""
        return {
            **in_brief(self.row, self.waits, self.stopped),
            "ends": self.ends and self.ends.data,
            "exclusions": [vars(each) for each in self.row.exclusions],
            "unfinished": [each._asdict() for each in unfinished],
            "not_ok": [each.data for each in self.problems],
        }


def in_brief(row: ExperimentRow, waits: Iterable[Wait], stopped: Iterable[Stopped] = ()) -> dict[str, Any]:
    """An experiment with what its jobs wait for, for programs."""
    return {
        "experiment": row.id,
        "name": row.experiment.name,
        "project": row.project,
        "submitted_at": row.submitted_at,
        "submitter": row.submitter,
        "origin": row.origin.text if row.origin else "",
        "finished": row.finished,
        "jobs": sum(row.counts.values()),
        "counts": {word: count for word, count in row.counts.items() if count},
        "waiting": wait_data(waits),
        "stopped": [each.model_dump(mode="json") for each in stopped],
    }


def all_in_brief(
    ledger: Ledger, reasons: Mapping[str, WaitReason] | None, rows: Sequence[ExperimentRow] | None = None
) -> list[dict[str, Any]]:
    """Experiments for programs: all of the ledger, or those of `rows`. Raises ServiceDown."""
    rows = ledger.experiments() if rows is None else rows
    waits, stopped = defaultdict[str, list[Wait]](list), ledger.stopped()
    for wait in why_jobs_wait(ledger, reasons) if any(row.counts.get("waiting") for row in rows) else ():
        waits[wait.experiment_id].append(wait)
    return [in_brief(row, waits[row.id], stopped.get(row.id, ())) for row in rows]


def how_far(
    ledger: Ledger,
    row: ExperimentRow,
    reasons: Mapping[str, WaitReason] | None,
    ends: Callable[[], Ending],
) -> Standing:
    """`reasons`: what the scheduler says, None where none does. `ends`: tells its end, asked where it is not over.
    Raises ServiceDown."""
    return Standing(
        row=row,
        waits=why_jobs_wait(ledger, reasons, row.id),
        ends=None if row.finished else ends(),
        problems=problems_of(ledger, row),
        stopped=tuple(ledger.stopped(row.id).get(row.id, ())),
    )


def problems_of(ledger: Ledger, row: ExperimentRow) -> tuple[Problem, ...]:
    """The jobs of an experiment that did not end well, in order. Raises ServiceDown."""
    if not any(count for word, count in row.counts.items() if word in BAD):
        return ()
    failures = [job for job in ledger.jobs(row.id, ("done", "cancelled")) if job.outcome != Outcome.OK.value]
    blocks = sorted(ledger.figures_of(job.job_id for job in failures), key=lambda block: block.token)
    reasons = {block.job_id: block.reasons for block in blocks}
    return tuple(
        Problem(
            job=job.job_id,
            label=block_label(label(job.job), job.job.block),
            outcome=job.outcome or job.state.value,
            cause=job.cause,
            reasons=tuple(reasons.get(job.job_id, ())),
            attempts=job.attempts,
            devices=job.job.candidates,
        )
        for job in failures
    )
