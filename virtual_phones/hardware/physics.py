"""Battery, power and heat of a phone as one pure function, `step`.

The battery is an open-circuit voltage behind a resistance; the phone turns the power it draws into heat on the die;
heat flows die -> skin -> surroundings, and the battery exchanges heat with the skin. Throttling lowers the clocks, and
with them the power, when the skin is hot. Signs: current and power are positive while the battery discharges.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise

from virtual_phones.profile import Battery, Power, Profile, Thermal

_LONGEST_STEP_S = 0.5
WANDER_PERIODS_S = (7.3, 12.1, 19.7, 41.3, 83.9)


@dataclass(frozen=True, slots=True)
class State:
    """The phone's physical state at `time_s` of its own clock."""

    charge: float
    """State of charge, 0 to 1."""
    die_c: float
    skin_c: float
    battery_c: float
    charging: bool = False
    """Powered by USB."""
    time_s: float = 0.0
    load: float = 0.0
    """Share of the processors that was busy in the last step, 0 to 1."""
    clock: float = 1.0
    """Share of the highest clock that they ran at in the last step."""
    device_w: float = 0.0
    current_a: float = 0.0
    voltage_v: float = 0.0
    supplied_j: float = 0.0
    """Energy that came through the USB port since the start."""
    consumed_j: float = 0.0
    """Energy that the phone turned into heat since the start, without the battery's own loss."""
    battery_loss_j: float = 0.0
    """Heat from the battery's inner resistance since the start."""
    chemical_j: float = 0.0
    """Energy taken out of the battery's chemistry since the start; negative: put in."""


def initial_state(profile: Profile) -> State:
    """A phone that has lain about at room temperature."""
    ambient = profile.thermal.ambient_c
    state = State(profile.battery.level, ambient, ambient, ambient, charging=profile.battery.charging)
    return replace(state, voltage_v=open_circuit_v(profile.battery, state.charge))


def open_circuit_v(battery: Battery, charge: float) -> float:
    """Voltage at rest, by linear interpolation of the profile's curve."""
    for (low, low_v), (high, high_v) in pairwise(battery.ocv_v):
        if charge <= high:
            return low_v + (high_v - low_v) * (charge - low) / (high - low)
    return battery.ocv_v[-1][1]


def battery_current_a(power_w: float, voltage_v: float, resistance_ohm: float) -> float:
    """Current for a power at the battery's terminals: P = V I - R I^2, the smaller root; at most the power that the
    battery can give at all (V^2 / 4R). Negative power charges."""
    radicand = max(0.0, voltage_v**2 - 4 * resistance_ohm * power_w)
    return (voltage_v - math.sqrt(radicand)) / (2 * resistance_ohm)


def idle_power_w(power: Power, time_s: float) -> float:
    """Return a cool phone's power at a time: waves of periods that have no common multiple wander like noise of a few
    seconds to a minute, and are the same whenever they are asked for."""
    waves = sum(math.sin(2 * math.pi * time_s / period_s) for period_s in WANDER_PERIODS_S)
    return max(0.0, power.idle_w + power.wander_w * math.sqrt(2 / len(WANDER_PERIODS_S)) * waves)


def thermal_status(thermal: Thermal, skin_c: float) -> int:
    """Android's thermal status, 0 (none) to 6 (shutdown)."""
    return bisect_right(thermal.status_skin_c, skin_c)


def clock_cap(thermal: Thermal, skin_c: float) -> float:
    """Share of the highest clock that throttling leaves."""
    return thermal.status_cap[thermal_status(thermal, skin_c)]


def step(
    profile: Profile, state: State, load: float, dt_s: float, *, clock: float = 1.0, demand_w: float | None = None
) -> State:
    """The state `dt_s` later under a load of 0 (idle) to 1 (all processors busy), where something else than heat leaves
    a share `clock` of the highest clock. `demand_w`: the power, where it is known from elsewhere. Raises ValueError
    outside."""
    if not 0 <= load <= 1 or dt_s < 0 or not 0 <= clock <= 1:
        raise ValueError(f"load {load} and clock {clock} must be in 0..1 and dt_s {dt_s} not negative")
    count = max(1, math.ceil(dt_s / _LONGEST_STEP_S))
    for _ in range(count):
        state = _short_step(profile, state, load, dt_s / count, clock, demand_w)
    return state


def _short_step(profile: Profile, state: State, load: float, dt_s: float, most: float, demand_w: float | None) -> State:
    battery = profile.battery
    clock = min(most, clock_cap(profile.thermal, state.skin_c))
    span_w = profile.power.load_w - profile.power.idle_w
    leak_w = profile.power.leak_w_per_k * (state.die_c - profile.thermal.ambient_c)
    rest_w = idle_power_w(profile.power, state.time_s + dt_s / 2) + leak_w
    device_w = rest_w + span_w * load * clock if demand_w is None else demand_w
    ocv_v = open_circuit_v(battery, state.charge)
    supply_w = _supply_w(battery, state, device_w)
    current_a = battery_current_a(device_w - supply_w, ocv_v, battery.resistance_ohm)
    if state.charge <= 0 and current_a > 0:
        current_a, device_w = 0.0, supply_w
    loss_w = current_a**2 * battery.resistance_ohm
    warmed = _heat(profile.thermal, state, device_w, loss_w, dt_s)
    return State(
        min(1.0, max(0.0, state.charge - current_a * dt_s / (battery.capacity_mah * 3.6))),
        *warmed,
        charging=state.charging,
        time_s=state.time_s + dt_s,
        load=load,
        clock=clock,
        device_w=device_w,
        current_a=current_a,
        voltage_v=ocv_v - current_a * battery.resistance_ohm,
        supplied_j=state.supplied_j + supply_w * dt_s,
        consumed_j=state.consumed_j + device_w * dt_s,
        battery_loss_j=state.battery_loss_j + loss_w * dt_s,
        chemical_j=state.chemical_j + ocv_v * current_a * dt_s,
    )


def _supply_w(battery: Battery, state: State, device_w: float) -> float:
    """Return what the USB port gives: the phone's need plus charging, which tapers off over the last tenth."""
    if not state.charging:
        return 0.0
    return device_w + battery.charge_w * min(1.0, (1.0 - state.charge) / 0.1)


def _heat(thermal: Thermal, state: State, device_w: float, loss_w: float, dt_s: float) -> tuple[float, float, float]:
    die_skin_w = thermal.die_skin_w_per_k * (state.die_c - state.skin_c)
    battery_skin_w = thermal.battery_skin_w_per_k * (state.battery_c - state.skin_c)
    skin_ambient_w = thermal.skin_ambient_w_per_k * (state.skin_c - thermal.ambient_c)
    return (
        state.die_c + (device_w - die_skin_w) * dt_s / thermal.die_j_per_k,
        state.skin_c + (die_skin_w + battery_skin_w - skin_ambient_w) * dt_s / thermal.skin_j_per_k,
        state.battery_c + (loss_w - battery_skin_w) * dt_s / thermal.battery_j_per_k,
    )
