"""One look at the farm for all who watch it: what is announced and what the ledger says, and what is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from redis import Redis

from orchestrator.answers import Wait, explain
from orchestrator.answers.fleet import Lane, lanes_of, unnamed
from orchestrator.answers.hosts import HostView, views
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Hold, Ledger, RunningRow
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.model.device import Device
from orchestrator.model.errors import FarmError
from orchestrator.model.live.announcement import HostAnnouncement, Progress
from orchestrator.model.live.waiting import WaitReason

from .reasons import Reason, reasons_of

PERIOD_S = 0.35
"""The time between two looks, where one costs little."""
QUICK_S = 0.1
"""A queue that was counted in less is counted in every look."""
QUEUE_SHARE = 12.0
"""A longer one is not counted again for so many times as long as that took."""
SHARE = 2.0
"""The pause after a look as a multiple of its time: watching takes no more than a third of a core."""


@dataclass(frozen=True)
class Look:
    """The state of the farm at one moment. What is away is empty here, and `away` says so."""

    lanes: tuple[Lane, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Jobs by state or outcome."""
    reasons_told: Sequence[Reason] = ()
    """The reasons why jobs wait, what most of them do first."""
    reasons: Mapping[str, WaitReason] | None = None
    """The scheduler's reasons; None where no scheduler says any."""
    hosts: tuple[HostView, ...] = ()
    running: Mapping[str, RunningRow] = field(default_factory=dict)
    """Serial -> its newest attempt under way."""
    holds: Mapping[str, Hold] = field(default_factory=dict)
    away: tuple[str, ...] = ()
    """Services that are down, each with a remedy."""
    took_s: float = 0.0
    at: float = 0.0
    """Unix time."""

    @property
    def devices(self) -> list[Device] | None:
        """Return the devices as placement sees them; None where Redis is away."""
        return None if self.reasons is None and not self.lanes else [lane.device for lane in self.lanes]

    def lane(self, serial: str) -> Lane | None:
        return next((lane for lane in self.lanes if lane.device.serial == serial), None)


def narrowed(look: Look, ledger: Callable[[], Ledger], projects: frozenset[str] | None) -> Look:
    """Return what those may see who may view these projects alone (None: all): no other job or experiment, nor why they
    wait; how much there is to do in all, and what phones and hosts do."""
    if projects is None or not (look.lanes or look.running or look.reasons_told):
        return look
    ids = {*(row.experiment_id for row in look.running.values()), *(each.experiment_id for each in look.reasons_told)}
    seen = ledger().listed.among(ids, projects)
    running = {serial: row for serial, row in look.running.items() if row.experiment_id in seen}
    return replace(
        look,
        running=running,
        reasons_told=[each for each in look.reasons_told if each.experiment_id in seen],
        lanes=tuple(replace(lane, progress=_without_name(lane, running), why="") for lane in look.lanes),
    )


def _without_name(lane: Lane, running: Mapping[str, RunningRow]) -> Progress | None:
    one, row = lane.progress, running.get(lane.device.serial)
    if one is None or (row is not None and row.job_id == one.job_id):
        return one
    return unnamed(one)


class Watch:
    """Looks when somebody asks, and not more often than is needed; one look serves all who ask meanwhile. The queue,
    which may be long, is looked at beside it, at a pace of its own."""

    def __init__(self, ledger: Callable[[], Ledger], redis: Callable[[], Redis]) -> None:
        """Both are called for each look, and may raise FarmError."""
        self._ledger, self._redis = ledger, redis
        self._lock = threading.Lock()
        self._latest: Look | None = None
        self._taken_at = float("-inf")
        self._queue: _Queue | None = None
        self._counting: threading.Thread | None = None

    def look(self) -> Look:
        """The latest look, or a new one where that is old."""
        with self._lock:
            if self._latest is None or time.monotonic() >= self._taken_at + self.pause_s:
                self._latest = self._take()
                self._taken_at = time.monotonic()
            return self._latest

    @property
    def pause_s(self) -> float:
        """Return the time from one look to the next."""
        return max(PERIOD_S, SHARE * (self._latest.took_s if self._latest else 0.0))

    def _take(self) -> Look:
        began, away = time.monotonic(), []
        announced = _Announced()
        try:
            announced = _announced(self._redis())
        except FarmError as e:
            away.append(_words(e))
        try:
            ledger = self._ledger()
            found = _with_ledger(ledger, announced, self._counted(ledger, announced.reasons))
        except FarmError as e:
            away.append(_words(e))
            found = Look(lanes=lanes_of(announced.devices, announced.leased, announced.progress))
        return Look(**{**vars(found), "away": tuple(away), "took_s": time.monotonic() - began, "at": time.time()})

    def _counted(self, ledger: Ledger, reasons: Mapping[str, WaitReason] | None) -> _Queue:
        """The queue now where it is short; where it is long as it was when it was last counted."""
        known = self._queue
        if known is None or known.took_s < QUICK_S:
            self._queue = _queue(ledger, reasons)
        elif self._counting is None and time.monotonic() > known.at + QUEUE_SHARE * known.took_s:
            self._counting = threading.Thread(target=self._count, args=(ledger, reasons), daemon=True)
            self._counting.start()
        assert self._queue is not None
        return self._queue

    def _count(self, ledger: Ledger, reasons: Mapping[str, WaitReason] | None) -> None:
        with suppress(FarmError):
            self._queue = _queue(ledger, reasons)
        self._counting = None


@dataclass(frozen=True)
class _Queue:
    """The part of a look that takes the longer the more waits."""

    waits: tuple[Wait, ...]
    reasons_told: Sequence[Reason]
    counts: Mapping[str, int]
    by_device: Mapping[str, tuple[int, int]]
    took_s: float
    at: float
    """The time when it had been counted, by the monotonic clock."""


def _queue(ledger: Ledger, reasons: Mapping[str, WaitReason] | None) -> _Queue:
    began = time.monotonic()
    waits = explain(ledger.waiting_in_brief(reasons or ()), reasons)
    counts, by_device = ledger.counts(), ledger.device_counts()
    return _Queue(waits, reasons_of(waits), counts, by_device, time.monotonic() - began, time.monotonic())


@dataclass(frozen=True)
class _Announced:
    devices: tuple[Device, ...] = ()
    hosts: tuple[HostAnnouncement, ...] = ()
    progress: tuple[Progress, ...] = ()
    leased: frozenset[str] = frozenset()
    reasons: Mapping[str, WaitReason] | None = None


def _announced(redis: Redis) -> _Announced:
    inventory = Inventory(redis)
    return _Announced(
        devices=tuple(inventory.devices()),
        hosts=tuple(inventory.hosts()),
        progress=tuple(inventory.progress()),
        leased=frozenset(Leases(redis).all()),
        reasons=inventory.waiting(),
    )


def _with_ledger(ledger: Ledger, announced: _Announced, queue: _Queue) -> Look:
    devices = devices_for_work(announced.devices, announced.hosts, ledger)
    running = ledger.running()
    return Look(
        lanes=lanes_of(devices, announced.leased, announced.progress, queue.waits, queue.by_device),
        counts=queue.counts,
        reasons_told=queue.reasons_told,
        reasons=announced.reasons,
        hosts=tuple(views(announced.hosts, ledger.standing.hosts(), running)),
        running={row.serial: row for row in running},
        holds={hold.serial: hold for hold in ledger.standing.holds() if not hold.is_pool},
    )


def _words(error: FarmError) -> str:
    return "; ".join(filter(None, (str(error.args[0]).partition("\n")[0], error.remedy)))
