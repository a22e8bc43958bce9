"""Energy of simulated blocks against what the model of the phone really took.

Fixed seeds: fewer than benchmarks/energy_coverage.py runs, which prints the whole table.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from orchestrator.energy import BlockEnergy, block_energy, find_invalid
from virtual_phones.simulation import Course, simulate
from workers.enrolment.calibrate import calibrate

from .scenarios import DISCHARGING, GAUGES, POWERS, Run, course_of, profile_of, record_of, run_block

pytestmark = [pytest.mark.unit, pytest.mark.slow]
SEEDS = range(20)


class Told(NamedTuple):
    """A block's truth, and what is said of it: its record has tens of thousands of readings."""

    truth_j: float
    gain: float
    energy: BlockEnergy
    invalid: object


@cache
def runs(gauge: str) -> tuple[Told, ...]:
    found = (run_block(gauge, seed) for seed in SEEDS)
    return tuple(Told(run.truth_j, run.gain, run.energy, find_invalid(run.record, DISCHARGING)) for run in found)


def covered(gauge: str) -> tuple[int, int]:
    """Count the intervals that hold the truth: with the gain's uncertainty, and those within the device."""
    whole = within = 0
    for run in runs(gauge):
        found = run.energy
        assert found.per_inference_j and found.within_per_inference_j
        whole += found.per_inference_j.low <= run.truth_j <= found.per_inference_j.high
        within += found.within_per_inference_j.low <= run.truth_j * run.gain <= found.within_per_inference_j.high
    return whole, within


@pytest.mark.parametrize("gauge", GAUGES)
def test_joules_per_inference_are_within_one_percent_of_the_truth(gauge: str) -> None:
    """The unit and sign are the calibration's; the gain's error, which no gauge can see, is taken out."""
    errors = [run.energy.per_inference_j.value / (run.truth_j * run.gain) - 1 for run in runs(gauge)]
    assert abs(np.mean(errors)) < 0.002
    told = [run.energy.within_per_inference_j for run in runs(gauge)]
    own = [each.std / each.value for each in told if each]
    noisy = "1 s, inverted sign, noisy" in gauge  # 15 mA a reading: that alone is 0.5 % of a block
    assert np.max(np.abs(errors)) < (2.5 * np.median(own) if noisy else 0.015)
    assert len(own) == len(errors) and np.max(np.abs(errors) / own) < 3.5
    assert np.mean(np.abs(errors) < 0.01) >= 0.95


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """All gauges count, with the gain's error drawn from its uncertainty; no gauge may hide behind the others."""
    counts = {gauge: covered(gauge) for gauge in GAUGES}
    total = len(SEEDS) * len(GAUGES)
    for kind in (0, 1):
        assert sum(count[kind] for count in counts.values()) >= 0.90 * total, counts
        assert all(count[kind] >= 0.8 * len(SEEDS) for count in counts.values()), counts


@pytest.mark.parametrize("phone", POWERS)
def test_restless_phones_are_covered_too(phone: str) -> None:
    """Errors are three times what noise and the difference of both rests alone tell where idle power wanders. They are
    eleven times that where inferences are in step with the gauge, and heat takes 0.7 % away."""
    found = [(run.energy.within_per_inference_j, run.truth_j * run.gain) for run in runs(phone)]
    errors = [(within.value - truth_j) / within.std for within, truth_j in found if within]
    assert covered(phone)[1] >= 16 and np.sqrt(np.mean(np.square(errors))) < 1.4


def test_intervals_are_no_wider_than_what_idle_power_may_do_makes_them() -> None:
    """These phones rest evenly, which nobody knows: intervals that cover by width alone have far smaller errors."""
    found = [(run.energy.within_per_inference_j, run.truth_j * run.gain) for gauge in GAUGES for run in runs(gauge)]
    errors = [(within.value - truth_j) / within.std for within, truth_j in found if within]
    assert np.sqrt(np.mean(np.square(errors))) > 0.5


@pytest.mark.parametrize("gauge", GAUGES)
def test_charge_counter_agrees(gauge: str) -> None:
    checks = [run.energy.charge for run in runs(gauge)]
    assert all(check is None or check.agrees for check in checks), checks


def test_clean_blocks_count() -> None:
    alarms = [(gauge, run.invalid) for gauge in GAUGES for run in runs(gauge)]
    wrong = [(gauge, found) for gauge, found in alarms if found]
    assert len(wrong) <= 0.01 * len(alarms), wrong


def test_integrals_miss_the_truth_where_the_gauge_is_misread() -> None:
    """The check can fail: with the wrong unit, or a refresh period of which the calibration does not know."""
    run = run_block("mA, 500 ms", SEEDS[0])
    assert run.record.gauge
    wrong = run.record.gauge.model_copy(update={"ampere_per_unit": 1e-6})
    misread = Run(run.truth_j, run.record.model_copy(update={"gauge": wrong}), run.gain).energy
    assert misread.per_inference_j and misread.per_inference_j.high < 0.01 * run.truth_j


@pytest.mark.parametrize("gauge", GAUGES)
def test_calibration_by_load_steps_reads_the_block(gauge: str) -> None:
    """The gauge's unit, sign, refresh and noise are found from steps of rest and load alone, as enrolment takes them.
    A block is then within 2 % of the truth, and within its interval."""
    profile = profile_of(gauge)
    steps = record_of(simulate(profile, Course(idle_s=12, warmup_s=0, load_s=12, period_s=0.02), 77), profile)
    found = calibrate(steps.power, steps.phases)
    simulated = simulate(profile, course_of(profile, 3), 3)
    energy = block_energy(record_of(simulated, profile, gauge=found))
    assert energy and energy.per_inference_j and energy.within_per_inference_j
    truth_j = simulated.truth.per_inference_j
    assert energy.per_inference_j.low <= truth_j <= energy.per_inference_j.high
    assert energy.within_per_inference_j.value == pytest.approx(truth_j, rel=0.02)
    assert abs(energy.within_per_inference_j.value - truth_j) < 4 * energy.within_per_inference_j.std
