"""Placement: which waiting job goes to which free device now. A pure function of its arguments, whatever their order.

Laws: at most one job a device; only devices that are ready, free and candidates; no runnable job is left while one of
its devices is free and its project may use one; then the project that used least of its share; in it the policy's
order, by default priority first; then the person who used least, then the experiment that runs least (and was served
longest ago), then the order of submission. A job that must be alone comes before all: its host takes nothing
beside it, and nothing new until it is empty.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.usage import Account
from orchestrator.model.live.waiting import WaitReason

from .floor import Floor, Policy

K = TypeVar("K", str, Account)


@dataclass(frozen=True)
class Placement:
    """The answer: (job, serial) pairs in the order in which they were chosen, and why the others wait, one a group."""

    assignments: tuple[tuple[str, str], ...]
    waiting: Mapping[str, WaitReason] = field(default_factory=dict)
    experiment_of: Mapping[str, str] = field(default_factory=dict)
    """The experiment by job, of those that were assigned."""


def place(
    groups: Iterable[Sequence[WaitingJob]], floor: Floor, *, limit: int | None = None, explain: int | None = None
) -> Placement:
    """Assign waiting jobs to the devices of a floor, at most `limit` of them; the floor then has them as taken.

    `groups`: jobs of an experiment that differ in their order only, in that order. `explain`: of how many groups it is
    said why they wait, of their last job for all; None: of all groups.
    """
    every = [group for group in groups if group]
    may = [group for group in every if not floor.policy.use.why_not(group[0])]
    floor.count_demand(may)
    assigned: dict[str, str] = {}
    experiment_of: dict[str, str] = {}
    for job in _in_turn(may, floor.policy, floor.now, assigned):
        if limit is not None and len(assigned) >= limit:
            break
        serial = floor.best(job)
        if serial is not None:
            floor.take(serial, job)
            assigned[job.job_id], experiment_of[job.job_id] = serial, job.experiment_id
        elif job.alone:
            floor.empty_for(job)
        if not floor.free:
            break
    waiting = (last for group in every if (last := group[len(group) - 1]).job_id not in assigned)
    told = sorted(waiting, key=lambda job: (-job.priority, job.order, job.job_id))[:explain] if explain != 0 else []
    return Placement(tuple(assigned.items()), {job.job_id: floor.reason(job) for job in told}, experiment_of)


class _Queue:
    """The groups of one experiment at one level, the next job first."""

    def __init__(self, level: tuple[float, float], experiment_id: str, account: Account) -> None:
        self.level, self.experiment_id, self.account = level, experiment_id, account
        self.heap: list[tuple[tuple[int, int], str, int, Sequence[WaitingJob]]] = []

    def add(self, group: Sequence[WaitingJob], place: int) -> None:
        job = group[place]
        heapq.heappush(self.heap, (job.order, job.job_id, place, group))


def _in_turn(
    groups: Sequence[Sequence[WaitingJob]], policy: Policy, now: float, assigned: Mapping[str, str]
) -> Iterator[WaitingJob]:
    """Every job once, but those whose like could not be placed. The caller notes in `assigned` what it could place."""
    alone = [job for group in groups if group[0].alone for job in group]  # they are alike: the others are not looked at
    yield from sorted(alone, key=lambda job: (job.order, job.job_id))
    queues: dict[tuple[tuple[float, float], str], _Queue] = {}
    for group in groups:
        if not group[0].alone:
            job = group[0]
            key = (policy.order_of(job).level(job, now, policy.share_of(job)), job.experiment_id)
            queues.setdefault(key, _Queue(*key, job.account)).add(group, 0)
    yield from _Turns(policy, assigned).of_farm(queues.values())


class _Turns:
    """The turns of projects, their people, and their experiments."""

    def __init__(self, policy: Policy, assigned: Mapping[str, str]) -> None:
        self._use, self._took_s, self._assigned = policy.use, policy.took_s, assigned
        self._running = {experiment: share.running for experiment, share in policy.shares.items()}
        self._served: dict[str, tuple[int, float]] = {e: (0, share.served_at) for e, share in policy.shares.items()}
        self._left_s = dict(policy.use.left_s)

    def of_farm(self, queues: Iterable[_Queue]) -> Iterator[WaitingJob]:
        """Yield the next job of the project that used least of its share."""
        projects: dict[str, list[_Queue]] = defaultdict(list)
        for queue in queues:
            projects[queue.account.project].append(queue)
        parts = {name: self._of_project(own) for name, own in projects.items()}
        shares = {name: self._use.share_of(name) for name in parts}
        yield from self._fairly(parts, {name: self._use.of_project.get(name, 0.0) for name in parts}, shares)

    def _of_project(self, queues: Iterable[_Queue]) -> Iterator[WaitingJob]:
        """Yield the next job of the first level, of the person who used least."""
        levels: dict[tuple[float, float], dict[Account, list[_Queue]]] = defaultdict(lambda: defaultdict(list))
        for queue in queues:
            levels[queue.level][queue.account].append(queue)
        used = dict(self._use.of_person)
        for level in sorted(levels):
            yield from self._fairly({each: self._of_person(own) for each, own in levels[level].items()}, used, {})

    def _fairly(
        self, parts: Mapping[K, Iterator[WaitingJob]], used: dict[K, float], shares: Mapping[K, float]
    ) -> Iterator[WaitingJob]:
        """Yield the next job of who used least by its share, and note in `used` what is placed."""
        turns = [(used.get(each, 0.0) / shares.get(each, 1.0), each) for each in parts]
        heapq.heapify(turns)
        while turns:
            _, each = heapq.heappop(turns)
            job = next(parts[each], None)
            if job is None:
                continue
            yield job
            if job.job_id in self._assigned:
                used[each] = used.get(each, 0.0) + self._use.horizon_s
                if each == job.project and self._is_spent(job):
                    continue
            heapq.heappush(turns, (used.get(each, 0.0) / shares.get(each, 1.0), each))

    def _is_spent(self, job: WaitingJob) -> bool:
        """Return whether a project may use no further phone, now that this job has one."""
        if job.project in self._left_s:
            self._left_s[job.project] -= self._took_s.get(job.experiment_id, 0.0)
        return self._left_s.get(job.project, inf) <= 0

    def _of_person(self, queues: Sequence[_Queue]) -> Iterator[WaitingJob]:
        """Yield the next job of the experiment with the least share so far."""
        turns = [(self._turn(queue), number) for number, queue in enumerate(queues)]
        heapq.heapify(turns)
        while turns:
            known, number = heapq.heappop(turns)
            queue = queues[number]
            if known != (now := self._turn(queue)):  # it was served at another level since
                heapq.heappush(turns, (now, number))
                continue
            _, job_id, place, group = heapq.heappop(queue.heap)
            yield group[place]
            if job_id in self._assigned:
                experiment = queue.experiment_id
                self._running[experiment] = self._running.get(experiment, 0) + 1
                self._served[experiment] = (len(self._assigned), 0.0)
                if place + 1 < len(group):
                    queue.add(group, place + 1)
            if queue.heap:
                heapq.heappush(turns, (self._turn(queue), number))

    def _turn(self, queue: _Queue) -> tuple[object, ...]:
        experiment = queue.experiment_id
        share = (self._running.get(experiment, 0), self._served.get(experiment, (0, 0.0)))
        return (*share, queue.heap[0][0], experiment)
