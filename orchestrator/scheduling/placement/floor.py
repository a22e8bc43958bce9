"""The devices during one placement: which are free, and why a job cannot start on the others. What nobody asks about
costs nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.ledger import Hold
from orchestrator.model.device import Device, Health
from orchestrator.model.live.lease import Lease
from orchestrator.model.live.queue_view import Share, WaitingJob
from orchestrator.model.live.usage import Account
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.scheduling.fair_use import FairUse
from orchestrator.scheduling.policies import POLICIES, FairShare, PlacementPolicy

from .conditions import can_meet, lacking, unmet

_NOTHING = Share()


@dataclass(frozen=True)
class Policy:
    """The rules that placement respects beyond the devices themselves."""

    host_limits: Mapping[str, int] = field(default_factory=dict)
    """Sessions that a host runs at once, as it announces them; one that says nothing has no limit."""
    shares: Mapping[str, Share] = field(default_factory=dict)
    """The shares by experiment."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names for people of the jobs that hold leases."""
    alone: frozenset[str] = frozenset()
    """The jobs whose host takes nothing beside them."""
    held: Mapping[str, tuple[Sequence[Hold], Device]] = field(default_factory=dict)
    """Devices that are held: the holds, and the device as it is for whom all of them admit."""
    reserved: Mapping[str, Sequence[Hold]] = field(default_factory=dict)
    """Devices that are reserved for later: no block begins there that would last into it, as far as is known."""
    took_s: Mapping[str, float] = field(default_factory=dict)
    """Duration of a block by experiment, where it is known."""
    order: PlacementPolicy = field(default_factory=FairShare)
    """The farm's: in which order jobs come, and which devices they prefer, where their experiment does not say."""

    use: FairUse = field(default_factory=FairUse)
    """The use of the farm by project and person; nothing where all that waits is of one person."""

    def order_of(self, job: WaitingJob) -> PlacementPolicy:
        """Return what a job is placed by; the farm's where this version does not know what the experiment names."""
        return POLICIES.get(job.policy, self.order) if job.policy else self.order

    def share_of(self, job: WaitingJob) -> Share:
        """Return what the job's experiment has of the farm."""
        return self.shares.get(job.experiment_id, _NOTHING)


@dataclass
class _Alike:
    """The facts of jobs that differ in nothing that placement asks for. In one placement a device that cannot start
    them now never can: devices are taken and hosts fill up, and neither goes back."""

    admits: Callable[[str], bool]
    left: list[str]
    """The free devices that may still start a job, the best one last."""
    reason: WaitReason | None = None


class Floor:
    """The devices during one placement. `leases` by serial, expired ones included; `now` is Unix time."""

    def __init__(self, devices: Mapping[str, Device], leases: Mapping[str, Lease], policy: Policy, now: float) -> None:
        self._devices, self._leases, self.policy, self.now = devices, leases, policy, now
        self._alike: dict[tuple[object, ...], _Alike] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._demand: Counter[str] = Counter()
        self._taken: dict[str, str] = {}
        """Serial -> label of the job that took it in this placement."""
        self._sessions = Counter(devices[s].facts.host for s in leases if s in devices)
        self._served: dict[str, str] = {}
        """Experiment -> device that its latest job took in this placement."""
        self._kept: dict[str, str] = {}
        """Host -> label of the job for which it runs nothing else."""
        if policy.alone:
            for serial, lease in leases.items():
                if lease.job_id in policy.alone and serial in devices:
                    self._kept[devices[serial].facts.host] = self._label(lease.job_id)
        self._holders: dict[tuple[object, ...], tuple[Hold, set[str]]] = {}
        """A hold of each holder, and the devices that they hold: who is admitted to one of these is to all."""
        self._closed: dict[Account, frozenset[str]] = {}
        """Account -> devices that somebody holds who does not admit it."""
        for serial, (holds, _) in policy.held.items():
            for hold in holds:
                self._holders.setdefault((hold.who, hold.project, hold.alone), (hold, set()))[1].add(serial)
        ready = {s for s, device in devices.items() if _is_ready(device, now)}
        ready |= {s for s, (_, device) in policy.held.items() if _is_ready(device, now)}
        for hold, serials in self._holders.values():
            ready -= serials if hold.alone else set()
        self.free = {s for s in ready if s not in leases and s in devices}

    def count_demand(self, groups: Sequence[Sequence[WaitingJob]]) -> None:
        """Note by how many groups of jobs each free device is wanted."""
        choices = {id(group[0].candidates): group[0] for group in groups}
        for choice, wanted in Counter(id(group[0].candidates) for group in groups).items():
            for serial in self._free_of(choices[choice]):
                self._demand[serial] += wanted

    def _free_of(self, job: WaitingJob) -> list[str]:
        key = id(job.candidates)
        if len(job.candidates) <= len(self.free):
            found = [serial for serial in dict.fromkeys(job.candidates) if serial in self.free]
        else:
            if key not in self._sets:
                self._sets[key] = frozenset(job.candidates)
            found = [serial for serial in self.free if serial in self._sets[key]]
        closed = self._closed_to(job.account)
        return [serial for serial in found if serial not in closed]

    def _closed_to(self, account: Account) -> frozenset[str]:
        if account not in self._closed:
            others = [serials for hold, serials in self._holders.values() if not hold.admits(account)]
            self._closed[account] = frozenset[str]().union(*others)
        return self._closed[account]

    def _device(self, job: WaitingJob, serial: str) -> Device:
        """The device as it is for a job."""
        is_closed = serial not in self.policy.held or serial in self._closed_to(job.account)
        return self._devices[serial] if is_closed else self.policy.held[serial][1]

    def best(self, job: WaitingJob) -> str | None:
        """The device on which a job can start now: the one that its policy prefers, of those the one that fewest others
        want; None where there is none."""
        left = self._known(job).left
        while left and self.obstacle(job, left[-1]):
            left.pop()
        return left[-1] if left else None

    def _known(self, job: WaitingJob) -> _Alike:
        pause = job.not_before if job.not_before > self.now else 0.0
        only = self._only(job)
        order, share = self.policy.order_of(job), self.policy.share_of(job)
        asked = id(share.energy) if order.needs_energy else 0
        who = job.account if self.policy.reserved else self._closed_to(job.account)
        took_s = self.policy.took_s.get(job.experiment_id) if self.policy.reserved else None
        alike = (id(job.candidates), id(job.conditions), job.said, job.failed_on, job.alone, pause, job.policy)
        key = (*alike, only, asked, who, took_s)
        if key not in self._alike:
            admits = self._admits(job)
            usable = [serial for serial in self._free_of(job) if admits(serial)]
            usable.sort(key=lambda s: (order.preference(self._devices[s], share), self._demand[s], s), reverse=True)
            self._alike[key] = _Alike(admits, usable)
        return self._alike[key]

    def _only(self, job: WaitingJob) -> str:
        """The device to which the policy binds the job's experiment, where that gets work; empty: there is none."""
        share = self.policy.share_of(job)
        if (taken := self._served.get(job.experiment_id)) is not None:
            share = replace(share, serial=taken)
        serial = self.policy.order_of(job).device_of(share)
        alive = serial in self._devices and serial in job.candidates  # of thousands, where a device is named alone
        return serial if alive and self._device(job, serial).state.health is Health.READY else ""

    def take(self, serial: str, job: WaitingJob) -> None:
        self._served[job.experiment_id] = serial
        host = self._devices[serial].facts.host
        self._taken[serial] = job.label
        self.free.discard(serial)
        self._sessions[host] += 1
        if job.alone:
            self._kept[host] = job.label

    def empty_for(self, job: WaitingJob) -> None:
        """Give the first host nothing new that lacks nothing but rest from other sessions for this job."""
        self.reason(job)  # as it is before hosts are kept for it
        for serial in filter(self._known(job).admits, job.candidates):
            found = self.obstacle(job, serial)
            if found is not None and found.kind in (WaitKind.BUSY, WaitKind.HOST_FULL) and serial in self._devices:
                self._kept.setdefault(self._devices[serial].facts.host, job.label)
                return

    def _admits(self, job: WaitingJob) -> Callable[[str], bool]:
        """Return a test: can a candidate meet a job's conditions? Where it failed counts only if no other one is alive.

        Where none can, the first to be free refuses the job, with the reason.
        """
        devices, conditions = self._devices, job.conditions
        if only := self._only(job):
            return lambda serial: serial == only

        def able(serial: str) -> bool:
            return serial not in devices or can_meet(conditions, devices[serial])

        pool = able if any(map(able, job.candidates)) else lambda _: True
        others = (s for s in job.candidates if s not in job.failed_on and s in devices and pool(s))
        if job.failed_on and any(self._device(job, s).state.health is Health.READY for s in others):
            return lambda serial: serial not in job.failed_on and pool(serial)
        return pool

    def obstacle(self, job: WaitingJob, serial: str) -> WaitReason | None:
        """Return why a job cannot start on a device now; None where it can."""
        if serial in self._taken:
            return _busy(self._taken[serial])
        if serial in self._leases:
            return _busy(self._label(self._leases[serial].job_id))
        if serial not in self._devices:
            return WaitReason(kind=WaitKind.OFFLINE, text="offline: no host announces it")
        device = self._device(job, serial)
        if serial not in self.free or serial in self._closed_to(job.account):
            return _unready(device)
        if job.not_before > self.now:
            return WaitReason(
                kind=WaitKind.RETRY, text=f"waits before the next attempt, until {_clock(job.not_before)}"
            )
        return self._crowded(job, device.facts.host) or self._reserved(job, serial) or unmet(job, device)

    def _reserved(self, job: WaitingJob, serial: str) -> WaitReason | None:
        """Return the reservation into which a block would last. One of which nothing is known is begun: it makes a
        reservation late by its own time at most."""
        took_s = self.policy.took_s.get(job.experiment_id, 0.0)
        for each in self.policy.reserved.get(serial, ()):
            if self.now + took_s > each.begins and not each.admits(job.account):
                text = f"{each.said}, and its blocks take about {max(took_s, 1.0) / 60:.1f} min"
                return WaitReason(kind=WaitKind.HELD, text=text)
        return None

    def _crowded(self, job: WaitingJob, host: str) -> WaitReason | None:
        limit = self.policy.host_limits.get(host, 0)
        if (kept := self._kept.get(host)) is not None:
            text = f"host {host} runs nothing beside {kept}, in whose attempts its worker fell silent"
        elif job.alone and self._sessions[host]:
            text = f"host {host} has other sessions, and it runs alone: its worker fell silent before"
        elif limit and self._sessions[host] >= limit:
            text = f"host {host} is at its limit of {limit} sessions"
        else:
            return None
        return WaitReason(kind=WaitKind.HOST_FULL, text=text)

    def reason(self, job: WaitingJob) -> WaitReason:
        """Return why a job waits at the end of the placement: of one device, or in words of the first few candidates
        and by kind of those that it could use, where one that is busy comes first: it will be free."""
        if spent := self.policy.use.why_not(job):
            return WaitReason(kind=WaitKind.QUOTA, text=spent)
        known = self._known(job)
        if known.reason is None:
            known.reason = self._reason(job, set(filter(known.admits, job.candidates)))
        return known.reason

    def _reason(self, job: WaitingJob, usable: set[str]) -> WaitReason:
        ordered = sorted(job.candidates, key=lambda s: (s not in usable, s))
        found = [self.obstacle(job, serial) or self._passed_over(job, serial) for serial in ordered]
        if len(found) == 1:
            return found[0]
        kinds = Counter(reason.kind for reason in found[: len(usable)])
        kind = WaitKind.BUSY if WaitKind.BUSY in kinds else min(kinds, key=lambda kind: (-kinds[kind], kind))
        whys = [f"{serial}: {reason.text}" for serial, reason in zip(ordered[:3], found, strict=False)]
        more = f"; and {len(ordered) - 3} more" if len(ordered) > 3 else ""
        return WaitReason(kind=kind, text="; ".join(whys) + more)

    def _passed_over(self, job: WaitingJob, serial: str) -> WaitReason:
        """Return why a device that could start a job now is not asked."""
        if only := self._only(job):
            text = f"the experiment's jobs stay on {only} (policy same_device)"
            return WaitReason(kind=WaitKind.AVOIDED, text=text)
        if serial in job.failed_on:
            return WaitReason(kind=WaitKind.AVOIDED, text="an earlier attempt was lost there")
        if not self._known(job).admits(serial):
            tools = lacking(job.conditions, self._devices[serial])
            why = f" (it has no {', '.join(tools)})" if tools else ""
            text = f"it cannot meet the experiment's conditions{why}, others can"
            return WaitReason(kind=WaitKind.AVOIDED, text=text)
        return WaitReason(kind=WaitKind.QUEUED, text="nothing is in its way: the scheduler starts it soon")

    def _label(self, job_id: str) -> str:
        return self.policy.labels.get(job_id, f"job {job_id}")


def _is_ready(device: Device, now: float) -> bool:
    state = device.state
    return state.health is Health.READY and (state.ready_at is None or state.ready_at <= now)


def _unready(device: Device) -> WaitReason:
    state = device.state
    if state.health is not Health.READY:
        said = "" if state.reason.startswith("reserved ") else f"{state.health} "
        said = said if state.health is Health.HELD else f"{state.health}: "  # held by anna
        text = f"{said}{state.reason}" if state.reason else str(state.health)
        return WaitReason(kind=WaitKind(state.health.value), text=text)
    text = f"{state.reason or 'cooling'}, ready at about {_clock(state.ready_at or 0.0)}"
    return WaitReason(kind=WaitKind.RESTING, text=text)


def _busy(label: str) -> WaitReason:
    return WaitReason(kind=WaitKind.BUSY, text=f"busy with {label}")


def _clock(unix_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix_s))
