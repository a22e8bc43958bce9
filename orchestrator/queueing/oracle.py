"""The lines of theory that apply to a spec."""

from __future__ import annotations

from dataclasses import replace

from .network_oracle import network_theory
from .product_form import Station, gordon_newell
from .spec import ClosedArrivals, Exponential, QueueingSpec, RequestClass
from .spec.arrivals import PoissonArrivals
from .theory import Theory, md1, mg1, mg1_ps, mm1, mm1k, mmc, power_of_d, priority_mm1

SIMULATED = "simulated"
"""The source of a simulation's results."""
ONE_LINE = ("fifo", "edf", "fastest_first")
OWN_LINES = ("jsq", "power_of_d", "round_robin", "least_expected_work", "energy_aware")
"""Policies that serve one class in the order of arrival; with a single server the two kinds are the same."""
SELDOM = 1e-4
"""The share of the time in which as many run together as may, below which that is no limit."""
MANY = 20
"""Servers from which on the limit of many servers is told."""


def theory_of(spec: QueueingSpec, source: str = SIMULATED) -> list[Theory]:
    """Return theory for all, by class or by station; empty where nothing here applies, or without a steady state.
    `source`: where the requests were served; what devices computed did not take the times that the spec declares.
    """
    if source != SIMULATED and any(each.infer for each in spec.classes):
        return []
    if spec.stations:
        return network_theory(spec)
    if not _plain(spec):
        return []
    first = spec.classes[0]
    if len(spec.classes) > 1:
        return _priorities(spec)
    if isinstance(first.arrivals, ClosedArrivals):
        return _closed(spec, first)
    if isinstance(first.arrivals, PoissonArrivals):
        return _open(spec, first, first.arrivals.rate)
    return []


def _plain(spec: QueueingSpec) -> bool:
    """One kind of server, nothing that a formula does not know."""
    group = spec.servers[0]
    odd = group.heat or group.setup or group.travel or group.service or spec.overhead
    odd = odd or any(each.service is None or not each.service.mean for each in spec.classes)
    odd = odd or (spec.batch.size > 1 and not spec.batch.continuous) or spec.limits.drop_late
    return len(spec.servers) == 1 and not odd and not spec.policy.options.keys() - {"d"}


def _open(spec: QueueingSpec, of: RequestClass, rate: float) -> list[Theory]:
    """Poisson arrivals of one class, served in their order."""
    group, service, queue = spec.servers[0], of.service, spec.limits.queue
    assert service is not None
    mean, exponential = spec.mean_service_s(group, of), isinstance(service, Exponential)
    servers, one_line = group.count, spec.policy.name in ONE_LINE
    if queue is not None:
        return [mm1k(rate, mean, queue + 1)] if exponential and one_line and servers == 1 else []
    if rate * mean >= servers:
        return []
    if spec.batch.continuous and spec.batch.size > 1:
        is_shared = servers == 1 and spec.batch.marginal == 1 and (rate * mean) ** spec.batch.size < SELDOM
        return [mg1_ps(rate, mean)] if is_shared else []
    if spec.policy.name == "power_of_d" and exponential and servers >= MANY:
        return [power_of_d(rate, mean, servers, int(spec.policy.options.get("d", 2)))]
    if servers > 1:
        return [mmc(rate, mean, servers)] if exponential and one_line else []
    if not one_line and spec.policy.name not in OWN_LINES:
        return []
    if exponential:
        return [mm1(rate, mean)]
    return [md1(rate, mean)] if service.scv == 0 else [mg1(rate, mean, service.scv)]


def _closed(spec: QueueingSpec, of: RequestClass) -> list[Theory]:
    assert isinstance(of.arrivals, ClosedArrivals)
    if not isinstance(of.service, Exponential) or spec.policy.name != "fifo" or spec.limits.queue is not None:
        return []
    group = spec.servers[0]
    mean = spec.mean_service_s(group, of)
    _, (told,) = gordon_newell(of.arrivals.clients, of.arrivals.think.mean, [Station(1.0, mean, group.count)])
    return [Theory("M/M/c//N", told.waiting_s, told.waiting_s + mean, told.utilisation, told.queue_length)]


def _priorities(spec: QueueingSpec) -> list[Theory]:
    """One server, Poisson arrivals, exponential service, a priority of its own for each class."""
    ordered = sorted(spec.classes, key=lambda each: -each.priority)
    fits = all(isinstance(each.arrivals, PoissonArrivals) and isinstance(each.service, Exponential) for each in ordered)
    group = spec.servers[0]
    distinct = len({each.priority for each in ordered}) == len(ordered)
    if not fits or not distinct or group.count > 1 or spec.policy.name != "fifo":
        return []
    if spec.preemption == "restart" or spec.limits.queue is not None:
        return []
    rates = [spec.offered_rates()[each.name] for each in ordered]
    means = [spec.mean_service_s(group, each) for each in ordered]
    if sum(rate * mean for rate, mean in zip(rates, means, strict=True)) >= 1:
        return []
    found = priority_mm1(rates, means, preemptive=spec.preemption == "resume")
    return [replace(line, of_class=each.name) for line, each in zip(found, ordered, strict=True)]
