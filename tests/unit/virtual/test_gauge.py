"""The fuel gauge's quirks."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from virtual_phones.hardware.gauge import FuelGauge
from virtual_phones.hardware.physics import State, initial_state, step
from virtual_phones.profile import Profile, load_profile


def discharging(profile: Profile) -> State:
    return step(profile, initial_state(profile), 0.5, 1.0)


def currents(profile: Profile, state: State, *, period_s: float, count: int = 200) -> list[int]:
    gauge = FuelGauge(profile, 1)
    return [gauge.read(replace(state, time_s=index * period_s)).current for index in range(count)]


@pytest.mark.parametrize(
    ("name", "sign", "unit"), [("galaxy_s7", -1, 1e6), ("nexus_5", 1, 1e6), ("galaxy_s24", -1, 1e3)]
)
def test_sign_and_unit_are_the_profile_s(name: str, sign: int, unit: float) -> None:
    profile = load_profile(name)
    state = discharging(profile)
    mean = fmean(currents(profile, state, period_s=profile.gauge.refresh_ms / 1000))
    assert mean == pytest.approx(sign * state.current_a * unit, rel=0.05)


def test_readings_hold_for_a_refresh_period_and_then_change() -> None:
    profile = load_profile("galaxy_s7")
    values = currents(profile, discharging(profile), period_s=profile.gauge.refresh_ms / 4000)
    groups = [set(values[start : start + 4]) for start in range(0, len(values), 4)]
    assert all(len(group) == 1 for group in groups)
    assert len(set(values)) > 3


def test_readings_are_quantised() -> None:
    profile = load_profile("galaxy_s7")
    values = currents(profile, discharging(profile), period_s=1.0)
    assert all(value % profile.gauge.quantum_ua == 0 for value in values)


def test_the_same_seed_gives_the_same_noise() -> None:
    profile = load_profile("pixel_7")
    state = discharging(profile)
    assert currents(profile, state, period_s=1.0) == currents(profile, state, period_s=1.0)


def test_a_frozen_gauge_repeats_itself() -> None:
    profile = load_profile("galaxy_s7")
    gauge = FuelGauge(profile, 1)
    state = discharging(profile)
    first = gauge.read(state)
    gauge.frozen = True
    later = replace(state, time_s=state.time_s + 100, charge=0.2, battery_c=50.0)
    assert gauge.read(later) == first
    gauge.frozen = False
    assert gauge.read(later).temp_dc == 500


def test_status_follows_supply_and_charge() -> None:
    profile = load_profile("galaxy_s7")
    start = initial_state(profile)
    charging = step(profile, replace(start, charging=True), 0.0, 1.0)
    full = step(profile, replace(start, charging=True, charge=1.0), 0.0, 1.0)
    states = [discharging(profile), charging, full]
    assert [FuelGauge(profile, 0).read(state).status for state in states] == ["Discharging", "Charging", "Full"]
