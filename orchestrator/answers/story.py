"""The story of a job, in order: its submission, every attempt with device, cause and log, and why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.ledger.rows import block_label, label
from orchestrator.model.base import like
from orchestrator.model.live.waiting import WaitReason

from .waiting import each_waits

if TYPE_CHECKING:
    from orchestrator.ledger import AttemptRow, Ledger
    from orchestrator.model.record import Record


@dataclass(frozen=True)
class Try:
    """One attempt."""

    attempt: int
    serial: str
    host: str
    token: int
    started_at: float
    """Unix time, as `ended_at`."""
    ended_at: float | None
    outcome: str
    """Empty while it is under way."""
    cause: str
    reasons: tuple[str, ...]
    """The reasons: what happened, and what to do."""
    invalid: tuple[tuple[str, str], ...]
    """The reasons why the block does not count: code and what was seen."""
    doubts: tuple[tuple[str, str, str], ...]
    """Code, what was seen, remedy."""
    conditions: tuple[tuple[str, str, str, bool], ...]
    """Name, what was wanted, what held, whether the device proves it."""
    steps: tuple[tuple[str, float], ...]
    """The agent's steps before the first inference, in order: name and seconds."""
    log: tuple[str, ...]
    """Lines that were kept as evidence."""
    median_ms: float | None


@dataclass(frozen=True)
class Story:
    """The story of one job."""

    job_id: str
    experiment_id: str
    label: str
    state: str
    outcome: str
    cause: str
    candidates: tuple[str, ...]
    submitted_at: float
    ended_at: float | None
    tries: tuple[Try, ...]
    waits: WaitReason | None
    """The reason why it waits; None: it does not."""

    @property
    def is_open(self) -> bool:
        return not self.outcome and self.state != "cancelled"

    @property
    def may_be_retried(self) -> bool:
        return self.outcome in ("lost", "failed", "killed")

    @property
    def data(self) -> dict[str, Any]:
        """Return the story for `--json`."""
        waits = {"kind": self.waits.kind.value, "reason": self.waits.text} if self.waits else None
        return {**asdict(self), "waits": waits}


def story_of(ledger: Ledger, job_id: str, reasons: Mapping[str, WaitReason] | None) -> Story:
    """`reasons`: what the scheduler says, None where none does. Raises UnknownName, ServiceDown."""
    row = ledger.listed.job(job_id)
    records = {record.attempt: record for record in ledger.records_of([job_id])}
    waits = None
    if row.state == "waiting":
        waits = each_waits(ledger, [job_id], reasons)[job_id]
    return Story(
        job_id=job_id,
        experiment_id=row.job.experiment_id,
        label=block_label(label(row.job), row.job.block),
        state=row.state.value,
        outcome=row.outcome,
        cause=row.cause,
        candidates=row.job.candidates,
        submitted_at=ledger.experiment(row.job.experiment_id).submitted_at,
        ended_at=row.ended_at,
        tries=tuple(_try(each, records.get(each.attempt)) for each in ledger.listed.attempts(job_id)),
        waits=waits,
    )


def _try(row: AttemptRow, record: Record | None) -> Try:
    return like(
        Try,
        row,
        reasons=record.reasons if record else (),
        invalid=tuple((each.code.value, each.detail) for each in record.invalid) if record else (),
        doubts=tuple((str(each.code), each.detail, each.remedy) for each in record.doubts) if record else (),
        conditions=tuple((c.name, c.wanted, c.held, c.proven) for c in record.conditions) if record else (),
        steps=tuple((each.step, each.duration_ns / 1e9) for each in record.setup) if record else (),
        log=record.evidence if record else (),
    )
