"""The whole budget of an energy, against a simulator that shares nothing with it; benchmarks/statistics/energy.py runs
many more blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.statistics.energy import judge
from benchmarks.statistics.simulated_power import WORLDS, Block, World, block
from orchestrator.analysis.statistics.energies import _figure
from orchestrator.energy import BlockEnergy, block_energy
from orchestrator.energy.refreshes import even_times, news_of
from orchestrator.energy.sources import origins
from orchestrator.energy.windows import integral, rest_windows
from orchestrator.figures import Value
from orchestrator.model.power import PowerSeries
from orchestrator.model.record import DoubtCode

from .blocks import EXACT, S, phases, readings, record

pytestmark = pytest.mark.unit


@cache
def blocks(name: str, count: int, inference_s: float = 0.1) -> tuple[Block, ...]:
    world: World = next(each for each in WORLDS if each.name == name)
    rng = np.random.default_rng(7)
    return tuple(block(replace(world, inference_s=world.inference_s or inference_s), rng) for _ in range(count))


def energy(of: Block) -> BlockEnergy:
    found = block_energy(of.record)
    assert found and found.within_per_inference_j
    return found


def errors(name: str, count: int) -> np.ndarray:
    return np.array([energy(b).per_inference_j.value / b.truth_j - 1 for b in blocks(name, count)])


def covered(name: str, count: int) -> int:
    found = [(b.truth_j, energy(b).within_per_inference_j) for b in blocks(name, count)]
    return sum(each.low <= truth_j <= each.high for truth_j, each in found)


def codes(of: Block) -> set[DoubtCode]:
    return {doubt.code for doubt in energy(of).doubts}


def test_readings_shown_two_and_three_times_in_turn_do_not_beat_with_inferences() -> None:
    """0.5 % off by counting readings as often as they are shown."""
    assert np.sqrt(np.mean(errors("ripple, 100 ms an inference", 8) ** 2)) < 0.002


def test_heat_of_the_load_in_the_rest_after_it_is_not_idle_power() -> None:
    """-0.8 % by a line from rest to rest."""
    assert abs(errors("heat 100 mW, 30 s", 8).mean()) < 0.003


def test_idle_power_that_wanders_is_in_the_interval() -> None:
    """A third of them by the noise of both rests and the difference between them."""
    assert covered("wander 30 mW, 20 s", 16) >= 12


def test_gauge_that_averages_for_longer_than_it_refreshes_is_given_time() -> None:
    """-1.4 % by two refresh periods."""
    assert abs(errors("exponential mean of 1 s", 3).mean()) < 0.003


def test_gauge_in_step_with_inferences_is_doubted_and_says_how_wrong_it_may_be() -> None:
    locked = "ripple, momentary gauge, 250 ms an inference"
    assert np.abs(errors(locked, 4)).max() > 0.1, "it is far off"
    assert covered(locked, 4) == 4 and all(DoubtCode.ALIASED_POWER in codes(b) for b in blocks(locked, 4))
    assert not any(DoubtCode.ALIASED_POWER in codes(b) for b in blocks("ripple", 4, 0.133))


def test_delay_of_a_meter_is_found_by_the_edges_of_the_load() -> None:
    """0.2 s of 35 s are 0.6 %, and its clock says that it is right within a millisecond."""
    assert np.abs(errors("meter, 200 ms late", 3)).max() < 0.002
    assert all(DoubtCode.METER_CLOCK in codes(b) for b in blocks("meter, 200 ms late", 3))
    assert not any(DoubtCode.METER_CLOCK in codes(b) for b in blocks("meter", 3))


def test_rounding_is_told_as_what_no_repetition_makes_smaller() -> None:
    of_one = energy(blocks("quantum 50 mA, noise 1 mA", 1)[0]).within_per_inference_j
    assert of_one and of_one.systematic > 0.9 * of_one.std
    quiet = energy(blocks("steady load", 1)[0]).within_per_inference_j
    assert quiet and quiet.systematic < 0.5 * quiet.std


def test_systematic_uncertainty_does_not_shrink_with_blocks() -> None:
    def half_width(systematic: float) -> float:
        found = [(Value(value=1.0, std=0.02, systematic=systematic), 0.0)] * 100
        within = _figure(found, watched=False, positive=True).within
        assert within
        return within.half_width

    assert half_width(0.02) == pytest.approx(1.96 * 0.02, rel=1e-3)
    assert half_width(0.0) == pytest.approx(1.96 * 0.02 / 10, rel=1e-3)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_power_that_no_phone_draws_is_doubted(unit: float) -> None:
    good = blocks("steady load", 1)[0]
    assert DoubtCode.IMPLAUSIBLE_POWER not in codes(good)
    gauge = good.record.gauge
    assert gauge
    wrong = gauge.model_copy(update={"ampere_per_unit": gauge.ampere_per_unit * unit})
    assert DoubtCode.IMPLAUSIBLE_POWER in codes(replace(good, record=good.record.model_copy(update={"gauge": wrong})))


@pytest.mark.parametrize("says_w", [0.0, 1.3])
def test_meter_that_says_the_same_all_the_time_is_doubted(says_w: float) -> None:
    good = blocks("meter", 1)[0]
    (series,) = good.record.series
    stuck: PowerSeries = series.model_copy(update={"power_w": (says_w,) * len(series.power_w)})
    assert DoubtCode.STUCK_METER not in codes(good)
    found = block_energy(good.record.model_copy(update={"series": (stuck,)}))
    assert found and DoubtCode.STUCK_METER in {doubt.code for doubt in found.doubts}


def test_a_meter_that_hangs_under_the_load_is_doubted(seed: int) -> None:
    """The meter hangs from a moment in the load on, until its end or that of all."""
    rng, good = np.random.default_rng(seed), blocks("meter", 1)[0]
    (series,) = good.record.series
    first, last = len(series.power_w) * 2 // 5, len(series.power_w) * 3 // 5
    at, power_w = int(rng.integers(first, (first + last) // 2)), [*series.power_w]
    end = int(rng.choice([last, len(power_w)]))
    power_w[at:end] = [power_w[at]] * (end - at)
    hung = series.model_copy(update={"power_w": tuple(power_w)})
    found = block_energy(good.record.model_copy(update={"series": (hung,)}))
    assert found and DoubtCode.STUCK_METER in {doubt.code for doubt in found.doubts}


def test_a_meter_that_changes_its_unit_in_the_block_is_doubted(seed: int) -> None:
    rng, good = np.random.default_rng(seed), blocks("meter", 1)[0]
    (series,) = good.record.series
    at, factor = int(rng.integers(10, len(series.power_w) - 10)), float(rng.choice([1e-3, 1e-6]))
    power_w = (*series.power_w[:at], *(factor * each for each in series.power_w[at:]))
    found = block_energy(good.record.model_copy(update={"series": (series.model_copy(update={"power_w": power_w}),)}))
    whole = block_energy(good.record)
    assert whole and DoubtCode.IMPLAUSIBLE_POWER not in {doubt.code for doubt in whole.doubts}
    told = {doubt.code for doubt in found.doubts} if found else {DoubtCode.IMPLAUSIBLE_POWER}
    assert told & {DoubtCode.IMPLAUSIBLE_POWER, DoubtCode.POWER_STEP}, "where a phase ends, too, the factor is another"


def test_each_refresh_counts_once() -> None:
    """A refresh is of 250 ms, read every 100 ms; the fourth to the sixth say the same."""
    shown = np.array([5, 5, 7, 7, 7, 8, 8, 2, 2, 2, 2, 2, 2, 2, 2, 9, 9, 9])
    t_s = np.arange(len(shown)) / 10
    found = news_of(t_s, shown, 0.25)
    assert shown[found].tolist() == [5, 7, 8, 2, 2, 2, 9]
    assert np.diff(even_times(t_s[found], 0.25, 0.1)) == pytest.approx(0.25, abs=0.04)
    assert news_of(t_s, shown, 0.1).tolist() == list(range(len(shown))), "each may be news"


def test_a_refresh_is_put_no_farther_from_where_it_was_seen_than_a_reading() -> None:
    seen_s = np.arange(30) * 0.25
    seen_s[20] += 0.2
    assert np.abs(even_times(seen_s, 0.25, 0.1) - seen_s).max() == pytest.approx(0.1)


def test_the_benchmark_judges_one_block_and_ten_by_their_truth() -> None:
    found = judge(WORLDS[0], 1, 7)
    assert (found["1"]["level"], found["10"]["level"]) == (0.0, 0.95)
    assert found["1"]["covered"] >= 0.8 and found["10"]["covered"] == 1 and abs(found["10"]["bias"]) < 0.001


@pytest.mark.parametrize("draw", range(20))
def test_refreshes_that_wander_leave_no_load_in_the_rest_before_it(draw: int) -> None:
    """A gauge of 250 ms, read every 100 ms, of which one refresh in twenty is 200 ms late, also that one in which the
    load begins."""
    rng = np.random.default_rng(draw)
    due_s = np.arange(0, 30, 0.25)
    late_s = rng.choice([0.0, 0.2], len(due_s), p=[0.95, 0.05])
    late_s[due_s == 14.0] = 0.2
    begins_s = 14.0 + rng.uniform(0, 0.2)
    ends_s, due_s = begins_s + 6, due_s + late_s
    power = readings(
        lambda t_s: (3.0 if begins_s <= t_s < ends_s else 0.2) + 0.01 * math.sin(1e4 * t_s),
        refreshes_s=due_s, end_s=26.0,
    )  # fmt: skip
    times = phases({"idle_before": (10.0, begins_s), "load": (begins_s, ends_s), "idle_after": (ends_s, ends_s + 4)})
    of = record(power, phases=times, gauge=EXACT.model_copy(update={"refresh_ns": S // 4}))
    trace = origins(of)[0].trace
    assert [integral(trace, rest).mean_w for rest in rest_windows(of)] == pytest.approx([0.2, 0.2], abs=0.015)
