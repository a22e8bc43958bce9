"""Place in a turn what the view of the queue holds, where anything has changed; say seldom why the rest waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from orchestrator.ledger import Hold, Ledger
from orchestrator.ledger.queue.news import HEADS
from orchestrator.model.device import Device
from orchestrator.model.live.lease import Lease
from orchestrator.model.live.queue_view import Share, WaitingJob
from orchestrator.model.live.waiting import WaitReason

from .expectations.energy import expected_energy
from .expectations.learnt import Learnt
from .expectations.work import expected_s
from .fair_use import FairUse, fair_use
from .placement import Floor, Placement, Policy, place
from .policies import PlacementPolicy
from .queue_view import QueueView
from .seldom import Seldom

BEGIN_PER_TURN = HEADS
"""Sessions begun in one turn: records and leases must not wait for a thousand of them."""
MAX_REASONS = 2000
AGAIN_S = 1.0
"""The time for which a placement that found nothing is believed while nothing changes: pauses and rests end."""
Held = Mapping[str, tuple[Sequence[Hold], Device]]
NOBODYS: Held = MappingProxyType({})
NEVER: Mapping[str, Sequence[Hold]] = MappingProxyType({})
NO_USE = FairUse()
SHARE = 0.05
"""The share of the time for placing again where nothing changed, and for saying why jobs wait."""
FREE_S = 0.02
"""The cost of saying why jobs wait up to which each turn says it that changed anything."""


class Placer:
    """Remembers what the last placement knew."""

    def __init__(self, queue: QueueView, order: PlacementPolicy, ledger: Ledger) -> None:
        self._queue, self._order, self._ledger = queue, order, ledger
        self._work = Learnt(lambda of, models: expected_s(ledger.outlook(of), models))
        self._energy = Learnt(lambda of, models: expected_energy(ledger.energies(of), models))
        self._known: object = None
        self._devices: Mapping[str, Device] = {}
        """Kept, so that no others get its address."""
        self._placed_at = float("-inf")
        self._placing, self._explaining = Seldom(SHARE, free_s=0.0), Seldom(SHARE, free_s=FREE_S)
        self._explained = True
        self._waiting: Mapping[str, WaitReason] = {}

    def place(
        self,
        devices: Mapping[str, Device],
        leases: Mapping[str, Lease],
        version: int,
        limits: Mapping[str, int],
        held: Held = NOBODYS,
        reserved: Mapping[str, Sequence[Hold]] = NEVER,
    ) -> Placement:
        """Return what begins now, and why the others wait, as found out lately, one a group. `version`: another one
        where leases were acquired or ended; one that the caller knows to be gone may lack already."""
        known = (self._queue.version, version, len(leases), limits)
        changed = known != self._known or devices is not self._devices
        again = time.monotonic() - self._placed_at >= AGAIN_S and self._placing.due
        explain = (changed or again or not self._explained) and self._explaining.due
        if not (changed or again or explain):
            return Placement((), self._waiting)
        self._known, self._devices, self._placed_at = known, devices, time.monotonic()
        self._explained = explain
        with self._placing.doing():
            if not explain:
                placement = self._placement(devices, leases, limits, held, reserved, explain=0)
            else:
                with self._explaining.doing():
                    placement = self._placement(devices, leases, limits, held, reserved, explain=MAX_REASONS)
                if placement.waiting != self._waiting:
                    self._waiting = placement.waiting
        return replace(placement, waiting=self._waiting)

    def _placement(
        self,
        devices: Mapping[str, Device],
        leases: Mapping[str, Lease],
        limits: Mapping[str, int],
        held: Held,
        reserved: Mapping[str, Sequence[Hold]],
        explain: int,
    ) -> Placement:
        if self._queue.is_empty:
            return Placement(())
        rows = self._queue.running.values()
        policy = Policy(
            host_limits=limits,
            held=held,
            reserved=reserved,
            took_s=self._queue.took_s,
            shares=self._queue.shares,
            labels={row.job_id: row.label for row in rows} if explain else {},
            order=self._order,
            alone=frozenset(row.job_id for row in rows if row.alone),
        )
        now = time.time()
        floor = Floor(devices, leases, replace(policy, use=self._use(now)), now)
        groups = self._queue.groups(None if explain else floor.free)
        floor.policy = self._with_expected(floor.policy, groups, devices)
        return place(groups, floor, limit=BEGIN_PER_TURN, explain=explain)

    def _use(self, now: float) -> FairUse:
        """Return nothing where all jobs that wait are of one person, and no project has a limit."""
        people, took_s = self._ledger.people, self._queue.took_s
        terms = people.terms()
        if len(self._queue.accounts) < 2 and not any(each.phone_hours for each in terms.values()):
            return NO_USE
        return fair_use(terms, people.used(now), self._queue.under_way(now), took_s, now)

    def _with_expected(
        self, policy: Policy, groups: Sequence[Sequence[WaitingJob]], devices: Mapping[str, Device]
    ) -> Policy:
        """Return the policy with what policies that look ahead ask for."""
        orders = {group[0].experiment_id: policy.order_of(group[0]) for group in groups}
        work_s = self._work.of([e for e, order in orders.items() if order.needs_expected], devices)
        energy = self._energy.of([e for e, order in orders.items() if order.needs_energy], devices)
        known = {
            e: replace(policy.shares.get(e, Share()), expected_s=work_s.get(e), energy=energy.get(e, {}))
            for e, order in orders.items()
            if order.needs_expected or order.needs_energy
        }
        return replace(policy, shares={**policy.shares, **known}) if known else policy
