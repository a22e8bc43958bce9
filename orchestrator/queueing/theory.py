"""The theory of simple systems, in closed form: the oracle of the simulation, and a line beside its figures.

Rates are requests a second, times seconds. Sources: Kleinrock, Queueing Systems I (1975) and II (1976);
Mitzenmacher, The Power of Two Choices (2001) for d choices among many servers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Theory:
    """Means in the steady state; None where there is no formula here."""

    name: str
    waiting_s: float
    sojourn_s: float
    utilisation: float
    queue_length: float
    drop_share: float = 0.0
    sojourn_p99_s: float | None = None
    of_class: str | None = None
    """The class that it speaks of; None: all."""
    of_station: str | None = None
    """The station of a network; its times are of one visit."""

    @property
    def part(self) -> str:
        """The part of a table that it stands below, as `Measured.parts` names it."""
        return f"at {self.of_station}" if self.of_station is not None else self.of_class or "all"


def mg1(rate: float, mean_s: float, scv: float, name: str = "M/G/1") -> Theory:
    """Pollaczek and Khinchine; `scv`: squared coefficient of variation of the service."""
    load = rate * mean_s
    waiting = load * mean_s * (1 + scv) / 2 / (1 - load)
    return Theory(name, waiting, waiting + mean_s, load, rate * waiting)


def md1(rate: float, mean_s: float) -> Theory:
    return mg1(rate, mean_s, 0.0, "M/D/1")


def mg1_ps(rate: float, mean_s: float) -> Theory:
    """A processor that all requests share: each is served at once, and takes 1/(1 - load) times as long, whatever the
    times' distribution (Kleinrock II, 4.4)."""
    load = rate * mean_s
    return Theory("M/G/1, shared", 0.0, mean_s / (1 - load), load, 0.0)


def mm1(rate: float, mean_s: float) -> Theory:
    found = mg1(rate, mean_s, 1.0, "M/M/1")
    p99 = math.log(100) * found.sojourn_s
    return Theory("M/M/1", found.waiting_s, found.sojourn_s, found.utilisation, found.queue_length, sojourn_p99_s=p99)


def erlang_c(servers: int, offered: float) -> float:
    """The share of requests that have to wait; `offered`: rate times mean service, in servers."""
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def mmc(rate: float, mean_s: float, servers: int) -> Theory:
    offered = rate * mean_s
    waiting = erlang_c(servers, offered) * mean_s / (servers - offered)
    return Theory(f"M/M/{servers}", waiting, waiting + mean_s, offered / servers, rate * waiting)


def mm1k(rate: float, mean_s: float, most: int) -> Theory:
    """`most`: requests in the system, the one that is served among them."""
    load = rate * mean_s
    weights = [load**n for n in range(most + 1)]
    shares = [weight / sum(weights) for weight in weights]
    accepted = rate * (1 - shares[-1])
    in_system = sum(n * share for n, share in enumerate(shares))
    waiting = in_system / accepted - mean_s
    return Theory("M/M/1/K", waiting, waiting + mean_s, 1 - shares[0], accepted * waiting, shares[-1])


def priority_mm1(rates: list[float], means_s: list[float], *, preemptive: bool) -> list[Theory]:
    """Classes from the highest priority down; preemptive: an interrupted one goes on where it was (Cobham 1954)."""
    loads = [rate * mean for rate, mean in zip(rates, means_s, strict=True)]
    residual = [rate * mean**2 for rate, mean in zip(rates, means_s, strict=True)]
    found = []
    for k, (rate, mean) in enumerate(zip(rates, means_s, strict=True)):
        above, upto = sum(loads[:k]), sum(loads[: k + 1])
        if preemptive:
            sojourn = mean / (1 - above) + sum(residual[: k + 1]) / ((1 - above) * (1 - upto))
        else:
            sojourn = mean + sum(residual) / ((1 - above) * (1 - upto))
        waiting = sojourn - mean
        name = "M/M/1, preemptive priority" if preemptive else "M/M/1, priority"
        found.append(Theory(name, waiting, sojourn, loads[k], rate * waiting))
    return found


def power_of_d(rate: float, mean_s: float, servers: int, d: int) -> Theory:
    """The limit of many servers, exponential service: (load^(d^i - 1)/(d - 1)) is the share with i or more requests."""
    load = rate * mean_s / servers
    if d == 1:
        return mm1(rate / servers, mean_s)
    tail = [load ** ((d**i - 1) / (d - 1)) for i in range(1, 30 if d == 2 else 12)]
    sojourn = sum(tail) / load * mean_s
    return Theory(f"{d} choices, many servers", sojourn - mean_s, sojourn, load, rate * (sojourn - mean_s))
