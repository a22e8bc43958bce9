"""Energy of a token of a prompt, and of one that is generated: two powers from readings that are slower than phases.

A gauge has news every second or so, and an answer's prompt may be over by then. So nothing is integrated: a reading is
the mean, over what the source looked at, of as many powers as there are phases, weighted with their shares of that
time. The powers are those of least squares, with a straight drift. How long a source looks back, and how late it is,
nobody tells: each possibility is weighed by how well it explains the readings, and what the choice changes is told as
systematic (as the idle power's, `idle.py`). Phases repeat within a block, so that even slow readings tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.event import Sample
from orchestrator.model.power import Estimate
from orchestrator.model.record import Record

from .gauge_readings import NS
from .idle import Idle
from .trace import Trace
from .uncertainty import estimate
from .windows import Window, active_window

Array = NDArray[np.float64]
PhaseName = Literal["prompt", "generated"]
NAMES: tuple[PhaseName, ...] = ("prompt", "generated")

LOOKS = (0.0, 0.5, 1.0, 2.0)
"""The time that a reading is the mean of, in periods of the source."""
DELAYS = (0.25, 0.5, 0.75, 1.0)
"""The time by which it is late, in periods, and in what its clock may be off."""
EDGE_NEWS = 4.0
"""Readings of the rests that are looked at, too: the edges of what was active show how the source looks back."""
FEWEST = 8
"""Readings beyond the powers that are sought."""
LEAST_SHARP = 0.02
"""The least exponent of a likelihood whose noise is not explained (a tempered one: Grunwald and van Ommen, 2017)."""
LEAST_TOLD = 2.0
"""The sum of a phase's shares, over all readings, from which on its power can be told."""


class PhaseEnergy(Model):
    """Energy of one phase of all answers of a block, by token. Intervals as `BlockEnergy` has them."""

    name: PhaseName
    tokens: int = Field(ge=1)
    length_s: float
    per_token_j: Estimate
    """Net of the idle power."""
    within_per_token_j: Estimate
    """The same without the gain's uncertainty."""
    gross_power_w: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """Powers under one possibility."""

    power_w: Array
    unit: Array
    """Variance of each power for a variance of 1 of a reading."""
    left_w2: float
    """Variance of what is left of a reading."""
    alone: float
    """Readings that tell something of their own."""


def phase_energies(record: Record, trace: Trace, load: Window, idle: Idle | None) -> tuple[PhaseEnergy, ...]:
    """Return the energies of prompt and generation; none where they cannot be told apart, or nothing rested."""
    spans = _spans(record, load)
    names = [name for name in NAMES if spans[name][1]]
    if idle is None or not names:
        return ()
    found = _powers(trace, load, _Course.of(record, load, names, idle))
    if found is None:
        return ()
    power_w, random_w, systematic_w = found
    made = []
    for place, name in enumerate(names):
        windows, tokens = spans[name]
        length_s = sum(end - start for start, end in windows)
        each = length_s / tokens
        random = math.hypot(random_w[place], idle.random_w) * each
        systematic = math.hypot(systematic_w[place], idle.systematic_w) * each
        value, gain = (power_w[place] - idle.mean_w) * each, trace.gain_uncertainty
        of = [estimate(value, math.hypot(random, systematic, value * part), systematic) for part in (gain, 0.0)]
        made.append(
            PhaseEnergy(
                name=name, tokens=tokens, length_s=length_s, per_token_j=of[0], within_per_token_j=of[1],
                gross_power_w=power_w[place],
            )
        )  # fmt: skip
    return tuple(made)


Spans = list[tuple[float, float]]


def _spans(record: Record, load: Window) -> dict[PhaseName, tuple[Spans, int]]:
    """Return when each phase of the timed answers was, and its tokens. The first token is the prompt's."""
    found: dict[PhaseName, tuple[Spans, int]] = {}
    timed = [each for each in record.samples if each.phase == "timed"]
    for name in NAMES:
        of = [each for sample in timed for each in _phase(sample, name)]
        inside = [each for each in of if load.start_s <= each[0] and each[1] <= load.end_s + NS]
        found[name] = [(start, end) for start, end, _ in inside], sum(tokens for *_, tokens in inside)
    return found


@dataclass(frozen=True, slots=True)
class _Course:
    """The course of warm-up and load, with the rests beside them."""

    active: Window
    phases: tuple[Spans, ...]
    """Spans of each phase, those of the warm-up too."""
    idle_w: float

    @classmethod
    def of(cls, record: Record, load: Window, names: Sequence[PhaseName], idle: Idle) -> _Course:
        whole = [[each[:2] for one in record.samples for each in _phase(one, name)] for name in names]
        return cls(active_window(record) or load, tuple(whole), idle.mean_w)

    def shares(self, starts: Array, ends: Array) -> Array:
        """Share of each phase, and of what else was active, in each reading's time."""
        every = (*self.phases, [(self.active.start_s, self.active.end_s)])
        found = [(_until(spans, ends) - _until(spans, starts)) / (ends - starts) for spans in every]
        return np.stack([*found[:-1], found[-1] - sum(found[:-1])], axis=1)


def _phase(sample: Sample, name: PhaseName) -> Iterator[tuple[float, float, int]]:
    """Start, end and tokens of a phase of one answer, or of the runs of which it is the mean."""
    end_ns, runs = sample.start_ns + sample.duration_ns * sample.mean_of, sample.mean_of
    if name == "prompt" and sample.prompt:
        tokens = sample.sequences * sample.prompt * runs
        yield sample.start_ns * NS, (sample.token_ns[0] if sample.token_ns else end_ns) * NS, tokens
    elif name == "generated" and len(sample.token_ns) > 1:
        yield sample.token_ns[0] * NS, sample.token_ns[-1] * NS, sample.sequences * (len(sample.token_ns) - 1)
    elif name == "generated" and sample.token_count and not sample.token_ns:
        yield sample.start_ns * NS, end_ns * NS, sample.token_count * runs


def _powers(trace: Trace, load: Window, course: _Course) -> tuple[Array, Array, Array] | None:
    """Power of each phase, its random and its systematic standard uncertainty; None where they cannot be told."""
    fits = [fit for look_s, late_s in _ways(trace) if (fit := _fit(trace, load, course, look_s, late_s)) is not None]
    if not fits:
        return None
    least_w2 = max(trace.noise_w, trace.quantum_w / math.sqrt(12), 1e-6) ** 2
    left_w2 = np.maximum([fit.left_w2 for fit in fits], least_w2)
    alone = fits[int(left_w2.argmin())].alone
    share = (left_w2 / left_w2.min()) ** (-alone / 2)
    share /= share.sum()
    # where even the best leaves more than the source's noise, none is right, and others may be as near
    sharp = max(LEAST_SHARP, least_w2 / float(left_w2.min())) if trace.noise_w > 0 else 1.0
    near = share**sharp / (share**sharp).sum()
    each, own = np.stack([fit.power_w for fit in fits]), np.stack([fit.unit for fit in fits]) * left_w2[:, None]
    power_w = share @ each
    return power_w, np.sqrt(share @ own), np.sqrt(near @ (each - power_w) ** 2)


def _ways(trace: Trace) -> set[tuple[float, float]]:
    """Return how long a reading may look back, and how late it may be."""
    if trace.is_mean:
        return {(trace.spacing_s, late_s) for late_s in (-trace.clock_s, 0.0, trace.clock_s)}
    late = {0.0, *(part * period_s for part in DELAYS for period_s in (trace.clock_s, trace.news_s))}
    return set(product((part * trace.news_s for part in LOOKS), late))


def _fit(trace: Trace, load: Window, course: _Course, look_s: float, late_s: float) -> _Fit | None:
    """None where the readings are too few, or alike."""
    ends = trace.t_s - late_s
    starts = np.concatenate(([ends[0]], ends[:-1])) if trace.is_mean else ends - max(look_s, 1e-6)
    near_s, active = EDGE_NEWS * trace.news_s, course.active
    inside = (trace.t_s >= active.start_s - near_s) & (trace.t_s <= active.end_s + near_s) & (ends > starts)
    starts, ends, seen_w = starts[inside], ends[inside], trace.power_w[inside]
    shares = course.shares(starts, ends)
    at_work = shares.sum(axis=1)
    seen_w = seen_w - (1 - at_work) * course.idle_w
    told, count = shares.sum(axis=0), len(course.phases)
    shares = shares[:, [*range(count), *range(count, count + bool(told[count] >= LEAST_TOLD))]]
    design = np.column_stack([shares, at_work * (ends - load.centre_s) / load.length_s])
    freedom = len(design) - design.shape[1]
    if freedom < FEWEST or told[:count].min() < LEAST_TOLD or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    inverse = np.linalg.inv(design.T @ design)
    solved = inverse @ design.T @ seen_w
    left = seen_w - design @ solved
    squares = float(left @ left)
    alike = min(0.9, max(0.0, float(left[1:] @ left[:-1]) / max(squares, 1e-300)))
    repeated = (1 + alike) / (1 - alike)
    return _Fit(solved[:count], np.diag(inverse)[:count] * repeated, squares / freedom, freedom / repeated)


def _until(spans: Spans, at_s: Array) -> Array:
    """Time in the spans until each moment."""
    edges = np.array(spans).reshape(-1)
    spent = np.cumsum([0.0, *np.where(np.arange(len(edges) - 1) % 2 == 0, np.diff(edges), 0.0)])
    return np.asarray(np.interp(at_s, edges, spent))
