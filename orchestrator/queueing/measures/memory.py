"""The memory of a queue: stretches of a run that are closer together than this say the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from orchestrator.queueing.requests import Column, Run
from orchestrator.queueing.spec import ClosedArrivals, QueueingSpec, TraceArrivals
from orchestrator.queueing.spec.arrivals import Arrivals, DiurnalArrivals, MmppArrivals

LEAST_BEYOND = 15
"""Independent values that must lie beyond a quantile for an interval of it. Sojourns are as independent as stretches
that the queue does not remember: with 15, intervals of M/M/1 hold the truth in 90 to 97 of 100 experiments."""


def memory_s(spec: QueueingSpec, runs: Sequence[Run], cut_s: float) -> float:
    """The relaxation time of M/M/1 at this load, 1 / (mu (1 - sqrt(load))^2), as many times as arrivals and service
    vary more than that. Where only so many can wait, that of M/M/1/K. Infinite without a steady state.

    Arrivals whose rate changes remember a round of their states, or a period, at least.
    """
    kept = [run.requests.between(cut_s, run.duration_s) for run in runs]
    served = np.concatenate([each.done.column("served_s") for each in kept])
    if spec.stations:
        found = _of_stations(spec, runs, cut_s)
    else:
        alone = _stated(spec) or _measured(spec, runs, cut_s, float(served.sum()))
        found = [alone] if alone is not None else []
    if not found:
        return 0.0
    gaps = np.concatenate([np.diff(each.column("intended")) for each in kept])
    vary = max(1.0, (_scv(gaps) + _scv(served)) / 2)
    queue_s = vary * max(relaxation_s(*each, _most(spec, each[0])) for each in found)
    return max(queue_s, *(_round_s(each.arrivals) for each in spec.classes))


def _stated(spec: QueueingSpec) -> tuple[float, float] | None:
    """Return what a request takes all servers together, and the load, by the spec alone: by the runs, quiet ones
    would pass for those of a lower load. None where they tell better."""
    times = [group.service.get(each.name, each.service) for group in spec.servers for each in spec.classes]
    rated = not any(isinstance(each.arrivals, ClosedArrivals | TraceArrivals) for each in spec.classes)
    warm = any(group.heat or group.setup for group in spec.servers) or any(each.infer for each in spec.classes)
    if warm or not rated or None in times:
        return None
    mean_s = 1 / spec.capacity()
    return mean_s, mean_s * sum(spec.offered_rates().values())


def _of_stations(spec: QueueingSpec, runs: Sequence[Run], cut_s: float) -> list[tuple[float, float]]:
    """The same of each station. One that serves a request several times forgets as much later."""
    if _stated(spec) is not None:
        rate = sum(spec.offered_rates().values())
        return [(1 / most / min(1.0, visits), rate / most) for most, visits in spec.station_capacities().values()]
    found = []
    for at in range(len(spec.stations)):
        kept = [run.visits[at].between(cut_s, run.duration_s) for run in runs]
        busy_s, count = sum(float(each.column("served_s").sum()) for each in kept), sum(map(len, kept))
        if busy_s > 0:
            again = max(1.0, count / sum(len(run.requests.between(cut_s, run.duration_s)) for run in runs))
            load = busy_s / spec.servers_at(at) / sum(run.duration_s - cut_s for run in runs)
            found.append((again * busy_s / count / spec.servers_at(at), load))
    return found


def _measured(spec: QueueingSpec, runs: Sequence[Run], cut_s: float, served_s: float) -> tuple[float, float] | None:
    """The same by what servers did; None: they did nothing."""
    busy_s, ended = sum(_busy_s(run, cut_s) for run in runs), sum(_ended(run, cut_s) for run in runs)
    if busy_s <= 0 or not ended:
        return None
    mean_s = busy_s / ended / spec.server_count * _full_batches(spec, served_s / busy_s)
    arrived = sum(len(run.requests.between(cut_s, run.duration_s)) for run in runs)
    return mean_s, arrived * mean_s / sum(run.duration_s - cut_s for run in runs)


def relaxation_s(mean_s: float, load: float, most: float = math.inf) -> float:
    """Return how fast M/M/1 with at most so many requests forgets; `mean_s`: one's time, all servers together."""
    bound = math.cos(math.pi / (most + 1)) if math.isfinite(most) else 1.0
    falls = 1 + load - 2 * math.sqrt(load) * bound if load < 1 or bound < 1 else 0.0
    return mean_s / falls if falls > 0 else math.inf


def _busy_s(run: Run, cut_s: float) -> float:
    at, busy_s = [0.0, *run.course.at], [0.0, *map(sum, run.course.busy_s)]
    first, last = np.interp((cut_s, run.duration_s), at, busy_s)
    return float(last - first)


def _ended(run: Run, cut_s: float) -> int:
    ended = run.requests.done.column("ended")
    return int(((ended >= cut_s) & (ended < run.duration_s)).sum())


def _full_batches(spec: QueueingSpec, size: float) -> float:
    """Return how much less a request takes in full batches than in those that there were, of `size` on average."""
    return spec.batch.cost(spec.batch.size) / spec.batch.size * size / spec.batch.cost(size)


def _scv(values: Column) -> float:
    """The squared coefficient of variation; 1 for an exponential time."""
    mean = float(values.mean()) if len(values) else 0.0
    return float(values.var()) / mean**2 if mean > 0 else 1.0


def _most(spec: QueueingSpec, mean_s: float) -> float:
    """The most requests that are in the system, as far as the spec bounds them."""
    bounds = [math.inf]
    if spec.limits.queue is not None:
        bounds.append(spec.limits.queue + spec.server_count)
    clients = [each.arrivals.clients for each in spec.classes if isinstance(each.arrivals, ClosedArrivals)]
    if len(clients) == len(spec.classes):
        bounds.append(sum(clients))
    deadlines = [each.deadline for each in spec.classes if each.deadline is not None]
    if spec.limits.drop_late and len(deadlines) == len(spec.classes):
        bounds.append(max(deadlines) / mean_s)
    return min(bounds)


def _round_s(arrivals: Arrivals) -> float:
    if isinstance(arrivals, MmppArrivals):
        return sum(arrivals.stays)
    return arrivals.period if isinstance(arrivals, DiurnalArrivals) else 0.0
