"""Say by its cause whose fault a lost attempt is: the job's and the device's, the device's alone, the host's, nobody's.

What a host, an outage or a person did says nothing against the job: it is tried again however often that happens, ever
later. Only a job in whose attempts the worker falls silent again and again is under suspicion: it then runs alone on
its host, and if the worker dies there too, time and again, it is over. Those that ran beside it are then acquitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.model.record import Outcome

UNMEASURED = (Outcome.LOST, Outcome.CANCELLED)
UNMET = frozenset({"condition_not_met", "device_busy", "busy_elsewhere"})
"""A fact about the device, which may never be otherwise."""
NOBODY = UNMET | {
    "device_away", "device_held", "not_claimed", "lease_refused", "lease_missing", "lease_lost", "host_stopping",
    "host_removed", "handed_back", "service_down", "cancelled", "worker_killed",
}  # fmt: skip
"""A fact, an outage or a person."""
DIED = "worker_died"
SILENCE = frozenset({DIED, "lease_expired"})
"""Its lease ran out: another worker has taken the dead one's place; or nobody knows why it fell silent."""
HOST = SILENCE | {"record_missing", "claim_overdue", "file_unavailable", "host_fault", "adb_down"}
"""The worker or its machine: killed, suspended, cut off, stuck, out of disk, memory, files or an adb server."""
DEVICE_ALONE = frozenset({"settings_left", "journal_unreadable"})
"""Causes that say nothing against the job that comes next: an earlier session left a device changed."""
NOT_THE_JOB = NOBODY | HOST | DEVICE_ALONE
NOT_THE_DEVICE = NOBODY | HOST

KILLS_WORKER = "kills_worker"
"""Cause of a job's end: its worker died again and again while it ran alone."""
ACQUITTED = "worker_killed"
"""Cause that takes the place of a silence where a job beside it turns out to kill workers."""
SUSPECT_AFTER = 3
"""Silences of its worker after which a job runs alone."""
LONE_DEATHS = 3
"""Deaths of its worker after which a job that runs alone is over: one may be a person's or the kernel's doing."""
UNMET_LIMIT, MISSING_LIMIT = 50, 20
ENDING = ((UNMET, UNMET_LIMIT), (frozenset({"record_missing"}), MISSING_LIMIT))
"""Causes, and the losses by them that a job survives: a condition that is never met ends it at some time, and a block
that is measured and leaves no record. An outage or a person never does."""
LATER_AFTER = ((HOST, 1), (NOBODY - UNMET, 10))
"""Causes, and how many losses by them a job has before it is tried again ever later."""
MAX_PAUSE_S = 300.0
PAUSES_S = {"service_down": 5.0, "device_away": 2.0} | dict.fromkeys(
    ("condition_not_met", "device_busy", "busy_elsewhere", *DEVICE_ALONE), 10.0
)


@dataclass(frozen=True)
class Verdict:
    """The consequence of a lost attempt for its job."""

    is_final: bool
    cause: str
    pause_s: float = 0.0
    """Wait before the next attempt."""


def is_suspect(lost: Sequence[str]) -> bool:
    """Return whether a job runs alone on its host. `lost`: causes of its lost attempts."""
    return sum(cause in SILENCE for cause in lost) >= SUSPECT_AFTER


def died_alone(cause: str, before: Sequence[str]) -> bool:
    """Return whether its worker died while a job ran alone; so the job is the likelier reason, not the host."""
    return cause == DIED and is_suspect(before)


def verdict_on(cause: str, before: Sequence[str], counted: int, budget: int) -> Verdict:
    """`before`: causes of the job's earlier losses, in their order; `counted`: those that are its own fault, with this
    one."""
    every = [*before, cause]
    if died_alone(cause, before) and sum(died_alone(each, every[:n]) for n, each in enumerate(every)) >= LONE_DEATHS:
        return Verdict(True, KILLS_WORKER)
    lost = Counter(every)
    if counted >= budget or any(sum(lost[each] for each in causes) > most for causes, most in ENDING):
        return Verdict(True, cause)
    pause_s = PAUSES_S.get(cause, 0.0)
    for causes, some in LATER_AFTER:
        times = sum(lost[each] for each in causes) - some
        if cause in causes and times > 0:
            pause_s = max(pause_s, min(2.0 ** min(times + 1, 20), MAX_PAUSE_S))
    return Verdict(False, cause, pause_s)
