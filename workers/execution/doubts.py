"""Find doubts about a record in the record itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from orchestrator.model.device import DeviceFacts, DeviceState, Source
from orchestrator.model.event import Event, Power, Sample, Warning
from orchestrator.model.experiment import Conditions
from orchestrator.model.job import Job
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt, DoubtCode

FEW = 5
"""Fewer timed samples than this say little."""
NOISY_SHARE = 0.05
"""Median absolute deviation over median."""
DRIFT_SHARE = 0.05
"""Median of the last fifth over that of the first."""


def find_doubts(
    job: Job,
    device: DeviceFacts,
    events: Sequence[Event],
    states: Sequence[DeviceState | None],
    *,
    resumed: bool,
    metered: bool = False,
    own: Sequence[Doubt] = (),
) -> tuple[Doubt, ...]:
    """All doubts about one block, in a fixed order. `metered`: its power was measured by more than the gauge. `own`:
    those of its engine."""
    known = [state for state in states if state is not None]
    samples = [e for e in events if isinstance(e, Sample) and e.phase == "timed"]
    timed = [e.duration_ns for e in samples]
    return (
        *_of_device(device),
        *(_of_samples(timed, sum(e.mean_of for e in samples)) if _is_steady(job) else ()),
        *_of_means(max((e.mean_of for e in samples), default=1)),
        *_of_states(known, job.conditions),
        *_of_events(events, power="power" in job.measure.quantities and not metered),
        *own,
        *((Doubt(code=DoubtCode.RESUMED),) if resumed else ()),
    )


def _is_steady(job: Job) -> bool:
    """Return whether times should be alike: not in a cold start, under a sustained load or in a training."""
    return job.sampling.mode == "steady" and job.examples is None and job.cell.workload.training is None


def _of_device(device: DeviceFacts) -> Iterator[Doubt]:
    if device.source in (Source.VIRTUAL, Source.REPLAY):
        yield Doubt(code=DoubtCode.VIRTUAL_DEVICE, detail=device.profile)
    if device.source == Source.VIRTUAL or (device.kind == "workstation" and device.gpu_vendor == "cpu"):
        yield Doubt(code=DoubtCode.SHARED_HOST, detail=f"the cores of {device.host}")


def _of_samples(timed_ns: Sequence[int], runs: int) -> Iterator[Doubt]:
    if runs < FEW:
        yield Doubt(code=DoubtCode.FEW_SAMPLES, detail=f"{runs} timed samples")
    if len(timed_ns) < 2:
        return
    middle = median(timed_ns)
    spread = median(abs(value - middle) for value in timed_ns) / middle
    if spread > NOISY_SHARE:
        yield Doubt(code=DoubtCode.NOISY_SAMPLES, detail=f"median absolute deviation {spread:.1%} of the median")
    fifth = len(timed_ns) // 5
    if fifth:
        drift = median(timed_ns[-fifth:]) / median(timed_ns[:fifth]) - 1
        if abs(drift) > DRIFT_SHARE:
            yield Doubt(code=DoubtCode.DRIFT, detail=f"last fifth {drift:+.1%} against the first")


def _of_means(most: int) -> Iterator[Doubt]:
    if most > 1:
        detail = f"a sample is the mean of up to {counted(most, 'inference')}: no p90, no p99"
        yield Doubt(code=DoubtCode.MEAN_OF_RUNS, detail=detail)


def _of_states(states: Sequence[DeviceState], wanted: Conditions) -> Iterator[Doubt]:
    if wanted.supply != "cut" and any(state.charging for state in states):
        yield Doubt(code=DoubtCode.CHARGING)
    for state in states:
        hot = (state.battery_temp_c or 0.0) > wanted.battery_temp_max
        if (state.thermal_status or 0) > 0 or hot:
            yield Doubt(
                code=DoubtCode.HOT, detail=f"thermal status {state.thermal_status}, battery {state.battery_temp_c} C"
            )
            return


def _of_events(events: Sequence[Event], *, power: bool) -> Iterator[Doubt]:
    clocks = {event.gpu_hz for event in events if isinstance(event, Power) and event.gpu_hz}
    if len(clocks) > 1:
        detail = f"GPU between {min(clocks) // 10**6} and {max(clocks) // 10**6} MHz"
        yield Doubt(code=DoubtCode.FREQUENCY_CHANGED, detail=detail)
    if power and not any(isinstance(e, Power) and e.current_ua is not None for e in events):
        warnings = (event for event in events if isinstance(event, Warning))
        why = next((event.message for event in warnings if event.code == DoubtCode.NO_POWER_GAUGE), "")
        yield Doubt(code=DoubtCode.NO_POWER_GAUGE, detail=why[:500])
