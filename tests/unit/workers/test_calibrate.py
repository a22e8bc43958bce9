"""Calibration of simulated gauges: unit, sign, refresh period and noise, over seeds; and what cannot be calibrated."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from workers.enrolment.calibrate import CannotCalibrate, TooShort, calibrate
from workers.enrolment.refresh import find_refresh_ns, thin

from .gauges import SECOND, SimulatedGauge

CASES = 200


@pytest.fixture
def seed() -> int:
    """The same in every run: these checks are statistical."""
    return 20261121


def step_s(refresh_s: float) -> float:
    """The length of enrolment's steps: longer for slow gauges."""
    return max(1.5, 10 * refresh_s)


def any_gauge(random_: random.Random) -> SimulatedGauge:
    unit = random_.choice(["uA", "mA"])
    quantum_a = random_.choice([0.001, 0.0003125, 0.002] if unit == "uA" else [0.001, 0.002])
    rest_a = random_.uniform(0.03, 0.25)
    return SimulatedGauge(
        refresh_s=random_.choice([0.1, 0.25, 0.5, 1.0, 2.0]) * random_.uniform(0.95, 1.05),
        unit=unit,
        sign=random_.choice([-1, 1]),
        quantum_a=quantum_a,
        noise_a=quantum_a * random_.uniform(0.5, 5.0),
        rest_a=rest_a,
        load_a=rest_a + random_.uniform(0.15, 1.5),
        jitter=random_.choice([0.0, 0.03, 0.1]),
    )


@pytest.mark.slow
def test_nearly_all_gauges_are_read_right(seed: int) -> None:
    """No more than one of 100 random gauges is read wrong in any respect."""
    random_ = random.Random(seed)
    wrong = []
    for case in range(CASES):
        gauge = any_gauge(random_)
        found = calibrate(*gauge.run(seed + case, step_s(gauge.refresh_s)))
        right = (
            found.ampere_per_unit == (1e-6 if gauge.unit == "uA" else 1e-3)
            and found.discharging_sign == gauge.sign
            and math.isclose(found.refresh_ns / SECOND, gauge.refresh_s, rel_tol=0.1)
        )
        if not right:
            wrong.append((gauge, found))
    assert len(wrong) <= CASES // 100, wrong[:3]


def test_noise_is_found_with_its_quantum(seed: int) -> None:
    """The mean of many estimates: each has some tens of readings."""
    for noise_a, quantum_a in ((0.004, 0.001), (0.0003, 0.001), (0.002, 0.002)):
        gauge = SimulatedGauge(noise_a=noise_a, quantum_a=quantum_a, rest_a=0.0453, load_a=0.7207)
        found = [calibrate(*gauge.run(seed + i, 3.0)).noise_a for i in range(60)]
        expected = math.hypot(noise_a, quantum_a / math.sqrt(12))
        assert np.mean(found) == pytest.approx(expected, rel=0.15)


def test_few_readings_may_scatter_little_by_chance() -> None:
    """These of some thousand brief runs had one kind of readings that scattered four times as much as the other."""
    gauge = SimulatedGauge(noise_a=0.003, quantum_a=0.001, rest_a=0.0453, load_a=0.7207)
    for chance in (169, 1001, 1260):
        assert calibrate(*gauge.run(chance, 1.75)).noise_a == pytest.approx(0.003, rel=0.2)


def test_a_load_that_is_uneven_is_a_load(seed: int) -> None:
    """Readings under load scatter from little to all of it where something else takes the cores again and again."""
    random_ = random.Random(seed)
    power, phases = SimulatedGauge().run(7, 1.75)
    busy = {p.current_ua for p in power if (p.current_ua or 0) < -400_000}
    uneven = {raw: -round(random_.uniform(150_000, 750_000)) for raw in busy}
    starved = [p.model_copy(update={"current_ua": uneven.get(p.current_ua, p.current_ua)}) for p in power]
    found = calibrate(starved, phases)
    assert (found.discharging_sign, found.ampere_per_unit) == (-1, 1e-6)
    assert found.noise_a < 0.01, "the rest tells the gauge's own"


def test_no_load_is_taken_for_one(seed: int) -> None:
    """Two hundred noisy gauges under a load that draws nothing: at most one in a hundred passes by chance, and then
    with the right sign, for a current under load that charges the battery is refused."""
    gauge = SimulatedGauge(load_a=0.045, rest_a=0.045, noise_a=0.01)
    passed = []
    for case in range(200):
        try:
            passed.append(calibrate(*gauge.run(seed + case, 1.75)).discharging_sign)
        except CannotCalibrate:
            continue
    assert len(passed) <= 2 and set(passed) <= {gauge.sign}


def test_a_moment_of_other_load_is_no_noise() -> None:
    power, phases = SimulatedGauge().run(6, 3.0)
    quiet = calibrate(power, phases)
    burst = range(power[0].t_ns + SECOND, power[0].t_ns + SECOND + SECOND // 2)
    disturbed = [p.model_copy(update={"current_ua": -300_000}) if p.t_ns in burst else p for p in power]
    assert calibrate(disturbed, phases).noise_a == pytest.approx(quiet.noise_a, rel=0.5)


def test_a_gauge_that_averages_itself() -> None:
    found = calibrate(*SimulatedGauge(lag_s=0.3).run(5, 3.0))
    assert (found.discharging_sign, found.ampere_per_unit) == (-1, 1e-6)
    assert found.refresh_ns == pytest.approx(0.25 * SECOND, rel=0.1)


def test_a_gauge_whose_news_are_shown_at_another_ones_pace(seed: int) -> None:
    """News every 250 ms, shown every 100 ms: changes are 200 or 300 ms apart, and their mean counts."""
    gauge = SimulatedGauge(looked_at_s=0.1)
    found = [calibrate(*gauge.run(seed + i, 1.75)).refresh_ns / SECOND for i in range(50)]
    assert sum(math.isclose(each, 0.25, rel_tol=0.1) for each in found) >= 49, found


def test_a_slow_gauge_asks_for_longer_steps() -> None:
    gauge = SimulatedGauge(refresh_s=2.0)
    with pytest.raises(TooShort):
        calibrate(*gauge.run(1, 1.5))
    assert calibrate(*gauge.run(1, 20.0)).refresh_ns == pytest.approx(2 * SECOND, rel=0.1)


def test_the_gain_is_uncertain_without_a_second_opinion() -> None:
    found = calibrate(*SimulatedGauge(counter_uah=1000.0).run(3, 2.0))
    assert (found.gain_uncertainty, found.absolute, found.method) == (0.05, False, "load steps")


@pytest.mark.parametrize("gain", [1.0, 1.08, 0.93])
def test_a_charge_counter_that_moved_far_is_a_second_opinion(gain: float) -> None:
    gauge = SimulatedGauge(counter_uah=10.0, counter_gain=gain, noise_a=0.001)
    found = calibrate(*gauge.run(3, 4.0))
    assert found.gain_uncertainty == pytest.approx(max(0.02, abs(1 / gain - 1)), abs=0.025)
    assert "agrees within" in found.method and not found.absolute


def test_a_charge_counter_of_another_unit_says_nothing() -> None:
    found = calibrate(*SimulatedGauge(counter_uah=10.0, counter_gain=0.001).run(3, 4.0))
    assert found.gain_uncertainty == 0.05 and "another unit" in found.method


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"denied": True}, "no node"),
        ({"status": "Charging"}, "Charging"),
        ({"status": "Not charging"}, "not discharging"),
        ({"frozen": True}, "frozen"),
        ({"load_a": 0.046, "rest_a": 0.045}, "does not follow the load"),
        ({"supply_a": 1.5}, "charges the battery"),
    ],
)
def test_what_cannot_be_calibrated_says_why(change: dict[str, object], words: str) -> None:
    gauge = replace(SimulatedGauge(), **change)  # type: ignore[arg-type]
    with pytest.raises(CannotCalibrate, match=words) as told:
        calibrate(*gauge.run(2, 2.0))
    assert told.value.remedy and not isinstance(told.value, TooShort)


def test_readings_that_stay_out_are_no_news() -> None:
    """A pause of the sampler, 100 readings long, shifts the changes around it: the period is found all the same."""
    power, _ = SimulatedGauge().run(4, 5.0)
    kept = power[:200] + power[300:]
    t_ns, raw = np.array([p.t_ns for p in kept]), np.array([float(p.current_ua or 0) for p in kept])
    assert find_refresh_ns(t_ns, raw) == pytest.approx(0.25 * SECOND, rel=0.05)
    assert find_refresh_ns(t_ns[:2], raw[:2]) is None
    assert find_refresh_ns(t_ns, np.ones(len(t_ns))) is None
    assert thin(t_ns[:0], raw[:0], SECOND).size == 0


@pytest.mark.parametrize(
    "gauge",
    [
        SimulatedGauge(unit="uA", load_a=0.008, rest_a=0.002, quantum_a=1e-5, noise_a=1e-5),
        SimulatedGauge(unit="mA", load_a=14.0, rest_a=1.0),
    ],
)
def test_a_power_that_no_phone_draws_is_no_calibration(gauge: SimulatedGauge) -> None:
    """Either was read by the other unit, a thousand times too much or too little, without a word."""
    with pytest.raises(CannotCalibrate, match="no phone draws that"):
        calibrate(*gauge.run(3, 6.0))


@pytest.mark.parametrize("unit", ["uA", "mA"])
@pytest.mark.parametrize("volts_unit", [1, 1000])
def test_units_are_found_by_what_a_battery_can_have(unit: str, volts_unit: int, seed: int) -> None:
    """A voltage in uV or mV, and single readings that are none, change nothing of what is found."""
    draw = random.Random(seed)
    power, phases = SimulatedGauge(unit=unit).run(seed, 2.0)
    ends = (-(2**31), 2**31 - 1, 65535, 2**32 - 1)
    odd = [
        each.model_copy(
            update={
                "current_ua": draw.choice(ends) if draw.random() < 0.01 else each.current_ua,
                "voltage_uv": draw.choice((0, -22, *ends)) if draw.random() < 0.02 else each.voltage_uv // volts_unit,
            }
        )
        for each in power
        if each.voltage_uv is not None
    ]
    clean, found = calibrate(power, phases), calibrate(odd, phases)
    assert (found.ampere_per_unit, found.discharging_sign) == (1e-6 if unit == "uA" else 1e-3, -1)
    assert found.refresh_ns == pytest.approx(clean.refresh_ns, rel=0.05)
    assert found.noise_a == pytest.approx(clean.noise_a, rel=0.2)


def test_a_gauge_of_nothing_but_the_end_of_an_integer_is_told_so() -> None:
    power, phases = SimulatedGauge().run(1, 2.0)
    with pytest.raises(CannotCalibrate, match="-2147483648, by which firmware means"):
        calibrate([each.model_copy(update={"current_ua": -(2**31)}) for each in power], phases)
