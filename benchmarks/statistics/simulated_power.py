"""Blocks whose energy is known: a phone's power by formulae of its own, read by a gauge or a meter of its own.

It shares nothing with the product or its virtual phones but the shape of a record. An inference draws 20 % more than
the mean of the load for 60 % of its time, and 30 % less for the rest; the idle power wanders (Ornstein-Uhlenbeck) and
drifts; what the load heats draws more until it has cooled, which counts as the load's. A gauge tells the mean of its
last refresh, a moment, or an exponential mean; late, rounded, noisy, and again and again until it has something new.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.event import Phase, PhaseName, Power, Sample
from orchestrator.model.power import ClockMap, GaugeCalibration, PowerSeries, PowerSource, Scope
from orchestrator.model.record import Outcome, Record

Array = NDArray[np.float64]
STEP_S = 0.005
VOLTS = 4.0
LEAD_S, REST_S, WARMUP_S, TAIL_S = 5.0, 60.0, 5.0, 5.0
FACTS = DeviceFacts(serial="SIM", host="h", kind="phone", source=Source.PHONE)


@dataclass(frozen=True)
class World:
    """A phone and what reads its power."""

    name: str
    inference_s: float = 0.0
    """0: drawn for each cell."""
    net_w: float = 1.8
    idle_w: float = 0.4
    ripple: bool = True
    wander_w: float = 0.0
    wander_s: float = 5.0
    heat_w: float = 0.0
    heat_s: float = 30.0
    drift_w: float = 0.0
    """The drift from the block's begin to its end."""
    gauge: Literal["mean", "moment", "exponential"] = "mean"
    refresh_s: float = 0.25
    sampling_s: float = 0.1
    quantum_a: float = 0.001
    noise_a: float = 0.003
    late_s: float = 0.0
    meter: bool = False
    """A meter on the host beside the gauge: means of 10 ms, whose clock claims to be right within a millisecond."""


WORLDS = (
    World("steady load", ripple=False),
    World("ripple"),
    World("ripple, 100 ms an inference", 0.1),
    World("ripple, 167 ms an inference", 1 / 6),
    World("ripple, momentary gauge", gauge="moment"),
    World("ripple, momentary gauge, 250 ms an inference", 0.25, gauge="moment"),
    World("wander 20 mW, 5 s", wander_w=0.02),
    World("wander 30 mW, 20 s", wander_w=0.03, wander_s=20),
    World("wander 30 mW, 60 s", wander_w=0.03, wander_s=60),
    World("wander 20 mW, 5 s, net 0.1 W", net_w=0.1, wander_w=0.02),
    World("heat 100 mW, 30 s", heat_w=0.1),
    World("heat 50 mW, 90 s", heat_w=0.05, heat_s=90),
    World("quantum 50 mA, noise 1 mA", quantum_a=0.05, noise_a=0.001),
    World("lag 0.5 s", late_s=0.5),
    World("exponential mean of 1 s", gauge="exponential"),
    World("drift 60 mW", drift_w=0.06),
    World("refresh 1 s", refresh_s=1.0),
    World("all, mild", wander_w=0.01, wander_s=20, heat_w=0.05, drift_w=0.02, quantum_a=0.01, late_s=0.1),
    World("meter", meter=True),
    World("meter, 20 ms late", meter=True, late_s=0.02),
    World("meter, 200 ms late", meter=True, late_s=0.2),
)


@dataclass(frozen=True)
class Block:
    record: Record
    truth_j: float
    """Net energy of an inference of the load phase."""


def drawn(world: World, rng: np.random.Generator) -> World:
    """The world of one cell: its powers, and its inference where that is not given."""
    idle, net = rng.uniform(0.8, 1.25, 2)
    each_s = world.inference_s or float(np.exp(rng.uniform(np.log(0.03), np.log(0.4))))
    return replace(world, idle_w=world.idle_w * idle, net_w=world.net_w * net, inference_s=each_s)


def block(world: World, rng: np.random.Generator) -> Block:
    load_s = max(30.0, 100 * world.refresh_s) * rng.uniform(1.0, 1.3)
    origin_s = rng.uniform(1000, 2000)
    busy_s = LEAD_S + REST_S
    starts, ends = _inferences(busy_s, busy_s + WARMUP_S, world.inference_s, rng)
    load_starts, load_ends = _inferences(ends[-1], ends[-1] + load_s, world.inference_s, rng)
    edges = {
        "idle_before": (LEAD_S, busy_s),
        "warmup": (busy_s, ends[-1]),
        "load": (ends[-1], load_ends[-1]),
        "idle_after": (load_ends[-1], load_ends[-1] + REST_S),
    }
    t_s = np.arange(0, load_ends[-1] + REST_S + TAIL_S, STEP_S)
    caused_w = _caused(world, t_s, np.concatenate((starts, load_starts)), np.concatenate((ends, load_ends)))
    in_load = (t_s >= edges["load"][0]) & (t_s < edges["load"][1])
    truth_j = float(caused_w[in_load].sum()) * STEP_S / len(load_starts)
    drawn_w = caused_w + _idle(world, t_s, rng)
    samples = [(start, end, "timed") for start, end in zip(load_starts, load_ends, strict=True)]
    samples = [(start, end, "warmup") for start, end in zip(starts, ends, strict=True)] + samples
    record = Record(
        experiment_id="e", job_id="j", cell_id="c", block=0, attempt=1, token=1, worker="w", device=FACTS,
        source=Source.PHONE, outcome=Outcome.OK, started_at=0.0, ended_at=1.0, gauge=_calibration(world),
        phases=tuple(_phase(name, at, origin_s) for name, at in edges.items()),
    )  # fmt: skip
    more = {
        "samples": tuple(
            Sample.model_construct(
                event="sample", seq=0, t_ns=_ns(end + origin_s), index=index, phase=phase, inferences=1,
                start_ns=_ns(start + origin_s), duration_ns=_ns(end - start),
            )
            for index, (start, end, phase) in enumerate(samples)
        ),
        "power": () if world.meter else _gauge(world, t_s, drawn_w, origin_s, rng),
        "series": (_meter(world, t_s, drawn_w, origin_s, rng),) if world.meter else (),
    }  # fmt: skip
    return Block(record.model_copy(update=more), truth_j)


def _ns(time_s: float) -> int:
    return round(float(time_s) * 1e9)


def _phase(name: str, at: tuple[float, float], origin_s: float) -> Phase:
    start_ns, end_ns = (_ns(edge + origin_s) for edge in at)
    kind: PhaseName = name  # type: ignore[assignment]
    return Phase(seq=0, t_ns=end_ns, phase=kind, start_ns=start_ns, end_ns=end_ns)


def _calibration(world: World) -> GaugeCalibration:
    return GaugeCalibration(
        refresh_ns=_ns(world.refresh_s), noise_a=float(np.hypot(world.noise_a, world.quantum_a / np.sqrt(12))),
        gain_uncertainty=0.0, absolute=True, method="simulated",
    )  # fmt: skip


def _inferences(start_s: float, end_s: float, each_s: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """One after the other until one is over after `end_s`; each takes 1 % more or less."""
    lengths = each_s * np.clip(rng.normal(1.0, 0.01, int((end_s - start_s) / each_s * 1.2) + 10), 0.5, 2)
    ends = start_s + np.cumsum(lengths)
    count = int(np.searchsorted(ends, end_s)) + 1
    return ends[:count] - lengths[:count], ends[:count]


def _caused(world: World, t_s: Array, starts: Array, ends: Array) -> Array:
    """Return what the inferences draw, with the heat that they make."""
    number = np.clip(np.searchsorted(starts, t_s, side="right") - 1, 0, len(starts) - 1)
    busy = (t_s >= starts[0]) & (t_s < ends[-1])
    part = (t_s - starts[number]) / (ends[number] - starts[number])
    shape = np.where(part < 0.6, 1.2, 0.7) if world.ripple else 1.0
    since_s, after_s = np.maximum(0, t_s - starts[0]), np.maximum(0, t_s - ends[-1])
    lasted_s = ends[-1] - starts[0]
    hot = (1 - np.exp(-np.minimum(since_s, lasted_s) / world.heat_s)) * np.exp(-after_s / world.heat_s)
    return np.asarray(world.net_w * shape * busy + world.heat_w * hot)


def _idle(world: World, t_s: Array, rng: np.random.Generator) -> Array:
    step_s = 0.1
    count = int(t_s[-1] / step_s) + 3
    kept = np.exp(-step_s / world.wander_s)
    news, state = rng.normal(size=count) * np.sqrt(1 - kept**2), rng.normal()
    walk = np.empty(count)
    for place in range(count):
        state = kept * state + news[place]
        walk[place] = state
    wander_w = world.wander_w * np.interp(t_s, np.arange(count) * step_s, walk)
    return np.asarray(world.idle_w + wander_w + world.drift_w * (t_s / t_s[-1] - 0.5))


def _gauge(world: World, t_s: Array, drawn_w: Array, origin_s: float, rng: np.random.Generator) -> tuple[Power, ...]:
    ticks_s = np.arange(rng.uniform(0, world.refresh_s) + world.refresh_s, t_s[-1], world.refresh_s)
    seen_s = np.maximum(ticks_s - world.late_s, world.refresh_s)
    until_j = np.concatenate(([0.0], np.cumsum(drawn_w) * STEP_S))
    grid_s = np.concatenate((t_s, [t_s[-1] + STEP_S]))
    if world.gauge == "mean":
        told_w = (np.interp(seen_s, grid_s, until_j) - np.interp(seen_s - world.refresh_s, grid_s, until_j)) / (
            world.refresh_s
        )
    elif world.gauge == "moment":
        told_w = drawn_w[np.searchsorted(t_s, seen_s, side="right") - 1]
    else:
        told_w = _exponential(t_s, drawn_w, 1.0)[np.searchsorted(t_s, seen_s, side="right") - 1]
    noisy_a = told_w / VOLTS + rng.normal(size=len(ticks_s)) * world.noise_a
    raw = np.rint(np.rint(noisy_a / world.quantum_a) * world.quantum_a * 1e6).astype(int)
    due_s = np.arange(1.5, t_s[-1] - 0.5, world.sampling_s)
    read_s = due_s + rng.exponential(0.0003, len(due_s))
    shown = np.clip(np.searchsorted(ticks_s, read_s, side="right") - 1, 0, len(raw) - 1)
    return tuple(
        Power.model_construct(
            event="power", seq=0, t_ns=_ns(at + origin_s), current_ua=-int(raw[place]), voltage_uv=round(VOLTS * 1e6),
            status="Discharging", charge_uah=None,
        )
        for at, place in zip(read_s, shown, strict=True)
    )  # fmt: skip


def _exponential(t_s: Array, drawn_w: Array, over_s: float) -> Array:
    kept, state = np.exp(-STEP_S / over_s), drawn_w[0]
    found = np.empty(len(t_s))
    for place, power_w in enumerate(drawn_w):
        state = kept * state + (1 - kept) * power_w
        found[place] = state
    return found


def _meter(world: World, t_s: Array, drawn_w: Array, origin_s: float, rng: np.random.Generator) -> PowerSeries:
    """Means of 10 ms; times as the host believes, which are late by what the transfer takes."""
    each = round(0.01 / STEP_S)
    count = len(t_s) // each
    means_w = drawn_w[: count * each].reshape(count, each).mean(axis=1) + rng.normal(size=count) * 0.005
    ends_s = t_s[0] + np.arange(1, count + 1) * each * STEP_S + world.late_s
    return PowerSeries.model_construct(
        source=PowerSource.METER, scope=Scope.DEVICE, name="meter", t_ns=tuple(_ns(at + origin_s) for at in ends_s),
        power_w=tuple(means_w.tolist()), is_mean=True, gain_uncertainty=0.0,
        clock=ClockMap(offset_ns=0, residual_ns=1_000_000),
    )  # fmt: skip
