"""Figures, their intervals, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.queueing.experiment import run_and_measure, run_simulated
from orchestrator.queueing.measures import measure, mser5
from tests.unit.queueing.make import make, measured, request_class

pytestmark = pytest.mark.unit


def test_a_transient_is_left_out_and_noise_alone_is_not() -> None:
    random = np.random.default_rng(3)
    steady = random.normal(10, 1, 5000)
    transient = steady + np.r_[np.linspace(20, 0, 600), np.zeros(4400)]
    assert 450 <= mser5(transient) <= 700
    assert mser5(steady) < 1500 and mser5(np.ones(7)) == 0


def test_a_slow_start_does_not_move_the_mean() -> None:
    """Cold servers begin with a backlog of 3 s; afterwards it is M/M/1 at 0.3."""
    cold = [{"name": "s", "setup": "3 s"}]
    found = measured(make([request_class(rate=30)], servers=cold, duration="200 s"))
    biased = measured(make([request_class(rate=30)], servers=cold, duration="200 s", warm_up="none"))
    assert 3 < found.cuts_s[0] < 20 and found.total.sojourn_s.mean.value == pytest.approx(1 / 70, rel=0.05)
    assert biased.total.sojourn_s.mean.value > 1.5 / 70


def test_intervals_between_replications_hold_what_theory_says() -> None:
    """Of 12 experiments of five short runs each, about 11 intervals hold the truth."""
    hits = 0
    for seed in range(12):
        found = run_and_measure(
            make([request_class(rate=50)], duration="10 s", replications=5, seed=seed, warm_up="1 s")
        )
        figure = found.total.utilisation
        assert figure.low is not None and figure.high is not None
        hits += figure.low <= 0.5 <= figure.high
    assert 9 <= hits <= 12


def test_the_interval_is_students_between_runs() -> None:
    spec = make(duration="5 s", replications=4, warm_up="1 s")
    runs = run_simulated(spec)
    alone = [measure(spec, [run]).total.sojourn_s.mean.value or 0 for run in runs]
    figure, half = measure(spec, runs).total.sojourn_s.mean, 3.1824 * np.std(alone, ddof=1) / 2  # t of 3 degrees
    assert figure.value == pytest.approx(np.mean(alone))
    assert figure.low == pytest.approx(np.mean(alone) - half, rel=1e-4)
    assert figure.high == pytest.approx(np.mean(alone) + half, rel=1e-4)


def test_too_few_requests_have_no_interval() -> None:
    found = measured(make(duration="10 s")).total.sojourn_s
    assert found.mean.low is not None and found.p99_9.value is not None and found.p99_9.low is None


def test_overload_is_a_doubt() -> None:
    (doubt, *_) = measured(make([request_class(rate=130)], duration="30 s", warm_up="none")).doubts
    assert "above capacity" in doubt and measured(make(duration="30 s")).doubts == ()


def test_energy_is_told_with_and_without_idle_servers() -> None:
    power = {"idle_w": 1.0, "busy_w": 3.0}
    classes = [request_class(rate=25, service={"kind": "fixed", "mean": "10 ms"})]
    total = measured(make(classes, servers=[{"name": "s", "power": power}], duration="60 s", warm_up="none")).total
    assert total.energy_j_per_request.value == pytest.approx(0.03)
    load = total.utilisation.value or 0
    assert total.energy_with_idle_j_per_request.value == pytest.approx((3 * load + 1 - load) / (load / 0.01), rel=1e-3)
