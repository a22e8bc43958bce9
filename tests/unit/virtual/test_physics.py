"""Laws of the physical model, for any profile, state and load."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtual_phones.hardware.physics import (
    State,
    battery_current_a,
    clock_cap,
    initial_state,
    open_circuit_v,
    step,
    thermal_status,
)
from virtual_phones.profile import Profile, load_profile, profile_names

PROFILES = [load_profile(name) for name in profile_names()]

profiles = st.sampled_from(PROFILES)
loads = st.floats(0, 1)
charges = st.floats(0.05, 0.95)
laws = settings(max_examples=40, deadline=None)


def at(profile: Profile, charge: float, *, charging: bool = False) -> State:
    return replace(initial_state(profile), charge=charge, charging=charging)


def stored_j(profile: Profile, state: State) -> float:
    """Heat in the three bodies, above the surroundings."""
    thermal = profile.thermal
    return (
        thermal.die_j_per_k * (state.die_c - thermal.ambient_c)
        + thermal.skin_j_per_k * (state.skin_c - thermal.ambient_c)
        + thermal.battery_j_per_k * (state.battery_c - thermal.ambient_c)
    )


@laws
@given(profiles, charges, loads, st.booleans(), st.floats(0.1, 120))
def test_energy_is_conserved(profile: Profile, charge: float, load: float, charging: bool, dt_s: float) -> None:
    """The energy that battery and supply give is what became heat in the phone and in the battery."""
    state = step(profile, at(profile, charge, charging=charging), load, dt_s)
    given_j = state.chemical_j + state.supplied_j
    assert given_j == pytest.approx(state.consumed_j + state.battery_loss_j, rel=1e-6, abs=1e-6)


@laws
@given(profiles, charges, loads, st.floats(0.1, 60))
def test_heat_stays_in_the_bodies_or_leaves_to_the_surroundings(
    profile: Profile, charge: float, load: float, dt_s: float
) -> None:
    state = step(profile, at(profile, charge), load, dt_s)
    made_j = state.consumed_j + state.battery_loss_j
    assert -1e-6 <= stored_j(profile, state) <= made_j + 1e-6


@laws
@given(profiles, charges, loads)
def test_charge_falls_by_the_integral_of_the_current(profile: Profile, charge: float, load: float) -> None:
    before = at(profile, charge)
    after = step(profile, before, load, 0.5)
    drawn = after.current_a * 0.5 / (profile.battery.capacity_mah * 3.6)
    assert before.charge - after.charge == pytest.approx(drawn, abs=1e-9)


@laws
@given(profiles, loads, loads)
def test_more_load_draws_more_and_heats_more(profile: Profile, one: float, other: float) -> None:
    low, high = sorted((one, other))
    cool, warm = (step(profile, at(profile, 0.5), load, 30) for load in (low, high))
    assert warm.device_w >= cool.device_w
    assert warm.die_c >= cool.die_c
    assert warm.charge <= cool.charge
    assert warm.voltage_v <= cool.voltage_v + 1e-12


@settings(max_examples=3, deadline=None)
@given(profiles, st.floats(30, 70))
def test_a_hot_phone_cools_towards_its_idle_balance(profile: Profile, hot_c: float) -> None:
    state = replace(at(profile, 0.5), die_c=hot_c, skin_c=hot_c, battery_c=hot_c)
    balance_c = profile.thermal.ambient_c + profile.power.idle_w / profile.thermal.skin_ambient_w_per_k
    skins = []
    for _ in range(7):
        state = step(profile, state, 0.0, 800)
        skins.append(state.skin_c)
    assert skins[-1] == pytest.approx(balance_c, abs=0.5)
    distances = [abs(skin - balance_c) for skin in skins]
    assert all(later < earlier or later < 0.5 for earlier, later in pairwise(distances))


def test_a_phone_without_load_and_heat_stays_cold() -> None:
    profile = load_profile("galaxy_s7")
    silent = profile.model_copy(update={"power": profile.power.model_copy(update={"idle_w": 0.0})})
    state = step(silent, at(silent, 0.5), 0.0, 3600)
    assert (state.die_c, state.skin_c, state.battery_c) == pytest.approx((24.0, 24.0, 24.0))
    assert state.charge == 0.5


@laws
@given(profiles, loads, st.floats(1, 30))
def test_small_steps_agree_with_one_large_step(profile: Profile, load: float, dt_s: float) -> None:
    whole = step(profile, at(profile, 0.6), load, dt_s)
    state = at(profile, 0.6)
    for _ in range(7):
        state = step(profile, state, load, dt_s / 7)
    assert state.skin_c == pytest.approx(whole.skin_c, abs=0.05)
    assert state.charge == pytest.approx(whole.charge, abs=1e-5)
    assert state.time_s == pytest.approx(dt_s)


@given(st.floats(20, 90), st.floats(20, 90), profiles)
def test_throttling_is_monotone(one: float, other: float, profile: Profile) -> None:
    low, high = sorted((one, other))
    assert thermal_status(profile.thermal, low) <= thermal_status(profile.thermal, high)
    assert clock_cap(profile.thermal, low) >= clock_cap(profile.thermal, high)


def test_a_powerful_phone_throttles_and_then_draws_less() -> None:
    profile = load_profile("nexus_6p")
    first = step(profile, at(profile, 0.9), 1.0, 1)
    last = step(profile, at(profile, 0.9), 1.0, 3600)
    assert thermal_status(profile.thermal, last.skin_c) >= 1
    assert clock_cap(profile.thermal, last.skin_c) < 1
    assert last.device_w < first.device_w


@laws
@given(profiles, st.floats(0.05, 0.85), loads)
def test_charging_raises_the_charge_and_reverses_the_current(profile: Profile, charge: float, load: float) -> None:
    state = step(profile, at(profile, charge, charging=True), load, 60)
    assert state.current_a < 0
    assert state.charge > charge
    assert state.voltage_v > open_circuit_v(profile.battery, charge)


@pytest.mark.parametrize("charging", [True, False])
def test_charge_never_leaves_its_range(charging: bool) -> None:
    profile = load_profile("nexus_5")
    state = step(profile, at(profile, 0.9 if charging else 0.001, charging=charging), 1.0, 20_000)
    assert 0 <= state.charge <= 1
    if not charging:
        assert (state.charge, state.current_a, state.device_w) == (0.0, 0.0, 0.0)


@given(st.floats(-20, 20), st.floats(3.0, 4.4), st.floats(0.01, 0.3))
def test_the_current_delivers_the_power(power_w: float, ocv_v: float, resistance_ohm: float) -> None:
    current_a = battery_current_a(power_w, ocv_v, resistance_ohm)
    reachable_w = min(power_w, ocv_v**2 / (4 * resistance_ohm))
    assert (ocv_v - current_a * resistance_ohm) * current_a == pytest.approx(reachable_w, abs=1e-6)


@given(profiles, st.floats(0, 1), st.floats(0, 1))
def test_voltage_at_rest_rises_with_charge(profile: Profile, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert open_circuit_v(profile.battery, low) <= open_circuit_v(profile.battery, high)


@pytest.mark.parametrize(("load", "dt_s"), [(-0.1, 1.0), (1.1, 1.0), (0.5, -1.0)])
def test_senseless_steps_are_refused(load: float, dt_s: float) -> None:
    profile = PROFILES[0]
    with pytest.raises(ValueError, match="load"):
        step(profile, initial_state(profile), load, dt_s)
