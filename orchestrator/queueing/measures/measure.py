"""Figures of all runs together, with intervals by leaving out one run, or one batch of a single run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from orchestrator.queueing.requests import Column, Requests, Run
from orchestrator.queueing.spec import QueueingSpec

from .estimates import TIMES, sums_of, sums_over_course, times_of
from .figures import ClassFigures, Figure, Quantiles, Totals
from .leaving_out import interval, quantiles
from .memory import LEAST_BEYOND, memory_s
from .steady import doubts_of
from .warm_up import cut_of

BATCHES = 10
"""The batches of a single run: long enough each to be nearly independent, enough of them for an interval."""
PARTS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
BEYOND_MEAN = 0.15
"""A mean rests on so many of the largest values."""


@dataclass(frozen=True)
class Measured:
    """Figures by class and in all."""

    classes: dict[str, ClassFigures]
    total: Totals
    cut_s: float
    """The part of each run that was left out."""
    doubts: tuple[str, ...]
    stations: dict[str, ClassFigures] = field(default_factory=dict)
    """Figures of the visits to each station of a network."""

    @property
    def parts(self) -> list[tuple[str, ClassFigures]]:
        """Return the rows of a table, in its order: classes where there are several, stations, all."""
        classes = self.classes.items() if len(self.classes) > 1 else ()
        stations = [(f"at {name}", each) for name, each in self.stations.items()]
        return [*classes, *stations, ("all", self.total)]


@dataclass(frozen=True)
class _Stretch:
    """A run without its warm-up, or a batch of it."""

    run: Run
    begin: float
    end: float

    def requests(self, kind: int | None) -> Requests:
        found = self.run.requests.between(self.begin, self.end)
        return found if kind is None else found.of(found.column("kind") == kind)

    def visits(self, station: int) -> Requests:
        return self.run.visits[station].between(self.begin, self.end)


@dataclass(frozen=True)
class _Data:
    """The data that figures are made of."""

    spec: QueueingSpec
    parts: list[_Stretch]
    neighbours: bool
    """The parts are batches of one run."""
    independent: float
    """Stretches of all runs that do not remember each other."""


def measure(spec: QueueingSpec, runs: Sequence[Run]) -> Measured:
    """Return what the runs of a spec say, without their warm-up."""
    cut = cut_of(runs, spec.warm_up)
    memory = memory_s(spec, runs, cut)
    length = sum(run.duration_s - cut for run in runs)
    parts = [_Stretch(run, cut, run.duration_s) for run in runs] if len(runs) > 1 else _batches(runs[0], cut)
    data = _Data(spec, parts, len(runs) == 1, length / memory if memory > 0 else math.inf)
    classes = {
        each.name: ClassFigures(**_figures(data, [part.requests(kind) for part in parts], spec.server_count))
        for kind, each in enumerate(spec.classes)
    }
    stations = {
        each.name: ClassFigures(**_figures(data, [part.visits(at) for part in parts], spec.servers_at(at)))
        for at, each in enumerate(spec.stations)
    }
    whole = _figures(data, [part.requests(None) for part in parts], spec.server_count, of_all=True)
    doubts = (*(told for run in runs for told in run.doubts), *doubts_of(runs, cut, memory))
    return Measured(classes, Totals(**whole), cut, doubts, stations)


def _batches(run: Run, begin: float) -> list[_Stretch]:
    edges = np.linspace(begin, run.duration_s, BATCHES + 1).tolist()
    return [_Stretch(run, begin, end) for begin, end in pairwise(edges)]


def _figures(data: _Data, requests: list[Requests], servers: int, *, of_all: bool = False) -> dict[str, object]:
    """`requests`: of each part."""
    sums = [sums_of(own, part.begin, part.end, servers) for own, part in zip(requests, data.parts, strict=True)]
    if of_all:
        for own, part in zip(sums, data.parts, strict=True):
            own.update(sums_over_course(part.run, part.begin, part.end, data.spec))
    served = sum(len(each.done) for each in requests)
    means = {name: _mean(data, name, np.array([each[name] for each in sums]), served) for name in sums[0]}
    found: dict[str, object] = {name: figure for name, figure in means.items() if "." not in name}
    found["requests"] = sum(map(len, requests))
    times = [times_of(each) for each in requests]
    answers = any(each["first_token_s"].size for each in times)
    if not answers:
        found.pop("tokens_per_s")
    for name in TIMES if answers else TIMES[:-2]:
        of_parts = _quantiles(data, name, [each[name] for each in times])
        found[name] = Quantiles(mean=means[f"{name}.mean"], **of_parts)
    return found


def _mean(data: _Data, name: str, sums: Column, served: int) -> Figure:
    """Return what the sums of all parts come to; `sums`: a row for each part, its sum and over what."""
    total, over = sums.sum(axis=0)
    without, without_over = (sums.sum(axis=0) - sums).T
    rest = np.divide(without, without_over, out=np.full(len(sums), math.nan), where=without_over > 0)
    value = float(total / over) if over > 0 else math.nan
    return _figure(data, value, rest, _independent(data, name, served) * BEYOND_MEAN)


def _quantiles(data: _Data, name: str, values: list[Column]) -> dict[str, Figure]:
    whole, without = quantiles(values, list(PARTS.values()))
    independent = _independent(data, name, sum(map(len, values)))
    return {
        part: _figure(data, float(whole[at]), without[:, at], independent * (1 - share))
        for at, (part, share) in enumerate(PARTS.items())
    }


def _independent(data: _Data, name: str, values: float) -> float:
    """Return how many values say something of their own: a service knows nothing of the one before."""
    return values if name.startswith("service_s") else min(values, data.independent)


def _figure(data: _Data, value: float, without: Column, beyond: float) -> Figure:
    """A figure with its interval where enough independent values lie `beyond` it."""
    if not math.isfinite(value):
        return Figure(value=None)
    found = interval(value, without, neighbours=data.neighbours) if beyond >= LEAST_BEYOND else None
    return Figure(value=value) if found is None else Figure(value=value, low=found[0], high=found[1])
