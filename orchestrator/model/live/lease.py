"""Leases and assignments: who works on which device until when, with which fencing token."""

from __future__ import annotations

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.job import Job

LINE_S = 2.0
"""A session begins no block of its line later than this after its first."""
LARGEST_TOKEN = 3 * 2**51
"""No counter comes so far: what is beyond is damage. Scripts in Redis count exactly up to `2**53`."""
LINE_MOST = 16
"""Attempts of one lease."""


class Assignment(Model):
    """A placed job: what the scheduler hands to a host's worker. Lives in Redis beside its lease."""

    serial: str
    host: str
    job_id: str
    """The job's id in the ledger; it cannot be told from the content of `job`, which names this device alone."""
    job: Job
    attempt: int = Field(ge=1)
    """1 for a job's first attempt."""
    token: int = Field(ge=1)
    """Fencing token, issued by the ledger; only grows."""
    ttl_s: float = Field(gt=0)
    line: tuple[Assignment, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Attempts at further blocks of the experiment that may follow in the same session, in this order and under the
    same lease; their tokens grow. What it does not begin is handed back, and nobody pays for it."""

    @rule
    def _names_its_job(self) -> None:
        self.job.know_id(self.job_id)
        for each in self.line:
            each.job.share_cell(self.job)

    @property
    def last(self) -> int:
        """The newest token of its lease."""
        return self.line[-1].token if self.line else self.token

    @property
    def every(self) -> tuple[Assignment, ...]:
        """This one and those in line."""
        return (self, *self.line)


class Lease(Model):
    """An exclusive right to a device, valid until `expires_at` (Unix time, Redis' clock)."""

    serial: str
    job_id: str
    attempt: int
    token: int
    """The token of the attempt that is under way; of a line, as far as was read."""
    last: int = 0
    """The newest token of a line; 0: there is none."""
    holder: str = ""
    """Worker that claimed it; empty while its task is under way."""
    expires_at: float

    def covers(self, token: int) -> bool:
        """Return whether the attempt of this token is under way by this lease, or is in line."""
        return self.token <= token <= max(self.token, self.last)
