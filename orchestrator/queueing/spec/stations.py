"""Networks of stations: which servers stand where, and where a request goes next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.experiment import Name

LEAVE = "leave"
"""The place of a request that is done."""
ROUNDING = 1e-9
Probability = Annotated[float, Field(ge=0, le=1)]


class Station(Model):
    """Groups of servers behind one dispatcher, with lines of their own."""

    name: Name
    servers: tuple[Name, ...] = Field(min_length=1)
    """Names of groups."""
    next: dict[str, Probability] = Field(default={LEAVE: 1.0})
    """The next places of a request served here, each with its probability: a station, this one too, or `leave`."""

    @rule
    def _sums_to_one(self) -> None:
        if self.name == LEAVE:
            raise ValueError(f"no station can be called {LEAVE}: it is where requests go that are done")
        if abs(sum(self.next.values()) - 1) > ROUNDING:
            told = " + ".join(f"{share:g}" for share in self.next.values())
            raise ValueError(
                f"the routing of station {self.name} sums to {sum(self.next.values()):.6g}, not to 1: {told}"
            )


def check_network(stations: Sequence[Station], groups: Sequence[str], entries: set[str]) -> None:
    """Raise ValueError: a name that is none, a group at no station or at two, requests that come to no end."""
    names = [each.name for each in stations]
    at = [group for each in stations for group in each.servers]
    for each in stations:
        _known(each.servers, groups, f"station {each.name} has servers", "group of servers")
        _known(each.next, [*names, LEAVE], f"station {each.name} sends requests to", "station")
    _known(entries, names, "a class enters at", "station")
    for group in groups:
        if at.count(group) != 1:
            raise ValueError(f"servers {group} stand at {at.count(group)} stations: each group stands at one")
    onward = {each.name: {to for to, share in each.next.items() if share > 0} for each in stations}
    reached = _closure(entries, onward)
    if idle := [name for name in names if name not in reached]:
        raise ValueError(f"no request ever comes to station {', '.join(idle)}")
    if stuck := [name for name in names if LEAVE not in _closure({name}, onward)]:
        raise ValueError(f"requests at station {', '.join(stuck)} never leave: route some of them to `{LEAVE}`")


def _known(named: Iterable[str], known: Sequence[str], who: str, what: str) -> None:
    for name in named:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f": did you mean {near[0]}?" if near else f" here: there are {', '.join(known)}"
            raise ValueError(f"{who} {name}, which is no {what}{meant}")


def _closure(names: set[str], onward: dict[str, set[str]]) -> set[str]:
    """These and all that can be reached from them."""
    found, fresh = set(names), set(names)
    while fresh:
        fresh = set().union(*(onward.get(name, set()) for name in fresh)) - found
        found |= fresh
    return found


def mean_visits(stations: Sequence[Station], entry: str) -> list[float]:
    """Return mean visits of a request to each station (the traffic equations), when it enters at `entry`."""
    names = [each.name for each in stations]
    routing = np.array([[each.next.get(to, 0.0) for to in names] for each in stations])
    enters = np.array([float(name == entry) for name in names])
    found: list[float] = np.linalg.solve(np.eye(len(names)) - routing.T, enters).tolist()
    return found
