"""Placement: which waiting job goes to which free device now. A pure function of its arguments, whatever their order.

Laws: at most one job a device; only devices that are ready, free and candidates; no runnable job is left while one of
its devices is free; priority first, then the experiment that runs least (and was served longest ago), then the order
of submission. A job that must be alone comes before all: its host takes nothing beside it, and nothing new until it is
empty.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from orchestrator.model.device import Device, DeviceState, Health
from orchestrator.model.experiment import SETTLED_C, SETTLED_C_PER_MIN, Conditions
from orchestrator.model.lease import Lease
from orchestrator.model.queue_view import Share, WaitingJob
from orchestrator.model.waiting import WaitKind, WaitReason


@dataclass(frozen=True)
class Policy:
    """What placement respects beyond the devices themselves."""

    host_limits: Mapping[str, int] = field(default_factory=dict)
    """Sessions that a host runs at once, as it announces them; one that says nothing has no limit."""
    shares: Mapping[str, Share] = field(default_factory=dict)
    """By experiment."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names for people of the jobs that hold leases."""
    alone: frozenset[str] = frozenset()
    """Of these jobs, those whose host takes nothing beside them."""


@dataclass(frozen=True)
class Placement:
    """The answer: (job, serial) pairs, and for every other job why it waits."""

    assignments: tuple[tuple[str, str], ...]
    waiting: Mapping[str, WaitReason]


def place(
    waiting: Sequence[WaitingJob],
    devices: Sequence[Device],
    leases: Mapping[str, Lease],
    policy: Policy,
    now: float,
) -> Placement:
    """Assign waiting jobs to free devices. `now` is Unix time; `leases` by serial, expired ones included."""
    floor = _Floor(devices, leases, policy, now, _demand(waiting))
    assignments: list[tuple[str, str]] = []
    reasons: dict[str, WaitReason] = {}
    first = sorted((job for job in waiting if job.alone), key=lambda job: (job.order, job.job_id))
    others = [job for job in waiting if not job.alone]
    for job in chain(first, _in_turn(others, policy, assignments)):
        serial = floor.best(job)
        if serial is not None:
            floor.take(serial, job)
            assignments.append((job.job_id, serial))
        else:
            reasons[job.job_id] = floor.reason(job)
            if job.alone:
                floor.empty_for(job)
    return Placement(tuple(sorted(assignments)), reasons)


def _demand(waiting: Sequence[WaitingJob]) -> Counter[str]:
    """Serial -> how many of the jobs it may run."""
    choices = {id(job.candidates): job.candidates for job in waiting}
    demand: Counter[str] = Counter()
    for choice, jobs in Counter(id(job.candidates) for job in waiting).items():
        for serial in choices[choice]:
            demand[serial] += jobs
    return demand


def _in_turn(
    waiting: Sequence[WaitingJob], policy: Policy, assignments: Sequence[tuple[str, str]]
) -> Iterable[WaitingJob]:
    """Every job once. Within a priority, the next job comes from the experiment with the least share so far;
    a job that the caller appended to `assignments` counts to its experiment's share."""
    by_priority: dict[int, dict[str, list[WaitingJob]]] = defaultdict(lambda: defaultdict(list))
    for job in sorted(waiting, key=lambda j: (j.order, j.job_id), reverse=True):
        by_priority[job.priority][job.experiment_id].append(job)
    running = {experiment: share.running for experiment, share in policy.shares.items()}
    served: dict[str, tuple[int, float]] = {e: (0, share.served_at) for e, share in policy.shares.items()}
    for _, queues in sorted(by_priority.items(), reverse=True):
        turns = [(running.get(e, 0), served.get(e, (0, 0.0)), queue[-1].order, e) for e, queue in queues.items()]
        heapq.heapify(turns)
        while turns:
            *_, experiment = heapq.heappop(turns)
            queue, before = queues[experiment], len(assignments)
            yield queue.pop()
            if len(assignments) > before:
                running[experiment] = running.get(experiment, 0) + 1
                served[experiment] = (len(assignments), 0.0)
            if queue:
                turn = (running.get(experiment, 0), served.get(experiment, (0, 0.0)), queue[-1].order, experiment)
                heapq.heappush(turns, turn)


@dataclass
class _Alike:
    """What is known of the jobs that differ in nothing that placement asks for. In one placement a device that cannot
    start them now never can: devices are taken and hosts fill up, and neither goes back."""

    usable: list[str]
    left: list[str]
    """Of the usable ones those that may still start a job, the best one last."""
    reason: WaitReason | None = None
    asked: int = -1
    """How often the floor had changed when the reason was found."""


class _Floor:
    """The devices during one placement: what is free, and why the rest is not."""

    def __init__(
        self,
        devices: Sequence[Device],
        leases: Mapping[str, Lease],
        policy: Policy,
        now: float,
        demand: Mapping[str, int],
    ) -> None:
        self._demand, self._changes = demand, 0
        self._alike: dict[tuple[object, ...], _Alike] = {}
        self._devices = {device.serial: device for device in devices}
        self._host_limits, self._now = policy.host_limits, now
        self._busy = {
            serial: _busy(policy.labels.get(lease.job_id, f"job {lease.job_id}")) for serial, lease in leases.items()
        }
        self._sessions = Counter(self._devices[s].facts.host for s in leases if s in self._devices)
        self._kept: dict[str, str] = {}
        """Host -> label of the job for which it runs nothing else."""
        for serial, lease in leases.items():
            if lease.job_id in policy.alone and serial in self._devices:
                self._kept[self._devices[serial].facts.host] = policy.labels.get(lease.job_id, f"job {lease.job_id}")
        self._blocked = {serial: self._unready(device) for serial, device in self._devices.items()}

    def best(self, job: WaitingJob) -> str | None:
        """The device on which a job can start now, of those the one that fewest jobs want; None where there is none."""
        left = self._known(job).left
        while left and self.obstacle(job, left[-1]):
            left.pop()
        return left[-1] if left else None

    def _known(self, job: WaitingJob) -> _Alike:
        pause = job.not_before if job.not_before > self._now else 0.0
        key = (id(job.candidates), id(job.conditions), job.failed_on, job.alone, pause)
        if key not in self._alike:
            usable = self._usable(job)
            left = sorted(usable, key=lambda s: (self._demand[s], s), reverse=True)
            self._alike[key] = _Alike(usable, left)
        return self._alike[key]

    def take(self, serial: str, job: WaitingJob) -> None:
        self._changes += 1
        host = self._devices[serial].facts.host
        self._busy[serial] = _busy(job.label)
        self._sessions[host] += 1
        if job.alone:
            self._kept[host] = job.label

    def empty_for(self, job: WaitingJob) -> None:
        """Give the first host nothing new that lacks nothing but rest from other sessions for this job."""
        for serial in self._known(job).usable:
            found = self.obstacle(job, serial)
            if found is not None and found.kind in (WaitKind.BUSY, WaitKind.HOST_FULL) and serial in self._devices:
                self._kept.setdefault(self._devices[serial].facts.host, job.label)
                self._changes += 1
                return

    def _usable(self, job: WaitingJob) -> list[str]:
        """Candidates that can meet its conditions, without those where it failed as long as another one is alive.

        Where none can, the first to be free refuses the job, with the reason.
        """
        able = [s for s in job.candidates if s not in self._devices or can_meet(job.conditions, self._devices[s])]
        candidates = able or list(job.candidates)
        others = [s for s in candidates if s not in job.failed_on]
        alive = any(s in self._devices and self._devices[s].state.health is Health.READY for s in others)
        return others if alive else candidates

    def obstacle(self, job: WaitingJob, serial: str) -> WaitReason | None:
        """Why a job cannot start on a device now; None where it can."""
        if serial in self._busy:
            return self._busy[serial]
        if serial not in self._devices:
            return WaitReason(kind=WaitKind.OFFLINE, text="offline: no host announces it")
        if (blocked := self._blocked[serial]) is not None:
            return blocked
        if job.not_before > self._now:
            return WaitReason(
                kind=WaitKind.RETRY, text=f"waits before the next attempt, until {_clock(job.not_before)}"
            )
        device = self._devices[serial]
        if (kept := self._kept.get(device.facts.host)) is not None:
            text = f"host {device.facts.host} runs nothing beside {kept}, in whose attempts its worker fell silent"
            return WaitReason(kind=WaitKind.HOST_FULL, text=text)
        if job.alone and self._sessions[device.facts.host]:
            text = f"host {device.facts.host} has other sessions, and it runs alone: its worker fell silent before"
            return WaitReason(kind=WaitKind.HOST_FULL, text=text)
        limit = self._host_limits.get(device.facts.host, 0)
        if limit and self._sessions[device.facts.host] >= limit:
            text = f"host {device.facts.host} is at its limit of {limit} sessions"
            return WaitReason(kind=WaitKind.HOST_FULL, text=text)
        return _unmet(job.conditions, device)

    def reason(self, job: WaitingJob) -> WaitReason:
        """Why a job waits: of one device, or in words of the first few candidates and by kind of those that it could
        use, where one that is busy comes first: it will be free."""
        known = self._known(job)
        if known.reason is None or known.asked != self._changes:
            known.reason, known.asked = self._reason(job, set(known.usable)), self._changes
        return known.reason

    def _reason(self, job: WaitingJob, usable: set[str]) -> WaitReason:
        ordered = sorted(job.candidates, key=lambda s: (s not in usable, s))
        found = [self.obstacle(job, serial) or self._passed_over(job, serial) for serial in ordered]
        if len(found) == 1:
            return found[0]
        kinds = Counter(reason.kind for reason in found[: len(usable)])
        kind = WaitKind.BUSY if WaitKind.BUSY in kinds else min(kinds, key=lambda kind: (-kinds[kind], kind))
        whys = [f"{serial}: {reason.text}" for serial, reason in zip(ordered, found, strict=True)]
        more = f"; and {len(whys) - 3} more" if len(whys) > 3 else ""
        return WaitReason(kind=kind, text="; ".join(whys[:3]) + more)

    def _passed_over(self, job: WaitingJob, serial: str) -> WaitReason:
        """Why a device that could start a job now is not asked."""
        lost = "an earlier attempt was lost there"
        unable = "it cannot meet the experiment's conditions, others can"
        return WaitReason(kind=WaitKind.AVOIDED, text=lost if serial in job.failed_on else unable)

    def _unready(self, device: Device) -> WaitReason | None:
        state = device.state
        if state.health is not Health.READY:
            text = f"{state.health}: {state.reason}" if state.reason else str(state.health)
            return WaitReason(kind=WaitKind(state.health.value), text=text)
        if state.ready_at is not None and state.ready_at > self._now:
            text = f"{state.reason or 'cooling'}, ready at about {_clock(state.ready_at)}"
            return WaitReason(kind=WaitKind.RESTING, text=text)
        return None


def _busy(label: str) -> WaitReason:
    return WaitReason(kind=WaitKind.BUSY, text=f"busy with {label}")


def can_meet(conditions: Conditions, device: Device) -> bool:
    """Whether a device can meet the conditions at all, as far as its profile tells."""
    profile = device.enrolment
    if device.facts.kind != "phone" or profile is None:
        return True
    needed = {
        "airplane_mode": conditions.airplane_mode,
        "bluetooth": conditions.bluetooth_off,
        "write_settings": conditions.screen_dimmed,
        "fixed_performance": conditions.clocks == "fixed_performance",
        "lock_clocks": conditions.clocks == "locked",
    }
    lacks = any(wanted and profile.permissions.get(name) is False for name, wanted in needed.items())
    return not lacks and not (conditions.supply == "cut" and profile.supply == "none")


def _unmet(conditions: Conditions, device: Device) -> WaitReason | None:
    """The first condition that the device's announced state does not meet; what is not known is not a bar."""
    if device.facts.kind != "phone":
        return None
    unmet = {
        WaitKind.BATTERY: _unmet_level(conditions, device.state),
        WaitKind.STORAGE: _unmet_storage(conditions, device.state),
        WaitKind.SUPPLY: _unmet_supply(conditions, device.state),
        WaitKind.TEMPERATURE: _unmet_heat(conditions, device) or _unmet_rest(conditions, device),
    }
    return next((WaitReason(kind=kind, text=text) for kind, text in unmet.items() if text), None)


def _unmet_level(conditions: Conditions, state: DeviceState) -> str:
    battery, level = state.battery_percent, conditions.battery_percent
    if battery is not None and level.min is not None and battery < level.min:
        return f"battery at {battery:g} %, the experiment wants at least {level.min:g} %"
    if battery is not None and level.max is not None and battery > level.max:
        return f"battery at {battery:g} %, the experiment wants at most {level.max:g} %"
    return ""


def _unmet_storage(conditions: Conditions, state: DeviceState) -> str:
    if state.free_storage_bytes is not None and state.free_storage_bytes < conditions.free_storage:
        free, wanted = state.free_storage_bytes / 2**20, conditions.free_storage / 2**20
        return f"free storage {free:.0f} MiB, the experiment wants {wanted:.0f} MiB"
    return ""


def _unmet_supply(conditions: Conditions, state: DeviceState) -> str:
    if conditions.supply == "discharging" and state.charging:
        return "a supply is connected, the experiment wants the phone to run from its battery"
    return ""


def _unmet_heat(conditions: Conditions, device: Device) -> str:
    battery_c, skin_c = device.state.battery_temp_c, device.state.skin_temp_c
    if battery_c is not None and battery_c > conditions.battery_temp_max:
        return f"hot: {battery_c:g} C, the experiment wants at most {conditions.battery_temp_max:g} C"
    if battery_c is not None and conditions.battery_temp_min is not None and battery_c < conditions.battery_temp_min:
        return f"cold: {battery_c:g} C, the experiment wants at least {conditions.battery_temp_min:g} C"
    if skin_c is not None and conditions.skin_temp_max is not None and skin_c > conditions.skin_temp_max:
        return f"hot: skin {skin_c:.1f} C, the experiment wants at most {conditions.skin_temp_max:g} C"
    status = device.state.thermal_status
    if status is not None and status > conditions.thermal_status_max:
        return f"thermal status {status}, the experiment wants at most {conditions.thermal_status_max}"
    return ""


def _unmet_rest(conditions: Conditions, device: Device) -> str:
    temp_c, slope = device.state.battery_temp_c, device.state.battery_slope_c_per_min
    rest_c = device.enrolment.reference_temp_c if device.enrolment else None
    if not conditions.settled or temp_c is None or rest_c is None:
        return ""
    if abs(temp_c - rest_c) > SETTLED_C:
        return f"battery at {temp_c:g} C, the experiment wants it within {SETTLED_C:g} C of its rest at {rest_c:g} C"
    if slope is not None and abs(slope) >= SETTLED_C_PER_MIN:
        return f"battery changes by {slope:+.2f} C a minute, the experiment wants less than {SETTLED_C_PER_MIN:g}"
    return ""


def _clock(unix_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix_s))
