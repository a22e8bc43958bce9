"""Placement: which waiting job goes to which free device now. A pure function of its arguments, whatever their order.

Laws: at most one job a device; only devices that are ready, free and candidates; no runnable job is left while one of
its devices is free; then the policy's order: by default priority first, then the experiment that runs least (and was
served longest ago), then the order of submission. A job that must be alone comes before all: its host takes nothing
beside it, and nothing new until it is empty.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.waiting import WaitReason

from .floor import Floor, Policy


@dataclass(frozen=True)
class Placement:
    """The answer: (job, serial) pairs in the order in which they were chosen, and why other jobs wait."""

    assignments: tuple[tuple[str, str], ...]
    waiting: Mapping[str, WaitReason] = field(default_factory=dict)
    experiment_of: Mapping[str, str] = field(default_factory=dict)
    """The experiment by job, of those that were assigned."""


def place(
    groups: Iterable[Sequence[WaitingJob]], floor: Floor, *, limit: int | None = None, explain: int | None = None
) -> Placement:
    """Assign waiting jobs to the devices of a floor, at most `limit` of them; the floor then has them as taken.

    `groups`: jobs of an experiment that differ in their order only, in that order. `explain`: of how many jobs it is
    said why they wait; None: of all.
    """
    every = [group for group in groups if group]
    floor.count_demand(every)
    assigned: dict[str, str] = {}
    experiment_of: dict[str, str] = {}
    for job in _in_turn(every, floor.policy, floor.now, assigned):
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
    waiting = (job for group in every for job in group if job.job_id not in assigned)
    told = sorted(waiting, key=lambda job: (-job.priority, job.order, job.job_id))[:explain] if explain != 0 else []
    return Placement(tuple(assigned.items()), {job.job_id: floor.reason(job) for job in told}, experiment_of)


class _Queue:
    """The groups of one experiment at one level, the next job first."""

    def __init__(self, level: tuple[float, float], experiment_id: str) -> None:
        self.level, self.experiment_id = level, experiment_id
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
            queues.setdefault(key, _Queue(*key)).add(group, 0)
    yield from _by_share(list(queues.values()), policy, assigned)


def _by_share(queues: Sequence[_Queue], policy: Policy, assigned: Mapping[str, str]) -> Iterator[WaitingJob]:
    """Yield the next job, of the queues of the first level, from the experiment with the least share so far."""
    running = {experiment: share.running for experiment, share in policy.shares.items()}
    served: dict[str, tuple[int, float]] = {e: (0, share.served_at) for e, share in policy.shares.items()}

    def turn(queue: _Queue) -> tuple[object, ...]:
        experiment = queue.experiment_id
        share = (running.get(experiment, 0), served.get(experiment, (0, 0.0)))
        return (queue.level, *share, queue.heap[0][0], experiment)

    turns = [(turn(queue), number) for number, queue in enumerate(queues)]
    heapq.heapify(turns)
    while turns:
        known, number = heapq.heappop(turns)
        queue = queues[number]
        if known != (now := turn(queue)):  # it was served at another level since
            heapq.heappush(turns, (now, number))
            continue
        _, job_id, place, group = heapq.heappop(queue.heap)
        yield group[place]
        if job_id in assigned:
            running[queue.experiment_id] = running.get(queue.experiment_id, 0) + 1
            served[queue.experiment_id] = (len(assigned), 0.0)
            if place + 1 < len(group):
                queue.add(group, place + 1)
        if queue.heap:
            heapq.heappush(turns, (turn(queue), number))
