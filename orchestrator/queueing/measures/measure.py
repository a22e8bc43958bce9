"""Figures of all runs, with intervals between replications, or between the batches of a single run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orchestrator.analysis.student_t import t_quantile
from orchestrator.queueing.requests import Column, Requests, Run
from orchestrator.queueing.spec import QueueingSpec

from .estimates import LEAST_BEYOND, PARTS, estimates, over_course
from .figures import ClassFigures, Figure, Quantiles, Totals
from .warm_up import cut_of

BATCHES = 10
"""Of a single run: long enough each to be nearly independent, enough of them for an interval."""
MOST_ALIKE = 0.8
"""The correlation of neighbours that is counted at most: of ten batches no more can be told."""
TIMES = ("waiting_s", "service_s", "sojourn_s")
Estimates = dict[str, float]


@dataclass(frozen=True)
class Measured:
    """Figures by class and in all."""

    classes: dict[str, ClassFigures]
    total: Totals
    cuts_s: tuple[float, ...]
    """How much of each run was left out."""
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class _Stretch:
    """A part of a run that gives one estimate of everything."""

    run: Run
    begin: float
    end: float

    def requests(self, kind: int | None) -> Requests:
        found = self.run.requests.between(self.begin, self.end)
        return found if kind is None else found.of(found.column("kind") == kind)

    def estimates(self, kind: int | None, spec: QueueingSpec) -> Estimates:
        requests = self.requests(kind)
        found = estimates(requests, self.begin, self.end, spec.server_count)
        if kind is None:
            found |= over_course(self.run, self.begin, self.end, spec)
            found["energy_with_idle_j_per_request"] = found.pop("energy_j") / (len(requests.done) or math.nan)
        return found


def measure(spec: QueueingSpec, runs: Sequence[Run]) -> Measured:
    """What the runs of a spec say, without their warm-up."""
    cuts = tuple(cut_of(run, spec.warm_up) for run in runs)
    whole = [_Stretch(run, cut, run.duration_s) for run, cut in zip(runs, cuts, strict=True)]
    parts = whole if len(runs) > 1 else _batches(whole[0])
    classes = {each.name: ClassFigures(**_figures(spec, whole, parts, kind)) for kind, each in enumerate(spec.classes)}
    doubts = (*(told for run in runs for told in run.doubts), *_doubts(whole, cuts))
    return Measured(classes, Totals(**_figures(spec, whole, parts, None)), cuts, doubts)


def _batches(whole: _Stretch) -> list[_Stretch]:
    edges = np.linspace(whole.begin, whole.end, BATCHES + 1).tolist()
    return [_Stretch(whole.run, begin, end) for begin, end in pairwise(edges)]


def _figures(spec: QueueingSpec, whole: list[_Stretch], parts: list[_Stretch], kind: int | None) -> dict[str, object]:
    of_parts = [each.estimates(kind, spec) for each in parts]
    of_all = of_parts if whole is parts else [each.estimates(kind, spec) for each in whole]
    fewest = min(len(each.requests(kind).done) for each in parts)
    made = {name: _figure(name, of_all, of_parts, fewest) for name in of_all[0]}
    found: dict[str, object] = {name: figure for name, figure in made.items() if "." not in name}
    found["requests"] = sum(len(each.requests(kind)) for each in whole)
    for name in TIMES:
        found[name] = Quantiles(**{part: made[f"{name}.{part}"] for part in ("mean", *PARTS)})
    return found


def _figure(name: str, of_all: list[Estimates], of_parts: list[Estimates], fewest: int) -> Figure:
    """The mean over runs, with the interval that its parts give."""
    value = float(np.mean([each[name] for each in of_all]))
    if not math.isfinite(value):
        return Figure(value=None)
    values = [each[name] for each in of_parts]
    beyond = fewest * (1 - PARTS.get(name.partition(".")[2], 0.0))
    if len(values) < 2 or beyond < LEAST_BEYOND or not np.all(np.isfinite(values)):
        return Figure(value=value)
    apart = np.array(values) - value
    count = _independent(apart) if len(of_all) == 1 else float(len(values))
    error = math.sqrt(float(np.mean(apart**2)) / (count - 1))
    half = t_quantile(0.975, max(1, int(count) - 1)) * error
    return Figure(value=value, low=value - half, high=value + half)


def _independent(apart: Column) -> float:
    """As how many independent ones the batches of a run count, by how much neighbours agree: queues remember."""
    total = float((apart**2).sum())
    alike = float((apart[1:] * apart[:-1]).sum()) / total if total > 0 else 0.0
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return max(2.0, len(apart) * (1 - alike) / (1 + alike))


def _doubts(whole: list[_Stretch], cuts: tuple[float, ...]) -> list[str]:
    """What would make the figures doubtful, each with its remedy."""
    doubts = []
    late = [cut for each, cut in zip(whole, cuts, strict=True) if cut > 0.45 * each.run.duration_s]
    if late:
        doubts.append(
            f"warm-up takes nearly half of {len(late)} of {len(cuts)} runs: they may not have become steady: "
            "a longer `duration`, or less load"
        )
    growing = sum(_grows(each) for each in whole)
    if 2 * growing > len(whole):
        doubts.append(
            f"the queue grew until the end in {growing} of {len(whole)} runs: the load may be above capacity, and "
            "figures grow with `duration`"
        )
    return doubts


def _grows(whole: _Stretch) -> bool:
    """Whether at the end more waited than ever before, and no few."""
    waiting = whole.run.course.waiting
    tenth = max(1, len(waiting) // 10)
    last, middle = np.mean(waiting[-tenth:]), np.mean(waiting[4 * tenth : 6 * tenth] or [0])
    return bool(last > 100 and last > 1.5 * middle and last >= 0.8 * max(waiting, default=0))
