"""Theory of a network of stations, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

from .product_form import Station, gordon_newell, jackson
from .spec import ClosedArrivals, Exponential, QueueingSpec, Service
from .spec.arrivals import PoissonArrivals
from .theory import Theory

IN_ORDER = ("fifo", "fastest_first")
"""Policies under which equal servers serve one line in the order of arrival."""
MOST_CLIENTS = 2000
"""Further ones take long to sum up."""


def network_theory(spec: QueueingSpec) -> list[Theory]:
    """Lines of the classes, where there are several, of the stations, and of all; none without a product form."""
    if no_product_form(spec):
        return []
    visits, servers = spec.visits(), spec.server_count
    means = [
        spec.mean_service_s(spec.groups_at(at)[0], spec.classes[_visitor(visits, at)]) for at in range(len(visits[0]))
    ]
    closed = spec.classes[0].arrivals
    if isinstance(closed, ClosedArrivals):
        shown = [Station(*each) for each in zip(visits[0], means, map(spec.servers_at, range(len(means))), strict=True)]
        rate, told = gordon_newell(closed.clients, closed.think.mean, shown)
        rates, name = [rate], "closed network"
    else:
        rates, name = list(spec.offered_rates().values()), "Jackson network"
        coming = [sum(rate * own[at] for rate, own in zip(rates, visits, strict=True)) for at in range(len(means))]
        total = sum(rates)
        shown = [Station(each / total, means[at], spec.servers_at(at)) for at, each in enumerate(coming)]
        told = jackson(total, shown)

    def line(of: list[float], rate: float, part: str | None) -> Theory:
        """Return the theory of requests that come so often to each station."""
        waiting = sum(count * each.waiting_s for count, each in zip(of, told, strict=True))
        served = sum(count * mean for count, mean in zip(of, means, strict=True))
        return Theory(name, waiting, waiting + served, rate * served / servers, rate * waiting, of_class=part)

    found = [line(own, rate, of.name) for of, own, rate in zip(spec.classes, visits, rates, strict=True)]
    stations = [
        Theory(name, at.waiting_s, at.waiting_s + mean, at.utilisation, at.queue_length, of_station=of.name)
        for of, at, mean in zip(spec.stations, told, means, strict=True)
    ]
    everything = line([each.visits for each in shown], sum(rates), None)
    return [*(found if len(found) > 1 else []), *stations, everything]


def no_product_form(spec: QueueingSpec) -> list[str]:
    """Each reason why the stations of a network are not independent of each other, as far as formulas know."""
    found = []
    for group in spec.servers:
        kinds = (("heat", group.heat), ("set-up", group.setup), ("travel", group.travel))
        found += [f"servers {group.name} have {word}" for word, has in kinds if has]
    limits = spec.limits.queue is not None or spec.limits.drop_late
    rules = (("batches", spec.batch.size > 1), ("limits", limits), ("an overhead", spec.overhead))
    found += [f"the spec has {word}" for word, has in rules if has]
    if len({each.priority for each in spec.classes}) > 1:
        found.append("classes have several priorities")
    if spec.policy.name not in IN_ORDER:
        found.append(f"policy {spec.policy.name or spec.policy.file} may not serve in the order of arrival")
    return [*found, *_of_arrivals(spec), *_of_service(spec)]


def _of_arrivals(spec: QueueingSpec) -> Iterator[str]:
    closed = [each.arrivals for each in spec.classes if isinstance(each.arrivals, ClosedArrivals)]
    for each in spec.classes:
        if not isinstance(each.arrivals, ClosedArrivals | PoissonArrivals):
            yield f"arrivals of {each.name} are {each.arrivals.kind}, not poisson or closed"
    if closed and len(spec.classes) > 1:
        yield "a closed class beside another: formulas here know one closed class alone"
    if closed and closed[0].clients > MOST_CLIENTS:
        yield f"more than {MOST_CLIENTS} clients"
    rated = all(isinstance(each.arrivals, PoissonArrivals) for each in spec.classes)
    if rated and sum(spec.offered_rates().values()) >= spec.capacity():
        yield "a station gets more than it can serve"


def _of_service(spec: QueueingSpec) -> Iterator[str]:
    """Yield why service is not at each station exponential, the same for all that come there, on all its servers."""
    for at, (station, *visits) in enumerate(zip(spec.stations, *spec.visits(), strict=True)):
        means = set()
        for group in spec.groups_at(at):
            for of in (each for each, count in zip(spec.classes, visits, strict=True) if count > 0):
                times: Service | None = group.service.get(of.name, of.service)
                if times is not None and not isinstance(times, Exponential):
                    yield f"service of {of.name} at {station.name} is {times.kind}, not exponential"
                means.add(round(spec.mean_service_s(group, of), 12))
        if len(means) > 1:
            yield f"classes or servers at {station.name} differ in their mean service"


def _visitor(visits: list[list[float]], station: int) -> int:
    """A class that comes to the station."""
    return next(kind for kind, own in enumerate(visits) if own[station] > 0)
