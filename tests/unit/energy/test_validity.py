"""Injected faults are found, each by its own reason; what is well is left alone."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.statistics import throttled
from orchestrator.energy import block_energy, find_invalid, latency_change
from orchestrator.energy.throttling import change_of
from orchestrator.model.device import DeviceState, Health
from orchestrator.model.event import PhaseName, Power, Sampler
from orchestrator.model.experiment import Conditions, Range, Sampling
from orchestrator.model.power import ClockMap
from orchestrator.model.record import DoubtCode, InvalidCode, Record
from virtual_phones.simulation import Course, FaultKind, simulate

from .blocks import EXACT, S, load_between, phases, readings, record, samples, series
from .scenarios import DISCHARGING, GAUGES, QUIET, course_of, fault_of, profile_of, record_of, run_block

pytestmark = pytest.mark.unit
POWER = load_between(0.5, 2.5)
SUSTAINED = Sampling(mode="sustained", load=60.0)

FAULTS: dict[FaultKind, InvalidCode] = {
    "charging": InvalidCode.CHARGING,
    "freeze": InvalidCode.GAUGE_FROZEN,
    "throttle": InvalidCode.THROTTLED,
    "clock_cap": InvalidCode.CLOCK_CAP,
    "background": InvalidCode.BACKGROUND_LOAD,
    "sampling_gap": InvalidCode.SAMPLING_GAP,
}
SEEDS = range(1000, 1000 + len(GAUGES))


def codes(of: Record, wanted: Conditions = DISCHARGING, sampling: Sampling | None = None) -> list[InvalidCode]:
    return [reason.code for reason in find_invalid(of, wanted, sampling)]


def noisy(power: tuple[Power, ...]) -> tuple[Power, ...]:
    """A gauge that is never quite the same twice."""
    return tuple(p.model_copy(update={"current_ua": (p.current_ua or 0) + 37 * (p.seq % 7)}) for p in power)


def with_changes(from_s: float, until_s: float, **changes: object) -> Record:
    power = noisy(readings(POWER))
    return record(tuple(p.model_copy(update=changes) if from_s <= p.t_ns / S < until_s else p for p in power))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_injected_faults_are_detected(kind: FaultKind) -> None:
    """Each is at a random time, of random strength, on every gauge."""
    missed = []
    for seed in SEEDS:
        gauge = list(GAUGES)[seed % len(GAUGES)]
        course = course_of(profile_of(gauge), seed)
        fault = fault_of(kind, course, seed)
        if FAULTS[kind] not in codes(run_block(gauge, seed, (fault,), course).record):
            missed.append((gauge, fault))
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("gauge", QUIET)
@pytest.mark.parametrize("calibrated", [True, False])
def test_quiet_gauges_are_not_frozen(gauge: str, calibrated: bool) -> None:
    profile = profile_of(gauge)
    for seed in range(3):
        clean = record_of(simulate(profile, course_of(profile, seed), seed), profile, calibrated=calibrated)
        assert codes(clean) == []


def test_a_clean_block_has_no_reasons() -> None:
    assert codes(record(noisy(readings(POWER)))) == []
    assert codes(record()) == [], "where nothing was sampled there is nothing to find"


def test_charging_throughout_is_allowed_where_any_supply_is() -> None:
    plugged = with_changes(0, 200, status="Charging")
    assert codes(plugged, Conditions()) == []
    assert codes(plugged) == [InvalidCode.CHARGING]
    assert codes(with_changes(90, 95, status="Charging"), Conditions()) == [InvalidCode.CHARGING]


def test_charging_before_and_after_the_block_is_no_matter() -> None:
    assert codes(with_changes(0, 9.9, status="Charging")) == []
    assert codes(with_changes(180.1, 200, status="Charging")) == []


def test_charging_is_seen_by_the_current_where_the_status_lies() -> None:
    assert InvalidCode.CHARGING in codes(with_changes(90, 95, current_ua=400_000))
    assert codes(with_changes(90, 95, current_ua=400_000), Conditions()).count(InvalidCode.CHARGING) == 1


def test_a_gauge_that_holds_its_reading_while_the_load_begins_is_frozen() -> None:
    frozen = record(readings(lambda t_s: 0.5), gauge=EXACT)
    (reason,) = [r for r in find_invalid(frozen, DISCHARGING) if r.code is InvalidCode.GAUGE_FROZEN]
    assert "while the load began" in reason.detail


def test_a_gauge_that_holds_its_reading_within_the_load_is_frozen() -> None:
    held = with_changes(90, 100, current_ua=-625_000)
    (reason,) = find_invalid(held, DISCHARGING)
    assert reason.code is InvalidCode.GAUGE_FROZEN and "99 refreshes" in reason.detail


def test_three_periods_are_the_longest_gap() -> None:
    power, sampler = noisy(readings(POWER)), Sampler(seq=0, t_ns=0, period_ns=S // 10, readings=1900)
    almost, too_long = (tuple(p for p in power if not 1000 < p.seq < 1000 + n) for n in (3, 4))
    assert codes(record(almost, sampler=sampler)) == []
    assert codes(record(too_long, sampler=sampler)) == [InvalidCode.SAMPLING_GAP]
    assert codes(record(power[:1500], sampler=sampler))[0] is InvalidCode.SAMPLING_GAP, "lost at the end"
    assert codes(record((), sampler=sampler)) == [InvalidCode.SAMPLING_GAP], "sampled, but all is lost"


def test_a_lower_cap_counts_until_the_load_is_over() -> None:
    def capped(from_s: float, until_s: float) -> Record:
        power = tuple(
            p.model_copy(
                update={"cpu_cap_khz": (2_000_000, 1_500_000 if from_s <= p.t_ns / S < until_s else 2_000_000)}
            )
            for p in noisy(readings(POWER))
        )
        return record(power)

    (reason,) = find_invalid(capped(100, 200), DISCHARGING)
    assert reason.code is InvalidCode.CLOCK_CAP
    assert "core 1 2000 -> 1500 MHz at 90.0 s" in reason.detail
    assert codes(capped(130, 200)) == []
    assert codes(capped(100, 200), DISCHARGING, SUSTAINED) == []


def slower(share: float, count: int = 400, scatter: float = 0.0) -> Record:
    """The last two fifths of the timed inferences take longer by `share`."""
    timed = [s for s in samples(100 + count) if s.phase == "timed"]
    late = tuple(
        s.model_copy(
            update={
                "duration_ns": round(
                    s.duration_ns * (1 + share * (i >= 0.6 * count)) * (1 + scatter * (-1) ** i * (i % 3))
                )
            }
        )
        for i, s in enumerate(timed)
    )
    return record(samples=late)


def test_throttling_and_drift_by_the_fifths() -> None:
    assert codes(slower(0.04)) == []
    assert codes(slower(0.06)) == [InvalidCode.THROTTLED]
    assert codes(slower(-0.06)) == []  # a matter of the warm-up: the doubt `drift` tells
    assert codes(slower(0.3, count=49)) == [], "too few to tell"
    assert codes(slower(0.06, count=60, scatter=0.2)) == [], "the scatter explains it"


def test_two_levels_are_no_throttling() -> None:
    """Medians of fifths hop from one to the other: 15 to 30 % of such blocks were thrown away."""

    def block(seed: int) -> Record:
        chance = random.Random(seed)
        found = record(readings(POWER))
        times = [s.duration_ns * (1.15 if chance.random() < 0.5 else 1) * chance.gauss(1, 0.01) for s in found.samples]
        pairs = zip(found.samples, times, strict=True)
        return found.model_copy(
            update={"samples": tuple(s.model_copy(update={"duration_ns": round(t)}) for s, t in pairs)[100:150]}
        )

    changes = [latency_change(block(seed)) for seed in range(40)]
    assert sum(abs(each.share) > 0.05 for each in changes if each) > 5, "medians do hop"
    assert sum(each.throttled for each in changes if each) <= 1


WANDERING = next(within for within in throttled.NOISY if "AR(0.9)" in within.name)
LEVELS = next(within for within in throttled.NOISY if "two levels" in within.name)


@pytest.mark.parametrize("within", [LEVELS, WANDERING], ids=["two levels", "correlated by 0.9"])
def test_clean_runs_of_twenty_blocks_lose_none_to_throttling(within: throttled.Within) -> None:
    """The means of the fifths lost one in 3 % of runs, and in 64 % where inferences resemble the one before."""
    rng = np.random.default_rng(20261123)
    called = [change_of(block) for block in (10 * within.draw((4000, 50), rng)).tolist()]
    assert sum(each is not None and each.throttled for each in called) <= 2


def test_a_block_that_throttles_is_found() -> None:
    rng = np.random.default_rng(20261123)
    place = np.arange(200) / 200
    step, slope = place >= 0.6, np.clip((place - 0.2) / 0.6, 0, 1)
    for course in (1 + 0.06 * step, 1 + 0.06 * slope):
        found = [change_of(block) for block in (10 * throttled.QUIET.draw((100, 200), rng) * course).tolist()]
        assert all(each is not None and each.throttled for each in found)
    jumps = [change_of(block) for block in (10 * WANDERING.draw((100, 200), rng) * (1 + step)).tolist()]
    assert sum(each is not None and each.throttled for each in jumps) >= 95, "a jump stands out of a slow wave"


def test_throttling_is_the_result_of_a_sustained_load() -> None:
    hot = slower(0.3)
    assert codes(hot, DISCHARGING, SUSTAINED) == []
    change = latency_change(hot)
    assert change and change.throttled and change.share == pytest.approx(0.3)


def state(level: float = 60.0, status: int = 0) -> DeviceState:
    return DeviceState(health=Health.READY, battery_percent=level, thermal_status=status)


def test_thermal_status_and_level_are_those_of_before_and_after() -> None:
    window = Conditions(battery_percent=Range(min=40, max=80), thermal_status_max=0)
    assert codes(record(state_before=state(), state_after=state()), window) == []
    assert codes(record(state_before=state(), state_after=state(status=1)), window) == [InvalidCode.THERMAL_STATUS]
    assert codes(record(state_after=state(status=3)), window, SUSTAINED) == []
    assert codes(record(state_before=state(status=3)), window, SUSTAINED) == [InvalidCode.THERMAL_STATUS]
    assert codes(record(state_before=state(40), state_after=state(39)), window) == [InvalidCode.LEVEL_LEFT]
    assert codes(record(state_before=state(81), state_after=state(80)), window) == [InvalidCode.LEVEL_LEFT]


def test_background_load_is_what_others_use_beyond_their_usual() -> None:
    def shares(others: float, from_s: float, until_s: float) -> Record:
        def busy(t_s: float) -> dict[str, float]:
            own = 0.5 if POWER(t_s) > 1 else 0.0
            return {"own_busy": own, "cpu_busy": own + (others if from_s <= t_s < until_s else 0.03)}

        return record(tuple(p.model_copy(update=busy(p.t_ns / S)) for p in noisy(readings(POWER))))

    assert codes(shares(0.09, 0, 200)) == []
    assert codes(shares(0.12, 0, 200)) == [InvalidCode.BACKGROUND_LOAD]
    assert codes(shares(0.12, 80, 120)) == [], "not more than 10 % above the rest's"
    assert codes(shares(0.14, 80, 120)) == [InvalidCode.BACKGROUND_LOAD]
    assert codes(shares(0.12, 130, 140)) == [InvalidCode.BACKGROUND_LOAD]
    host = shares(0.5, 0, 200)
    assert codes(host.model_copy(update={"device": host.device.model_copy(update={"kind": "workstation"})})) == []


def test_scattered_shares_are_averaged_with_their_sign() -> None:
    """Both shares are counted in ticks of their own: clean readings scatter to both sides of 0."""

    def scattered(index: int) -> dict[str, float]:
        return {"own_busy": 0.5, "cpu_busy": 0.5 + (0.35 if index % 2 else -0.35)}

    power = [p.model_copy(update=scattered(i)) for i, p in enumerate(noisy(readings(POWER)))]
    assert codes(record(tuple(power))) == []
    short = [p.model_copy(update={"own_busy": 0.5, "cpu_busy": 0.9}) for p in power[:4]]
    quiet = [p.model_copy(update={"own_busy": None, "cpu_busy": None}) for p in power[4:]]
    assert codes(record((*short, *quiet))) == [], "four readings say nothing"


@pytest.mark.parametrize(
    ("before_w", "after_w", "differ"), [(0.2, 0.24, False), (0.2, 0.26, True), (2.0, 2.08, False), (2.0, 2.12, True)]
)
def test_rests_differ_by_more_than_a_share_and_a_power(before_w: float, after_w: float, differ: bool) -> None:
    power = noisy(readings(lambda t_s: 4.0 if 70 <= t_s < 120 else before_w if t_s < 70 else after_w))
    assert codes(record(power)) == ([InvalidCode.IDLE_DIFFERS] if differ else [])


@pytest.mark.parametrize("rest_s", [2.0, 2.5, 3.0, 5.0])
def test_short_rests_of_a_slow_gauge_do_not_differ_for_what_it_still_holds(rest_s: float) -> None:
    """The gauge has news every 1.1 s and still shows the load 1 s after its end."""
    times: dict[PhaseName, tuple[float, float]] = {
        "idle_before": (70 - rest_s, 70), "warmup": (70, 80), "load": (80, 120), "idle_after": (120, 120 + rest_s)
    }  # fmt: skip
    slow = EXACT.model_copy(update={"refresh_ns": 11 * S // 10})
    held = record(readings(POWER, refresh_s=1.1), phases=phases(times), gauge=slow)
    assert codes(held) == []


def test_clocks_that_do_not_agree_make_a_meter_useless() -> None:
    for residual_ms, wanted in ((39, []), (41, [InvalidCode.CLOCK_MAP])):
        clock = ClockMap(offset_ns=0, residual_ns=residual_ms * 10**6)
        assert codes(record(series=(series(POWER, clock=clock),))) == wanted


def test_a_dropped_cable_costs_nothing() -> None:
    """A follower sees the stream end without a result; what it reads from there on completes the journal, and the
    block counts and tells the same."""
    profile, course = profile_of("uA, 250 ms"), Course(idle_s=10, load_s=30)
    dropped = simulate(profile, course, 5, (fault_of("cable_drop", course, 5),))
    first, second = dropped.parts
    assert first[-1]["event"] not in ("result", "error") and second[-1]["event"] == "result"
    assert [event["seq"] for part in dropped.parts for event in part] == list(range(len(dropped.events)))
    whole = record_of(dropped, profile)
    assert codes(whole) == []
    assert block_energy(whole) == block_energy(record_of(simulate(profile, course, 5), profile))
    torn = record_of(replace(dropped, events=first), profile)
    assert InvalidCode.SAMPLING_GAP in codes(torn.model_copy(update={"phases": whole.phases}))


def test_short_blocks_of_few_samples_are_left_alone() -> None:
    """A latency experiment of five samples, with the gauge on: nothing here is long enough to say anything."""
    short = record(readings(lambda t_s: 0.5), samples=samples(104), phases=phases({"load": (80.0, 80.4)}))
    assert codes(short) == []
    found = block_energy(short)
    assert found and DoubtCode.SHORT_LOAD in {doubt.code for doubt in found.doubts}


@pytest.mark.parametrize(("slept_s", "found"), [(None, []), (0.0, []), (1e-4, []), (0.2, [InvalidCode.SUSPENDED])])
def test_a_device_that_was_suspended_measured_nothing(slept_s: float | None, found: list[InvalidCode]) -> None:
    assert codes(record((), suspended_s=slept_s)) == found
