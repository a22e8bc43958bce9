"""Leases and assignments: who works on which device until when, with which fencing token."""

from __future__ import annotations

from pydantic import Field

from .base import Model
from .job import Job


class Assignment(Model):
    """A placed job: what the scheduler hands to a host's worker. Lives in Redis beside its lease."""

    serial: str
    host: str
    job: Job
    attempt: int = Field(ge=1)
    """1 for a job's first attempt."""
    token: int = Field(ge=1)
    """Fencing token, issued by the ledger; only grows."""
    ttl_s: float = Field(gt=0)


class Lease(Model):
    """An exclusive right to a device, valid until `expires_at` (Unix time, Redis' clock)."""

    serial: str
    job_id: str
    attempt: int
    token: int
    holder: str = ""
    """Worker that claimed it; empty while the wake-up is under way."""
    expires_at: float
