"""Traces of a load against traces of a baseline: net power, joules per inference, intervals, doubts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.errors import TableError
from orchestrator.model.power import Estimate

from . import points
from .means import Figure, mean_of, plain_mean, time_mean
from .recording import Recording, TraceDoubt, TraceDoubtCode

METHOD = (
    "by Student's t; one trace: autocorrelation time of its readings; several: spread between their means, or "
    "what they say themselves where that is more; differences: Welch-Satterthwaite"
)
LEVEL = 0.95
PHONE_W = "a phone", 0.002, points.PHONE_W
"""Mean power of a phone, asleep or at work with its screen on; of a small board too."""
PLAUSIBLE_W = {
    "nvidia-smi": ("a GPU", 0.5, points.GPU_W),
    "perfetto battery": ("a phone that records a trace", 0.02, points.PHONE_W),
}
"""The power of what else draws it, by format."""
STUCK_READINGS = 10
STUCK_SHARE, STUCK_TIMES = 0.1, 20
"""A stretch of equal readings is doubted that has such a share of all, and so many times what others have."""
INDEPENDENT_READINGS = 12
"""Readings below which their correlation is not known well enough for an interval of 95 %."""
INSTRUMENTS = {
    "trepn": "a battery gauge",
    "monsoon": "a meter",
    "joulescope": "a meter",
    "otii": "a meter",
    "nvidia-smi": "a sensor of a GPU",
    "perfetto battery": "a battery gauge",
    "perfetto rails": "rails inside the phone",
}


class TraceMean(Model):
    """One recording and its means."""

    file: str
    role: Literal["baseline", "load"]
    format: str
    column: str
    times: str
    """The column of the times, and the unit in which they were read."""
    readings: int
    duration_s: float
    mean_w: Estimate
    time_weighted_w: Estimate


class Powers(Model):
    """The four figures by one kind of mean."""

    baseline_power_w: Estimate
    load_power_w: Estimate
    net_power_w: Estimate
    energy_per_inference_j: Estimate | None = None
    """None where the time of an inference was not given."""


class Comparison(Model):
    """The comparison of a baseline's traces with a load's."""

    plain: Powers
    time_weighted: Powers
    seconds_per_inference: float | None = Field(default=None, gt=0)
    method: str = METHOD
    traces: tuple[TraceMean, ...]
    doubts: tuple[TraceDoubt, ...]

    @property
    def level(self) -> float | None:
        """The level of the intervals; None where one rests on a single trace of too few independent readings."""
        alike = {doubt.file for doubt in self.doubts if doubt.code is TraceDoubtCode.ALIKE_READINGS}
        files = [[trace.file for trace in self.traces if trace.role == role] for role in ("baseline", "load")]
        return None if any(len(own) == 1 and own[0] in alike for own in files) else LEVEL


def compare(
    baseline: Sequence[Recording], load: Sequence[Recording], seconds_per_inference: float | None = None
) -> Comparison:
    """Net power is load minus baseline; energy of an inference is that times its seconds.

    Raises TableError where a gauge's and a meter's traces are mixed.
    """
    recordings = (*baseline, *load)
    mixed = _mixed(recordings)
    plain, weighted = (_powers(baseline, load, mean, seconds_per_inference) for mean in (plain_mean, time_mean))
    own = tuple(doubt for recording in recordings for doubt in recording.doubts)
    return Comparison(
        plain=plain,
        time_weighted=weighted,
        seconds_per_inference=seconds_per_inference,
        traces=(*(_trace(one, "baseline") for one in baseline), *(_trace(one, "load") for one in load)),
        doubts=own + _doubts(baseline, load, plain) + mixed,
    )


def _powers(
    baseline: Sequence[Recording],
    load: Sequence[Recording],
    mean: Callable[[Recording], Figure],
    seconds: float | None,
) -> Powers:
    low, high = (mean_of([mean(recording) for recording in group]) for group in (baseline, load))
    net = high.minus(low)
    return Powers(
        baseline_power_w=low.estimate(),
        load_power_w=high.estimate(),
        net_power_w=net.estimate(),
        energy_per_inference_j=None if seconds is None else net.times(seconds).estimate(),
    )


def _trace(recording: Recording, role: Literal["baseline", "load"]) -> TraceMean:
    return TraceMean(
        file=str(recording.path),
        role=role,
        format=recording.format,
        column=recording.column,
        times=recording.times,
        readings=recording.facts.readings,
        duration_s=recording.duration_s,
        mean_w=plain_mean(recording).estimate(),
        time_weighted_w=time_mean(recording).estimate(),
    )


def _mixed(recordings: Sequence[Recording]) -> tuple[TraceDoubt, ...]:
    """Figures of different sources are never mixed; of a plain table nobody knows the source."""
    found = sorted({recording.format for recording in recordings})
    if len({INSTRUMENTS[form] for form in found if form in INSTRUMENTS}) > 1:
        named = " and ".join(f"{INSTRUMENTS[form]} ({form})" for form in found if form in INSTRUMENTS)
        raise TableError(
            f"baseline and load mix {named}: their difference means nothing",
            remedy="record both with one instrument",
        )
    if len(found) < 2:
        return ()
    return (TraceDoubt(code=TraceDoubtCode.MIXED_FORMATS, detail=f"the files are {' and '.join(found)}"),)


def _doubts(baseline: Sequence[Recording], load: Sequence[Recording], plain: Powers) -> tuple[TraceDoubt, ...]:
    """Doubts about the whole."""
    net, found = plain.net_power_w, []
    if net.value < 0:
        detail = f"the baseline is {-net.value * 1e3:.4g} mW above the load"
        found.append(TraceDoubt(code=TraceDoubtCode.BASELINE_ABOVE_LOAD, detail=detail))
    if net.low <= 0 <= net.high:
        detail = f"net power between {net.low * 1e3:.4g} and {net.high * 1e3:.4g} mW"
        found.append(TraceDoubt(code=TraceDoubtCode.UNRESOLVED, detail=detail))
    for name, group in (("baseline", baseline), ("load", load)):
        if len(group) == 1:
            detail = f"only one trace of the {name}: its interval is that of this run alone"
            found.append(TraceDoubt(code=TraceDoubtCode.ONE_FILE, detail=detail))
        if len(group) == 2:
            detail = f"two traces of the {name}: its interval rests on one degree of freedom"
            found.append(TraceDoubt(code=TraceDoubtCode.FEW_FILES, detail=detail))
    return (*found, *_copies((*baseline, *load)), *_of_each((*baseline, *load)))


def _copies(recordings: Sequence[Recording]) -> Iterator[TraceDoubt]:
    """The same file twice, or a copy of it."""
    for place, one in enumerate(recordings):
        for other in recordings[:place]:
            if one.facts == other.facts and np.array_equal(one.power_w, other.power_w):
                detail = f"its {one.facts.readings} readings are those of {other.path}"
                yield one.doubt(TraceDoubtCode.SAME_READINGS, detail)
                break


def _of_each(recordings: Sequence[Recording]) -> Iterator[TraceDoubt]:
    """A meter that says the same all the time, a mean that no phone has, readings of which too few are independent."""
    for one in recordings:
        what, low_w, high_w = PLAUSIBLE_W.get(one.format, PHONE_W)
        readings, mean_w, worth = one.facts.readings, one.facts.plain_w, plain_mean(one).freedom + 1
        if _stood_still(one):
            detail = f"{one.facts.equal} of its {readings} readings, from {one.facts.equal_at_s:.4g} s on, are the same"
            yield one.doubt(TraceDoubtCode.STUCK, detail)
        if readings >= STUCK_READINGS and float(one.power_w.min()) == float(one.power_w.max()):
            yield one.doubt(TraceDoubtCode.STUCK, f"all {readings} readings are {mean_w:.4g} W")
        elif worth < INDEPENDENT_READINGS:
            detail = f"its {readings} readings tell as much as {max(2, round(worth))} independent ones"
            yield one.doubt(TraceDoubtCode.ALIKE_READINGS, detail)
        if mean_w and not low_w <= abs(mean_w) <= high_w:
            detail = f"its mean is {mean_w:.3g} W; {what} draws {low_w:g} to {high_w:g} W"
            yield one.doubt(TraceDoubtCode.IMPLAUSIBLE_POWER, detail)


def _stood_still(one: Recording) -> bool:
    """Return whether a part of the trace stood still, while its readings change all the time in the rest."""
    facts = one.facts
    others = (facts.readings - facts.equal) / max(1, facts.runs - 1)
    least = max(STUCK_READINGS, STUCK_SHARE * facts.readings, STUCK_TIMES * others)
    return facts.runs > 1 and facts.equal >= least
