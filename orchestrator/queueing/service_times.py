"""The time that a server of a group takes, as the spec says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .dispatch import Request, Rules, Server
from .draws import Draws, draws_of
from .spec import QueueingSpec, ServerGroup


class ServiceTimes:
    """Times of one group's servers; where they have none of their own, the request's size."""

    __slots__ = ("_draws", "group")

    def __init__(self, group: ServerGroup, draws: dict[int, Draws]) -> None:
        self.group, self._draws = group, draws

    def of(self, batch: list[Request]) -> float:
        """Mean time of the batch's requests, each alone on this server, as far as they are not served yet."""
        if len(batch) == 1:
            return self._of_one(batch[0])
        return sum(self._of_one(request) for request in batch) / len(batch)

    def _of_one(self, request: Request) -> float:
        own = self._draws.get(request.kind)
        if own is None:
            assert request.size_s is not None
            return request.size_s * request.left / self.group.speed
        if request.drawn is None or request.drawn[0] is not own:  # an interrupted one goes on with its size
            request.drawn = (own, next(own))
        return request.drawn[1] * request.left / self.group.speed


def make_servers(
    spec: QueueingSpec, seed: np.random.SeedSequence, measured_s: Sequence[Sequence[float | None]] = ()
) -> list[tuple[Server, ServiceTimes]]:
    """Every server of a spec as the dispatcher sees it, with its times.

    `measured_s`: by server and class the mean time that was found there. Raises SpecError where there is none.
    """
    found: list[tuple[Server, ServiceTimes]] = []
    for group, own_seed in zip(spec.servers, seed.spawn(len(spec.servers)), strict=True):
        random = np.random.default_rng(own_seed)
        own_times = {i: group.service[of.name] for i, of in enumerate(spec.classes) if of.name in group.service}
        times = ServiceTimes(group, {kind: draws_of(each, random) for kind, each in own_times.items()})
        for number in range(group.count):
            known = measured_s[len(found)] if measured_s else [None] * len(spec.classes)
            expected_s = [own or spec.mean_service_s(group, of) for own, of in zip(known, spec.classes, strict=True)]
            name = group.name if group.count == 1 else f"{group.name}-{number + 1}"
            busy_w = group.power.busy_w if group.power else 0.0
            found.append((Server(len(found), name, expected_s, busy_w), times))
    return found


def rules_of(spec: QueueingSpec) -> Rules:
    """Return the rules under every policy."""
    return Rules(
        queue=spec.limits.queue,
        drop_late=spec.limits.drop_late,
        batch_size=spec.batch.size,
        batch_window_s=spec.batch.window,
        batch_factor=spec.batch.cost,
        preemption=spec.preemption != "none",
        continuous=spec.batch.continuous,
    )
