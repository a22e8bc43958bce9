"""Verdicts on a cell's figures: stable, drifting, bimodal or few; what can be told apart; what the canaries say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.statistics import (
    CanaryWord,
    Stability,
    Verdict,
    canary_verdicts,
    cold_start,
    detectable,
    median_interval,
    range_coverage,
    relative_half_width,
    stability,
    throttling,
)
from orchestrator.figures import BlockFigures, times_of
from orchestrator.model.event import Sample
from orchestrator.model.record import Outcome, Record

from .records import MS, cell, figures, record, summarised

Blocks = Callable[[np.random.Generator], np.ndarray]

CLEAN: dict[str, Blocks] = {
    "normal": lambda g: g.normal(10, 0.1, (10, 10)),
    "noisy blocks": lambda g: g.normal(10, 0.5, (10, 10)) + g.normal(0, 0.3, (10, 1)),
    "calm samples in noisy blocks": lambda g: g.normal(10, 0.03, (5, 25)) + g.normal(0, 0.5, (5, 1)),
    "skewed": lambda g: 10 + g.exponential(0.5, (10, 10)),
    "a few slow ones": lambda g: g.normal(10, 0.1, (10, 10)) + 3 * (g.random((10, 10)) < 0.04),
}
FAULTY: dict[str, tuple[Verdict, Blocks]] = {
    "slows over the run": (Verdict.DRIFTING, lambda g: (g.normal(10, 0.2, (10, 10)).T * np.linspace(1, 1.15, 10)).T),
    "steps": (Verdict.DRIFTING, lambda g: (g.normal(10, 0.1, (10, 10)).T * np.repeat([1, 1.05], 5)).T),
    "slows within blocks": (Verdict.DRIFTING, lambda g: g.normal(10, 0.1, (10, 20)) * np.linspace(1, 1.15, 20)),
    "clock by block": (Verdict.BIMODAL, lambda g: (g.normal(10, 0.1, (12, 10)).T * np.tile([1, 1.2, 1.2, 1], 3)).T),
    "clock by sample": (Verdict.BIMODAL, lambda g: g.normal(10, 0.1, (10, 20)) * np.tile([1.0, 1.2], 10)),
}  # fmt: skip
RUNS = 100
CELLS = {cell().cell_id: cell()}


@pytest.fixture
def seed() -> int:
    """The same in every run: these checks are statistical."""
    return 20261121


def judged(blocks: Sequence[Sequence[float]]) -> Stability:
    return stability([times for block in blocks if (times := times_of(block)) is not None])


def verdicts(make: Blocks, seed: int) -> Counter[Verdict]:
    generator = np.random.default_rng(seed)
    return Counter(judged(make(generator).tolist()).verdict for _ in range(RUNS))


@pytest.mark.parametrize("name", CLEAN)
def test_clean_cells_are_stable(name: str, seed: int) -> None:
    assert verdicts(CLEAN[name], seed)[Verdict.STABLE] >= 0.95 * RUNS


@pytest.mark.parametrize("name", FAULTY)
def test_faults_are_found(name: str, seed: int) -> None:
    verdict, make = FAULTY[name]
    assert verdicts(make, seed)[verdict] >= 0.95 * RUNS


@given(st.lists(st.lists(st.floats(0.1, 100), max_size=5), max_size=4))
def test_few_blocks_are_few(blocks: list[list[float]]) -> None:
    assert judged(blocks).verdict is Verdict.FEW


def test_blocks_on_two_levels_do_not_drift_by_chance(seed: int) -> None:
    """Their medians, and those of their fifths, hop from level to level: 3 % of such runs were called drifting."""

    def hopping(generator: np.random.Generator) -> np.ndarray:
        return generator.normal(10, 0.1, (7, 50)) * (1 + 0.15 * (generator.random((7, 50)) < 0.5))

    found = sum((verdicts(hopping, seed + more) for more in range(5)), Counter[Verdict]())
    assert found[Verdict.DRIFTING] <= 0.01 * 5 * RUNS


def test_a_verdict_tells_its_reason() -> None:
    assert judged([[1.0]] * 3).reason == "3 blocks: their range covers the true median in 75% of cases; 5 or more tell"
    rising = judged([[10.0 + i, 10.1 + i] for i in range(8)])
    assert rising.reason == "+56.9% over the run, little by little"


@pytest.mark.parametrize("blocks", [3, 5, 8])
def test_the_range_covers_as_often_as_it_says(blocks: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).exponential(size=(20_000, blocks))
    covered = ((drawn.min(axis=1) < np.log(2)) & (drawn.max(axis=1) > np.log(2))).mean()
    assert covered == pytest.approx(range_coverage(blocks), abs=0.02)


@pytest.mark.parametrize("blocks", [5, 10, 20])
def test_an_effect_of_the_detectable_size_is_mostly_found(blocks: int, seed: int) -> None:
    """The test that goes with it: a bootstrap interval of the difference of medians that leaves out zero."""
    generator = np.random.default_rng(seed)
    effects = [detectable(*generator.normal(10, 0.3, (2, blocks)).tolist()) for _ in range(100)]
    size = float(np.mean([effect.difference for effect in effects if effect]))
    found = [_told_apart(*generator.normal([[10.0], [10.0 + size]], 0.3, (2, blocks)), generator) for _ in range(150)]
    assert 0.65 <= np.mean(found) <= 0.97


def _told_apart(first: np.ndarray, second: np.ndarray, generator: np.random.Generator) -> bool:
    pick = [generator.integers(0, len(first), (500, len(first))) for _ in range(2)]
    difference = np.median(second[pick[1]], axis=1) - np.median(first[pick[0]], axis=1)
    return bool(np.percentile(difference, 2.5) > 0)


def test_more_blocks_and_less_noise_show_smaller_effects() -> None:
    base = [10.0, 10.1, 9.9, 10.2, 9.8]
    one = detectable(base, base)
    more, calm = detectable(base * 4, base * 4), detectable([10 + (v - 10) / 10 for v in base], base)
    assert one and more and calm and more.difference < one.difference and calm.difference < one.difference
    assert one.share == pytest.approx(one.difference / 10)
    assert detectable(base[:2], base) is None
    same = detectable([5.0] * 4, [5.0] * 4)
    assert same is not None and same.difference == 0


def test_one_slow_block_does_not_spoil_what_can_be_detected(seed: int) -> None:
    chance, times = np.random.default_rng(seed), []
    for count in chance.integers(7, 30, 40):
        a, b = (chance.normal(10, 0.1, count) for _ in range(2))
        clean, b[chance.integers(count)] = detectable(a.tolist(), b.tolist()), 15.0
        spoilt = detectable(a.tolist(), b.tolist())
        assert clean is not None and spoilt is not None
        times.append(spoilt.difference / clean.difference)
    assert np.median(times) < 1.5, "by variances more than five"


def test_interval_width_relative_to_the_median() -> None:
    values = [9.0, 10.0, 11.0]
    interval = median_interval(values)
    assert interval is not None and interval.low < 9 and interval.high > 11
    assert relative_half_width(values) == pytest.approx(interval.half_width / 10)
    assert relative_half_width(values[:2]) is None and relative_half_width([]) is None


def canary(at: float, ms: float, serial: str = "phone-1", outcome: Outcome = Outcome.OK) -> Record:
    one = record(cell(network="cifar10_quick"), [ms, ms], block=int(at), serial=serial, outcome=outcome)
    return one.model_copy(update={"role": "canary", "started_at": at, "job_id": f"canary-{serial}-{at}"})


def test_canaries_tell_whether_the_device_has_changed() -> None:
    records = [
        *(canary(at, 2.0 + 0.01 * at) for at in range(5)),
        *(canary(at, 2.0 if at < 4 else 3.0, "phone-2") for at in range(5)),
        canary(9, 9.0, "phone-2", Outcome.LOST),
        canary(0, 2.0, "phone-3"),
        record(cell(), [99.0], serial="phone-1"),
    ]
    steady, changed, few = canary_verdicts(
        figures(records, {c.cell_id: c for c in (cell(), cell(network="cifar10_quick"))})
    )
    assert (steady.serial, steady.verdict, steady.canaries) == ("phone-1", CanaryWord.STEADY, 5)
    assert (changed.verdict, changed.failed) == (CanaryWord.CHANGED, 1)
    assert changed.reason == "canary 5 of 5 is +50.0% off their median (first +0.0%, last +50.0%)"
    assert few.verdict is CanaryWord.FEW


def test_canaries_are_no_results() -> None:
    one, same = cell(), cell(network="cifar10_quick")
    records = [record(one, [5.0]), record(same, [7.0]), canary(3, 1.0)]
    summaries = summarised(records, {c.cell_id: c for c in (one, same)})
    assert [s.latency.median_ms for s in summaries if s.latency] == [7.0, 5.0]


def test_a_cold_start_is_set_up_and_first_inference() -> None:
    records = [record(cell(), [first], block=block) for block, first in enumerate((4.0, 5.0, 9.0))]
    records = [each.model_copy(update={"samples": each.samples[1:]}) for each in records]  # there is no warm-up
    found = cold_start(figures(records, CELLS))
    assert found is not None
    assert (found.setup_ms, found.first_ms, found.total_ms, found.blocks) == (42.0, 5.0, 47.0, 3)
    assert found.interval_ms == median_interval([46.0, 47.0, 51.0])
    (summary,) = summarised(records, CELLS, mode="cold")
    assert summary.cold == found and summary.throttling is None
    assert cold_start(figures([record(cell(), [])], CELLS)) is None


def sustained(durations_ms: list[float], block: int = 0) -> Record:
    starts = np.cumsum([0.0, *durations_ms[:-1]])
    samples = tuple(
        Sample(seq=i, t_ns=0, index=i, phase="timed", start_ns=int(s * MS), duration_ns=int(d * MS))
        for i, (s, d) in enumerate(zip(starts, durations_ms, strict=True))
    )
    return record(cell(), [1.0], block=block).model_copy(update={"samples": samples})


def loads(*blocks: list[float]) -> list[BlockFigures]:
    return figures([sustained(each, number) for number, each in enumerate(blocks)], CELLS, "sustained")


def test_the_throttling_curve_tells_what_speed_is_left() -> None:
    cool, hot = [100.0] * 1200, [125.0] * 1920  # two minutes at full speed, four at 80 %
    found = throttling(loads(*(cool + hot for _ in range(3))))
    assert found is not None
    assert found.load_s == pytest.approx(360) and found.blocks == 3
    assert (found.first_ms, found.last_ms) == (100.0, 125.0)
    assert (found.speed_left, found.told) == (pytest.approx(0.8), 3)
    assert [b.median_ms for b in found.bins] == pytest.approx([100.0] * 10 + [125.0] * 20)
    assert found.bins[0].start_s == 0 and found.bins[-1].end_s == found.load_s


def test_the_sample_with_which_the_load_ends_is_in_it() -> None:
    found = throttling(loads([10_000.0] * 5 + [20_000.0]))
    assert found is not None and (found.first_ms, found.last_ms, found.load_s) == (10_000.0, 20_000.0, 70.0)


def test_a_load_without_throttling_keeps_its_speed_and_none_has_no_curve() -> None:
    found = throttling(loads([50.0] * 100))
    assert found is not None and (found.speed_left, found.throttled, found.told) == (pytest.approx(1), 0, 1)
    found = throttling(loads([50.0] * 99))
    assert found is not None and (found.speed_left, found.told) == (None, 0), "too few units tell nothing"
    assert throttling(loads([50.0])) is None and throttling([]) is None
