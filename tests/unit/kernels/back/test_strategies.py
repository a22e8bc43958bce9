"""Searching candidates, on synthetic timings."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.options import Choice
from kernels.tuning import STRATEGIES, Budgeted, Halving, Strategy

NOISE = 0.05
TIMES = st.lists(st.floats(0.1, 100.0), min_size=1, max_size=60)


class Bench:
    """Candidates with known times; each measurement is off by at most `noise`, and takes time on its own clock."""

    def __init__(self, times: Sequence[float | None], noise: float = 0.0, seed: int = 0) -> None:
        self.choices = [Choice("direct", str(index)) for index in range(len(times))]
        self.times = dict(zip(self.choices, times, strict=True))
        self.noise, self.random = noise, random.Random(seed)
        self.now_s, self.longest_s, self.repeats = 0.0, 0.0, dict.fromkeys(self.choices, 0)

    def __call__(self, choices: Sequence[Choice], repeats: int) -> list[float | None]:
        began = self.now_s
        found = []
        for choice in choices:
            ms = self.times[choice]
            self.repeats[choice] += repeats
            self.now_s += 0.0 if ms is None else repeats * ms
            found.append(None if ms is None else ms * (1 + self.random.uniform(-self.noise, self.noise)))
        self.longest_s = max(self.longest_s, self.now_s - began)
        return found


def every(seconds: float) -> list[Strategy]:
    return [make(seconds) for make in STRATEGIES.values()]


@given(TIMES)
def test_without_noise_the_fastest_is_found_and_the_default_stays(times: list[float]) -> None:
    for strategy in every(1e9):
        bench = Bench(times)
        found = strategy.search(bench.choices, bench)
        assert found[0].ms == min(times)
        assert bench.choices[0] in [timing.choice for timing in found]
        assert [timing.ms for timing in found] == sorted(timing.ms for timing in found)


@given(TIMES, st.integers(0, 1000))
def test_halving_finds_one_within_the_noise(times: list[float], seed: int) -> None:
    bench = Bench(times, NOISE, seed)
    best = Halving().search(bench.choices, bench)[0].choice
    found = bench.times[best]
    assert found is not None and found <= min(times) * ((1 + NOISE) / (1 - NOISE)) ** 4


def test_halving_spends_its_repetitions_on_the_best() -> None:
    bench = Bench([50.0, *range(1, 65)])
    Halving().search(bench.choices, bench)
    assert bench.repeats[bench.choices[1]] == 15 and bench.repeats[bench.choices[0]] == 15
    assert bench.repeats[bench.choices[64]] == 1
    assert sum(bench.repeats.values()) < 8 * 65 * 0.7


@given(TIMES, st.floats(0.0, 5000.0))
def test_budgeted_keeps_within_its_budget(times: list[float], seconds: float) -> None:
    bench = Bench(times)
    strategy = Budgeted(seconds, clock=lambda: bench.now_s)
    found = strategy.search(bench.choices, bench)
    assert bench.repeats[bench.choices[0]] and found
    # the first, which is always measured, and one batch of candidates that are slower than those before
    assert bench.now_s <= seconds + 2 * bench.longest_s


@given(st.floats(0.1, 100.0), st.integers(1, 60), st.floats(0.0, 5000.0))
def test_budgeted_ends_in_time_where_candidates_take_alike(each: float, count: int, seconds: float) -> None:
    bench = Bench([each] * count)
    strategy = Budgeted(seconds, clock=lambda: bench.now_s)
    strategy.search(bench.choices, bench)
    first = strategy.repeats * each
    assert bench.now_s <= max(seconds, first) * (1 + 1e-9)
    assert bench.now_s * (1 + 1e-9) >= min(seconds - 2 * first, count * first)


def test_what_does_not_run_is_left_out() -> None:
    for strategy in every(1e9):
        bench = Bench([None, 3.0, None, 2.0, None, None, None, None, None, 5.0])
        found = [timing.ms for timing in strategy.search(bench.choices, bench)]
        assert found[:2] == [2.0, 3.0] and set(found) <= {2.0, 3.0, 5.0}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_nothing_runs(name: str) -> None:
    bench = Bench([None] * 10)
    assert STRATEGIES[name](1.0).search(bench.choices, bench) == []
