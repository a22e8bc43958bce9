"""Live state that hosts and sessions announce; kept in Redis only."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.device import Reading
from orchestrator.model.live.since import PROTOCOL as PROTOCOL

Phase = Literal["claimed", "waiting", "preparing", "compiling", "pushing", "running", "collecting", "restoring"]


class Learnt(Model):
    """The progress of a training: its latest epoch."""

    stage: str
    epoch: int = Field(ge=0)
    """The epoch of the stage, from 0 on."""
    loss: float | None = None
    """None: not finite."""
    error: float | None = None
    """Share of wrong answers; None without classes."""

    @property
    def text(self) -> str:
        """`train, epoch 12: loss 0.123, 4.2 % wrong`."""
        loss = "not finite" if self.loss is None else f"{self.loss:.4g}"
        wrong = "" if self.error is None else f", {100 * self.error:.1f} % wrong"
        return f"{self.stage}, epoch {self.epoch + 1}: loss {loss}{wrong}"


class Progress(Model):
    """The progress of one session; shown by `farm watch`."""

    serial: str
    job_id: str
    attempt: int
    token: int
    label: str
    """Short name of the cell and block."""
    phase: Phase
    done: int = 0
    """Samples finished."""
    total: int = 0
    since: float
    """Unix time at which this phase began."""
    last_ms: float | None = None
    """Latest latency."""
    reading: Reading | None = None
    """Latest one of the agent's sampler, where it samples."""
    learnt: Learnt | None = Field(default=None, exclude_if=lambda value: value is None)
    """The progress of a training."""


class HostAnnouncement(Model):
    """A host worker is alive, and runs these (serial, job, attempt, token)."""

    host: str
    worker: str
    pid: int
    adb: str = ""
    """Version and port of its adb server, or what is wrong with it."""
    running: tuple[tuple[str, str, int, int], ...] = ()
    sessions: int = 0
    """The number of sessions it runs at once; 0: it does not say."""
    protocol: int = 0
    """`PROTOCOL` of its worker; 0: a worker from before there was one."""
    version: str = ""
    """The version of pocketfarm there."""
    spooled: int = 0
    """Records waiting in the spool for the ledger."""
    seen_at: float = 0.0
