"""Theory of networks of stations whose steady state is a product of one factor for each station.

Sources: Jackson, Networks of Waiting Lines (1957); Gordon and Newell, Closed Queuing Systems with Exponential Servers
(1967); Buzen, Computational Algorithms for Closed Queueing Networks (1973); Baskett, Chandy, Muntz and Palacios (1975):
the distribution of think times does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .theory import mmc

Factors = NDArray[np.float64]


class Station(NamedTuple):
    """Equal servers that serve one line with exponential times; `visits`: of one request."""

    visits: float
    mean_s: float
    servers: int


class Visit(NamedTuple):
    """One visit to a station in the steady state."""

    waiting_s: float
    utilisation: float
    queue_length: float


def jackson(rate: float, stations: Sequence[Station]) -> list[Visit]:
    """Visits where Poisson requests come from outside: each station is as M/M/c alone."""
    lines = [mmc(rate * each.visits, each.mean_s, each.servers) for each in stations]
    return [Visit(line.waiting_s, line.utilisation, line.queue_length) for line in lines]


def gordon_newell(clients: int, think_s: float, stations: Sequence[Station]) -> tuple[float, list[Visit]]:
    """Requests a second that leave, and visits, where `clients` think and send: by convolution of all factors.

    Sums of positive terms alone, so that nothing cancels out.
    """
    bounds = [each.servers / (each.visits * each.mean_s) for each in stations]
    busiest = think_s + sum(each.visits * each.mean_s for each in stations)
    pace = min(*bounds, clients / busiest)  # near the throughput no factor that matters grows beyond numbers
    counts = np.arange(clients + 1)
    steps = np.log(np.maximum(counts, 1))
    thinking = _scaled(counts * math.log(pace * think_s) - np.cumsum(steps))
    factors = [
        _scaled(
            counts * math.log(pace * each.visits * each.mean_s) - np.cumsum(np.minimum(steps, np.log(each.servers)))
        )
        for each in stations
    ]
    throughput, found = 0.0, []
    for at, (station, own) in enumerate(zip(stations, factors, strict=True)):
        others = reduce(_joined, (each for number, each in enumerate(factors) if number != at), thinking)[::-1]
        throughput = pace * float(own[:-1] @ others[1:]) / float(own @ others)
        shares = own * others / float(own @ others)  # so many are here
        waiting = float(shares @ np.maximum(counts - station.servers, 0))
        busy = float(shares @ np.minimum(counts, station.servers))
        found.append(Visit(waiting / (throughput * station.visits), busy / station.servers, waiting))
    return throughput, found


def _scaled(logarithms: Factors) -> Factors:
    return np.asarray(np.exp(logarithms - logarithms.max()))


def _joined(one: Factors, other: Factors) -> Factors:
    """The factors of two parts together, up to a constant."""
    found = np.convolve(one, other)[: len(one)]
    return np.asarray(found / found.max())
