"""Live state that hosts and sessions announce; kept in Redis only."""

from __future__ import annotations

from typing import Literal

from .base import Model
from .device import Reading

PROTOCOL = 2
"""Version of what scheduler and workers say to each other through Redis: keys, assignments, records, announcements."""
OLDEST_PROTOCOL = 2
"""The oldest one that a scheduler of this version works with: hosts may be upgraded one after the other."""

Phase = Literal["claimed", "waiting", "preparing", "compiling", "pushing", "running", "collecting", "restoring"]


class Progress(Model):
    """How far one session is; shown by `farm watch`."""

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


class HostAnnouncement(Model):
    """A host worker is alive, and runs these (serial, job, attempt, token)."""

    host: str
    worker: str
    pid: int
    adb: str = ""
    """Version and port of its adb server, or what is wrong with it."""
    running: tuple[tuple[str, str, int, int], ...] = ()
    sessions: int = 0
    """How many it runs at once; 0: it does not say."""
    protocol: int = 0
    """`PROTOCOL` of its worker; 0: a worker from before there was one."""
    version: str = ""
    """Of pocketfarm there."""
    spooled: int = 0
    """Records waiting in the spool for the ledger."""
    seen_at: float = 0.0
