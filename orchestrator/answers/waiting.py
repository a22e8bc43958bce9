"""The reasons why jobs wait. The ledger knows which ones do; the scheduler says why, of each job that was tried, and of
one that was not for all of its experiment and choice of devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.model.live.waiting import WaitKind, WaitReason

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.ledger.rows import WaitingGroup

EXAMPLES = 2
"""Devices of one kind of reason that are named with their own words."""

QUEUED = WaitReason(kind=WaitKind.QUEUED, text="nothing is in its way: the scheduler starts it soon")
UNKNOWN = WaitReason(
    kind=WaitKind.UNKNOWN,
    text="no scheduler says why: no farm runs here, or its scheduler or Redis is away; `farm up` starts a farm",
)


@dataclass(frozen=True)
class Wait:
    """Jobs of one experiment that the same devices may run and that wait for the same reason."""

    experiment_id: str
    devices: tuple[str, ...]
    """Any of them may run the jobs; empty: several choices of devices in one."""
    jobs: int
    reason: WaitReason

    @staticmethod
    def of(experiment_id: str, data: Mapping[str, Any]) -> Wait:
        """Return what `wait_data` tells."""
        reason = WaitReason(kind=WaitKind(data["kind"]), text=data["reason"])
        return Wait(experiment_id, tuple(data["devices"]), data["jobs"], reason)

    @property
    def text(self) -> str:
        """The reason; it names the devices itself where there are several."""
        return f"{self.devices[0]}: {self.reason.text}" if len(self.devices) == 1 else self.reason.text


def why_jobs_wait(
    ledger: Ledger, reasons: Mapping[str, WaitReason] | None, experiment_id: str | None = None
) -> tuple[Wait, ...]:
    """Every waiting job once, of one experiment or of all. `reasons`: what the scheduler says (`Inventory.waiting`),
    None where none does. Raises ServiceDown where the ledger is away."""
    return explain(ledger.waiting_groups(reasons or (), experiment_id), reasons)


def explain(groups: Iterable[WaitingGroup], reasons: Mapping[str, WaitReason] | None) -> tuple[Wait, ...]:
    """Pure: the groups' jobs by reason. A job that pauses before its next attempt speaks for itself only; those that
    nobody looked at wait for what the last of their group does."""
    waits = []
    for group in groups:
        told = [] if reasons is None else [reasons[job_id] for job_id in group.looked_at]
        own = Counter(told)
        own[_of_others(told, reasons)] += group.jobs - len(told)
        waits += [Wait(group.experiment_id, group.candidates, jobs, reason) for reason, jobs in own.items() if jobs]
    return tuple(waits)


def each_waits(
    ledger: Ledger, job_ids: Iterable[str], reasons: Mapping[str, WaitReason] | None
) -> dict[str, WaitReason]:
    """Return why each of these waiting jobs waits, by the same rule. Raises ServiceDown where the ledger is away."""
    wanted, known = list(job_ids), reasons or {}
    found: dict[str, WaitReason] = {}
    for lane in ledger.listed.waiting_among({*known, *wanted}):
        others = _of_others([known[job_id] for job_id in lane if job_id in known], reasons)
        found |= {job_id: known.get(job_id, others) for job_id in lane}
    return {job_id: found.get(job_id, _of_others([], reasons)) for job_id in wanted}


def _of_others(told: Sequence[WaitReason], reasons: Mapping[str, WaitReason] | None) -> WaitReason:
    """Return what those of a group wait for that the scheduler did not look at, of which none was tried."""
    shared = (reason for reason in reversed(told) if reason.kind is not WaitKind.RETRY)
    return next(shared, UNKNOWN if reasons is None else QUEUED)


def reason_lines(waits: Iterable[Wait]) -> list[str]:
    """Return lines for people, one a kind of reason, that of most jobs first."""
    by_kind: dict[WaitKind, list[Wait]] = defaultdict(list)
    for wait in waits:
        by_kind[wait.reason.kind].append(wait)
    ordered = sorted(by_kind.items(), key=lambda item: (-_jobs(item[1]), item[0]))
    return [f"{_jobs(found)} wait ({kind.replace('_', ' ')}): {_examples(found)}" for kind, found in ordered]


def _examples(waits: Sequence[Wait]) -> str:
    """The reasons with their devices; one that several devices have is said once."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for wait in sorted(waits, key=lambda wait: -wait.jobs):
        alone = len(wait.devices) == 1
        by_text[wait.reason.text] += [name for name in wait.devices if alone and name not in by_text[wait.reason.text]]
    told = [f"{_few(names)}: {text}" if names else text for text, names in by_text.items()]
    return "; ".join(told[:EXAMPLES]) + _more(len(told), "; ")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:EXAMPLES]) + _more(len(names), " ")


def _more(count: int, before: str) -> str:
    return f"{before}and {count - EXAMPLES} more" if count > EXAMPLES else ""


def _jobs(waits: Iterable[Wait]) -> int:
    return sum(wait.jobs for wait in waits)


def wait_data(waits: Iterable[Wait]) -> list[dict[str, Any]]:
    """Return the waits for programs."""
    return [
        {"jobs": wait.jobs, "kind": wait.reason.kind.value, "reason": wait.reason.text, "devices": list(wait.devices)}
        for wait in waits
    ]
