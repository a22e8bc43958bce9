"""Laws of the integral of a trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.energy import Trace, energy_j, integrate_j, time_mean_w
from orchestrator.model.errors import StableError

pytestmark = pytest.mark.unit
laws = settings(max_examples=60, deadline=None)

times = st.lists(st.integers(0, 10_000), min_size=2, max_size=60, unique=True).map(lambda ms: np.sort(ms) / 1000)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(sorted)


def window(t_s: np.ndarray, share: float) -> float:
    return float(t_s[0] + share * (t_s[-1] - t_s[0]))


@laws
@given(times, st.floats(-5, 5), st.floats(-5, 5), shares)
def test_trapezoid_of_a_line_is_exact(t_s: np.ndarray, level: float, slope: float, cut: list[float]) -> None:
    """However uneven the readings and wherever the window begins and ends between them."""
    start, end = window(t_s, cut[0]), window(t_s, cut[2])
    exact = level * (end - start) + slope * (end**2 - start**2) / 2
    assert energy_j(Trace(t_s, level + slope * t_s), start, end) == pytest.approx(exact, abs=1e-8)


@laws
@given(times, st.integers(0, 2**32), shares, st.booleans())
def test_windows_add_up(t_s: np.ndarray, seed: int, cut: list[float], is_mean: bool) -> None:
    trace = Trace(t_s, np.random.default_rng(seed).uniform(0, 3, len(t_s)), is_mean=is_mean)
    start, middle, end = (window(t_s, share) for share in cut)
    parts = energy_j(trace, start, middle) + energy_j(trace, middle, end)
    assert parts == pytest.approx(energy_j(trace, start, end), abs=1e-9)


@laws
@given(times, st.floats(0, 5), shares)
def test_counter_equals_trapezoid_at_constant_power(t_s: np.ndarray, power_w: float, cut: list[float]) -> None:
    start, end = window(t_s, cut[0]), window(t_s, cut[2])
    readings = np.full(len(t_s), power_w)
    counted, joined = (energy_j(Trace(t_s, readings, is_mean=is_mean), start, end) for is_mean in (True, False))
    assert counted == pytest.approx(joined, abs=1e-9)


def test_counter_counts_partial_steps() -> None:
    """Means of 2 W, 4 W and 6 W: half a second of the first, all of the second, a quarter of the third."""
    trace = Trace([0, 1, 2, 3], [99, 2, 4, 6], is_mean=True)
    assert energy_j(trace, 0.5, 2.25) == pytest.approx(0.5 * 2 + 4 + 0.25 * 6)


def test_plain_mean_counts_readings_and_time_mean_counts_time() -> None:
    """Ten readings in the first second of a burst, one a second afterwards."""
    t_s = np.concatenate([np.arange(0, 1, 0.1), [1.0, 2.0, 3.0, 4.0]])
    trace = Trace(t_s, np.where(t_s < 1, 5.0, 1.0))
    assert time_mean_w(trace) == pytest.approx((0.9 * 5 + 0.1 * 3 + 3) / 4)


@pytest.mark.parametrize(
    ("t_s", "power_w", "says"),
    [
        ([], [], "no readings"),
        ([0, 1], [1], "2 times for 1"),
        ([0, 2, 1], [1, 1, 1], "time goes back after reading 1"),
        ([0, 1], [1, float("nan")], "not a finite"),
    ],
)
def test_says_why_it_is_no_trace(t_s: list[float], power_w: list[float], says: str) -> None:
    with pytest.raises(StableError, match=says):
        Trace(t_s, power_w)


def test_refuses_a_window_that_was_not_sampled() -> None:
    trace = Trace(np.arange(0, 10, 0.1), np.ones(100))
    with pytest.raises(StableError, match=r"covers 0\.000 to 9\.900"):
        energy_j(trace, 5, 12)
    with pytest.raises(StableError, match="before it begins"):
        energy_j(trace, 5, 4)


def test_repeated_readings_are_not_independent() -> None:
    """The same gauge read ten times as often is not more precise."""
    rng = np.random.default_rng(2)
    news = rng.normal(1.0, 0.1, 100)
    slow = integrate_j(Trace(np.arange(100.0), news, noise_w=0.1, refresh_s=1), 10, 90)
    fast = integrate_j(Trace(np.arange(1000) / 10, np.repeat(news, 10), noise_w=0.1, refresh_s=1), 10, 90)
    assert fast.std == pytest.approx(slow.std, rel=0.2)


@pytest.mark.parametrize("noise_w", [0.0, 0.1], ids=["noise is not known", "noise is known"])
def test_interval_of_noise_covers(noise_w: float) -> None:
    """White noise on steady power: the 95 % interval of the energy covers the truth as often as it says."""
    t_s, covered = np.arange(0, 60, 0.1), 0
    for seed in range(400):
        power_w = np.random.default_rng(seed).normal(2.0, 0.1, len(t_s))
        found = integrate_j(Trace(t_s, power_w, noise_w=noise_w), 5, 55)
        covered += found.low <= 100 <= found.high
    assert 0.90 * 400 <= covered <= 0.99 * 400


def test_gain_is_a_share_of_the_energy() -> None:
    found = integrate_j(Trace(np.arange(100.0), np.full(100, 2.0), gain_uncertainty=0.05), 10, 60)
    assert found.value == pytest.approx(100)
    assert found.std == pytest.approx(5)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 5, rel=1e-3)


def test_quiet_coarse_gauge_is_uncertain_by_its_quantum() -> None:
    """No noise, steps of 0.1 W: the energy is off by anything up to half a step, however long one measures."""
    quiet = integrate_j(Trace(np.arange(1000.0), np.full(1000, 2.0), noise_w=0.0, quantum_w=0.1), 0, 999)
    assert quiet.std == pytest.approx(999 * 0.1 / np.sqrt(12), rel=0.01)
    dithered = integrate_j(Trace(np.arange(1000.0), np.full(1000, 2.0), noise_w=0.1, quantum_w=0.1), 0, 999)
    assert dithered.std < quiet.std / 5
