"""Hand-made blocks: the power is a function of time, the gauge prints it as it is told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.event import Phase, PhaseName, Power, Sample
from orchestrator.model.power import GaugeCalibration, PowerSeries, PowerSource, Scope
from orchestrator.model.record import Outcome, Record

S = 10**9
PHASES: Mapping[PhaseName, tuple[float, float]] = {
    "idle_before": (10.0, 70.0),
    "warmup": (70.0, 80.0),
    "load": (80.0, 120.0),
    "idle_after": (120.0, 180.0),
}
VOLTS = 4.0
EXACT = GaugeCalibration(
    ampere_per_unit=1e-6, discharging_sign=-1, refresh_ns=S // 10, gain_uncertainty=0.0, absolute=True, method="meter"
)


def load_between(idle_w: float, load_w: float) -> Callable[[float], float]:
    """Power of a phone that is at work in warm-up and load."""
    return lambda t_s: load_w if 70.0 <= t_s < 120.0 else idle_w


def readings(
    power_w: Callable[[float], float],
    *,
    period_s: float = 0.1,
    refresh_s: float = 0.1,
    refreshes_s: Sequence[float] = (),
    ampere_per_unit: float = 1e-6,
    sign: int = -1,
    end_s: float = 190.0,
    **more: Any,
) -> tuple[Power, ...]:
    """A gauge without noise that takes the power once in `refresh_s`, or at `refreshes_s`, and holds it."""
    found = []
    for index in range(round(end_s / period_s)):
        t_s = index * period_s
        taken_s = max((at_s for at_s in refreshes_s if at_s <= t_s), default=int(t_s / refresh_s + 1e-9) * refresh_s)
        current = round(sign * power_w(taken_s) / VOLTS / ampere_per_unit)
        fields = {"current_ua": current, "voltage_uv": round(VOLTS * 1e6), "status": "Discharging", **more}
        found.append(Power(seq=index, t_ns=round(t_s * S), **fields))
    return tuple(found)


def record(power: tuple[Power, ...] = (), **more: Any) -> Record:
    """A block with 400 inferences of 100 ms in its load phase and 100 in its warm-up."""
    fields: dict[str, Any] = {
        "experiment_id": "e", "job_id": "j", "cell_id": "c", "block": 0, "attempt": 1, "token": 1, "worker": "w",
        "device": DeviceFacts(serial="X", host="h", kind="phone", source=Source.PHONE), "source": Source.PHONE,
        "outcome": Outcome.OK, "started_at": 0.0, "ended_at": 1.0, "phases": phases(PHASES), "power": power,
        "samples": samples(500), "gauge": EXACT,
    }  # fmt: skip
    return Record(**{**fields, **more})


def phases(times: Mapping[PhaseName, tuple[float, float]]) -> tuple[Phase, ...]:
    """Half of the time of each is the agent's on one core."""
    ns = {name: (round(start * S), round(end * S)) for name, (start, end) in times.items()}
    return tuple(
        Phase(seq=0, t_ns=end, phase=name, start_ns=start, end_ns=end, counts={"cpu_ns": (end - start) // 2})
        for name, (start, end) in ns.items()
    )


def samples(count: int, start_s: float = 70.0, each_s: float = 0.1) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            seq=index, t_ns=0, index=index, phase="timed" if start_s + index * each_s >= 79.999 else "warmup",
            start_ns=round((start_s + index * each_s) * S), duration_ns=round(each_s * S),
        )
        for index in range(count)
    )  # fmt: skip


def series(power: Callable[[float], float], **more: Any) -> PowerSeries:
    times = [index * 0.01 for index in range(19_000)]
    fields: dict[str, Any] = {
        "source": PowerSource.METER, "scope": Scope.DEVICE, "name": "meter", "t_ns": tuple(round(t * S) for t in times),
        "power_w": tuple(map(power, times)), "gain_uncertainty": 0.01,
    }  # fmt: skip
    return PowerSeries(**{**fields, **more})
