"""Simulated blocks are what the agent would write, and their truth is the model's."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from orchestrator.model.event import Phase, Power, Sample, parse_event
from virtual_phones.profile import load_profile, profile_names
from virtual_phones.simulation import Course, Fault, simulate

pytestmark = pytest.mark.unit
SHORT = Course(idle_s=5, warmup_s=1, load_s=6)


@pytest.mark.parametrize("name", profile_names())
def test_every_line_is_an_event_of_the_agent(name: str) -> None:
    simulated = simulate(load_profile(name), SHORT, 3)
    events = [parse_event(json.dumps(event)) for event in simulated.events]
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(earlier.t_ns <= later.t_ns for earlier, later in pairwise(events))
    assert [event.phase for event in events if isinstance(event, Phase)] == [
        "idle_before", "warmup", "load", "idle_after"
    ]  # fmt: skip
    assert (events[0].event, events[-2].event, events[-1].event) == ("hello", "sampler", "result")


def test_the_same_arguments_give_the_same_lines() -> None:
    profile = load_profile("galaxy_s7")
    assert simulate(profile, SHORT, 1) == simulate(profile, SHORT, 1)
    assert simulate(profile, SHORT, 1) != simulate(profile, SHORT, 2)


@pytest.mark.parametrize("load", [0.3, 1.0])
def test_truth_is_the_profiles_power(load: float) -> None:
    """A cool phone draws idle + load x span; the net energy of the load phase is that of the span."""
    profile = load_profile("pixel_7")
    truth = simulate(profile, Course(load=load, idle_s=5), 1).truth
    span_w = profile.power.load_w - profile.power.idle_w
    assert truth.net_j == pytest.approx(load * span_w * truth.load_s, rel=1e-6)
    assert truth.per_inference_j == pytest.approx(load * span_w * 0.05, rel=0.01)


def test_phases_join_and_inferences_fill_the_load() -> None:
    events = [parse_event(json.dumps(event)) for event in simulate(load_profile("galaxy_s7"), SHORT, 4).events]
    phases = [event for event in events if isinstance(event, Phase)]
    assert all(earlier.end_ns == later.start_ns for earlier, later in pairwise(phases))
    load = phases[2]
    timed = [event for event in events if isinstance(event, Sample) and event.phase == "timed"]
    assert timed[0].start_ns == load.start_ns
    assert timed[-1].start_ns + timed[-1].duration_ns == pytest.approx(load.end_ns, abs=2)
    assert load.end_ns - load.start_ns >= 6 * 10**9, "the load lasts at least as long as asked"
    assert load.end_ns - load.start_ns < 6.2 * 10**9


def power(faults: tuple[Fault, ...], gain: float = 1.0, course: Course = SHORT) -> list[Power]:
    simulated = simulate(load_profile("galaxy_s7"), course, 6, faults, gain)
    events = (parse_event(json.dumps(event)) for event in simulated.events)
    return [event for event in events if isinstance(event, Power)]


def test_readings_change_once_in_a_refresh_period() -> None:
    currents = [reading.current_ua for reading in power((), course=Course(idle_s=20, load_s=20, period_s=0.05))]
    changes = sum(earlier != later for earlier, later in pairwise(currents))
    assert changes <= 1.05 * len(currents) / 5, "four times a second, read twenty times"


def test_gain_is_of_the_current() -> None:
    usual, more = (sum(reading.current_ua or 0 for reading in power((), gain)) for gain in (1.0, 1.1))
    assert more == pytest.approx(1.1 * usual, rel=0.01)


def test_faults_show_where_they_belong() -> None:
    begin = 7.0
    assert "Charging" in {reading.status for reading in power((Fault("charging", begin),))}
    held = power((Fault("freeze", begin),))
    assert len({(p.current_ua, p.voltage_uv) for p in held[-40:]}) == 1
    capped = power((Fault("clock_cap", begin, share=0.5),))
    assert capped[0].gpu_cap_hz == 624_000_000 and (capped[-1].gpu_cap_hz or 0) <= 312_000_000
    assert capped[-1].cpu_cap_khz[0] == round(capped[0].cpu_cap_khz[0] * 0.5)
    busy = power((Fault("background", begin, share=0.4),))
    assert all((p.cpu_busy or 0) - (p.own_busy or 0) > 0.3 for p in busy[-20:])
    gap = power((Fault("sampling_gap", begin, for_s=1.0),))
    assert max(later.t_ns - earlier.t_ns for earlier, later in pairwise(gap)) > 0.9e9


def test_throttling_slows_inferences_without_a_trace_in_the_caps() -> None:
    profile, slow = load_profile("galaxy_s7"), (Fault("throttle", 9.0, share=0.5),)
    events = [parse_event(json.dumps(event)) for event in simulate(profile, SHORT, 6, slow).events]
    timed = [event.duration_ns for event in events if isinstance(event, Sample) and event.phase == "timed"]
    assert timed[-1] == pytest.approx(2 * timed[0], rel=0.1)
    assert len({event.gpu_cap_hz for event in events if isinstance(event, Power)}) == 1
