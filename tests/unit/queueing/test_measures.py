"""Figures, their intervals, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.queueing.experiment import run_and_measure, run_simulated
from orchestrator.queueing.measures import measure
from orchestrator.queueing.measures.warm_up import mser
from tests.unit.queueing.make import make, measured, request_class

pytestmark = pytest.mark.unit


def test_a_transient_is_left_out_and_noise_alone_is_not() -> None:
    random = np.random.default_rng(3)
    steady = random.normal(10, 1, 1000)
    transient = steady + np.r_[np.linspace(20, 0, 120), np.zeros(880)]
    assert 90 <= mser(transient) <= 140
    assert mser(steady) < 300 and mser(np.ones(7)) == 0


@pytest.mark.parametrize("rule", ["tenth", "mser5"])
def test_a_slow_start_does_not_move_the_mean(rule: str) -> None:
    """Cold servers begin with a backlog of 3 s; afterwards it is M/M/1 at 0.3."""
    cold = [{"name": "s", "setup": "3 s"}]
    found = measured(make([request_class(rate=30)], servers=cold, duration="200 s", warm_up=rule))
    assert 3 < found.cut_s <= 20 and found.total.sojourn_s.mean.value == pytest.approx(1 / 70, rel=0.05)


def test_a_warm_up_that_takes_longer_is_a_doubt() -> None:
    """A backlog of 40 s is worked off for most of the first third of the run."""
    cold = [{"name": "s", "setup": "40 s"}]
    found = measured(make([request_class(rate=30)], servers=cold, duration="200 s"))
    assert any("just after the warm-up" in doubt for doubt in found.doubts)


def test_intervals_between_replications_hold_what_theory_says() -> None:
    """About 11 intervals of 12 experiments hold the truth, with five short runs each."""
    hits = 0
    for seed in range(12):
        found = run_and_measure(
            make([request_class(rate=50)], duration="10 s", replications=5, seed=seed, warm_up="1 s")
        )
        figure = found.total.utilisation
        assert figure.low is not None and figure.high is not None
        hits += figure.low <= 0.5 <= figure.high
    assert 9 <= hits <= 12


def test_an_interval_leaves_out_one_run_at_a_time() -> None:
    """Written out: totals over totals, a p99 of all values, Student's t of three degrees on logarithms."""
    spec = make([request_class(rate=30)], duration="60 s", replications=4)
    runs = run_simulated(spec)
    values = [run.requests.between(6.0, 60.0).done.sojourn_s for run in runs]
    found = measure(spec, runs).total.sojourn_s
    for figure, told in ((found.mean, np.mean), (found.p99, lambda all_values: np.quantile(all_values, 0.99))):
        without = [told(np.concatenate(values[:at] + values[at + 1 :])) for at in range(4)]
        half = 3.1824 * 3 * np.std(np.log(without)) / 3**0.5
        assert figure.value == pytest.approx(told(np.concatenate(values)))
        assert figure.low == pytest.approx(figure.value * np.exp(-half), rel=1e-4)
        assert figure.high == pytest.approx(figure.value * np.exp(half), rel=1e-4)


def test_too_few_requests_have_no_interval() -> None:
    found = measured(make([request_class(rate=50)], duration="15 s")).total.sojourn_s
    assert found.mean.low is not None and found.p99.value is not None and found.p99.low is None


def test_overload_is_a_doubt() -> None:
    (doubt, *_) = measured(make([request_class(rate=130)], duration="30 s", warm_up="none")).doubts
    assert "above capacity" in doubt and measured(make([request_class(rate=30)], duration="100 s")).doubts == ()


def test_energy_is_told_with_and_without_idle_servers() -> None:
    power = {"idle_w": 1.0, "busy_w": 3.0}
    classes = [request_class(rate=25, service={"kind": "fixed", "mean": "10 ms"})]
    total = measured(make(classes, servers=[{"name": "s", "power": power}], duration="60 s", warm_up="none")).total
    assert total.energy_j_per_request.value == pytest.approx(0.03)
    load = total.utilisation.value or 0
    assert total.energy_with_idle_j_per_request.value == pytest.approx((3 * load + 1 - load) / (load / 0.01), rel=1e-3)
