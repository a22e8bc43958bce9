"""Each process has the rate and the burstiness that it says."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.model.errors import TableError
from orchestrator.queueing.arrivals import arrival_times
from tests.unit.queueing.make import make, request_class

pytestmark = pytest.mark.unit

EXPONENTIAL_THINK = {"kind": "exponential", "mean": "1 s"}


def times(arrivals: dict[str, Any], count: int = 40_000) -> np.ndarray[Any, Any]:
    (of,) = make([request_class(arrivals=arrivals)]).classes
    return np.array(list(islice(arrival_times(of.arrivals, "a", np.random.default_rng(5)), count)))


@pytest.mark.parametrize(
    ("arrivals", "cv"),
    [
        ({"kind": "deterministic", "rate": 20}, 0.0),
        ({"kind": "poisson", "rate": 20}, 1.0),
        ({"kind": "gamma", "rate": 20, "cv": 2}, 2.0),
        ({"kind": "weibull", "rate": 20, "shape": 2}, 0.5227),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_gaps_have_their_mean_and_variation(arrivals: dict[str, Any], cv: float) -> None:
    gaps = np.diff(times(arrivals), prepend=0.0)
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.04, abs=1e-9)


def test_bursts_have_their_rate_and_vary_more_than_poisson() -> None:
    found = times({"kind": "mmpp", "rates": [5, 100], "stays": ["4 s", "1 s"]})
    assert (np.diff(found) >= 0).all() and len(found) / found[-1] == pytest.approx(24, rel=0.1)
    counts = np.histogram(found, bins=np.arange(0, found[-1], 1.0))[0]
    assert counts.var() / counts.mean() > 5  # of a Poisson process it is 1


def test_a_day_has_its_high_and_its_low() -> None:
    found = times({"kind": "diurnal", "rate": 20, "swing": "80 %", "period": "100 s"})
    phase = found[found < 1900] % 100
    high, low = np.mean((phase > 15) & (phase < 35)), np.mean((phase > 65) & (phase < 85))
    assert len(phase) / 1900 == pytest.approx(20, rel=0.03) and high / low == pytest.approx(1.763 / 0.237, rel=0.1)


def test_a_closed_loop_begins_with_a_think_time_of_each() -> None:
    assert len(times({"kind": "closed", "clients": 7, "think": EXPONENTIAL_THINK})) == 7


def test_a_trace_gives_each_class_its_own(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("time_s,class\n0.5,a\n1,b\n2,a\n")
    assert times({"kind": "trace", "file": str(file), "faster": 2}).tolist() == [0.25, 1.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("when,class\n1,a\n", ":1: no column `time_s`"),
        ("time_s\n1\nsoon\n", ":3: time_s is 'soon'"),
        ("time_s\n2\n1\n", ":3: time_s is '1': .*not before"),
        ("time_s,class\n1,b\n", "no request of class a"),
    ],
)
def test_a_wrong_trace_is_told_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(TableError, match=said):
        times({"kind": "trace", "file": str(file)})
