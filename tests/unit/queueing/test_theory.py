"""Simulated figures agree with theory within their intervals."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from orchestrator.queueing import theory
from orchestrator.queueing.measures import ClassFigures, Figure, Measured
from orchestrator.queueing.oracle import theory_of
from orchestrator.queueing.product_form import Station, gordon_newell
from orchestrator.queueing.spec import QueueingSpec
from tests.unit.queueing.make import EXPONENTIAL, make, measured, request_class

pytestmark = pytest.mark.unit

GAMMA = {"kind": "gamma", "mean": "10 ms", "cv": 1.5}
FIXED = {"kind": "fixed", "mean": "10 ms"}
CLOSED = {"kind": "closed", "clients": 8, "think": {"kind": "exponential", "mean": "50 ms"}}
PRIORITIES = [request_class("low", 40), request_class("high", 30, priority=5)]


def spec_of(classes: list[dict[str, Any]], requests: float = 30_000, **more: Any) -> QueueingSpec:
    spec = make(classes, duration="10 s", **more)
    rate = sum(spec.offered_rates().values()) if spec.open else 100.0
    return spec.model_copy(update={"duration": requests / rate})


CASES = {
    "M/M/1 at 0.3": spec_of([request_class(rate=30)], 22_000),
    "M/M/1 at 0.6": spec_of([request_class(rate=60)]),
    "M/M/1 at 0.85": spec_of([request_class(rate=85)], 40_000),
    "M/M/4 at 0.7": spec_of([request_class(rate=280)], 25_000, servers=4),
    "M/D/1": spec_of([request_class(service=FIXED)]),
    "M/G/1": spec_of([request_class(service=GAMMA)], 30_000),
    "M/M/1/K": spec_of([request_class(rate=90)], limits={"queue": 4}),
    "priority": spec_of(PRIORITIES, 18_000),
    "preemptive priority": spec_of(PRIORITIES, 18_000, preemption="resume"),
    "machine repair": spec_of([{"name": "a", "arrivals": CLOSED, "service": EXPONENTIAL}], 12_000),
    "two choices": spec_of([request_class(rate=4000)], 15_000, servers=50, policy={"name": "power_of_d"}),
}


@cache
def simulated(name: str) -> Measured:
    return measured(CASES[name])


def disagreements(figures: ClassFigures, line: theory.Theory, short: bool = False) -> list[str]:
    """`short`: the run says of itself that its p99 has no interval."""
    told: dict[str, tuple[Figure, float | None]] = {
        "waiting": (figures.waiting_s.mean, line.waiting_s),
        "sojourn": (figures.sojourn_s.mean, line.sojourn_s),
        "p99": (figures.sojourn_s.p99, line.sojourn_p99_s),
        "utilisation": (figures.utilisation, line.utilisation),
        "queue": (figures.queue_length, line.queue_length),
        "drops": (figures.drop_share, line.drop_share),
    }
    wrong = []
    for name, (figure, expected) in told.items():
        if expected is None or (name == "p99" and short):
            continue
        assert figure.value is not None and figure.low is not None and figure.high is not None, name
        half = (figure.high - figure.low) / 2 + 1e-12
        if abs(figure.value - expected) > half or half > 0.3 * expected + 1e-9:
            wrong.append(f"{name}: {figure}, theory {expected:.5g}")
    return wrong


@pytest.mark.parametrize("name", CASES)
def test_simulation_agrees_with_theory(name: str) -> None:
    spec = CASES[name]
    found, lines = simulated(name), theory_of(spec)
    assert lines
    for line in lines:
        figures = found.total if line.of_class is None else found.classes[line.of_class]
        assert disagreements(figures, line, any("runs are short" in doubt for doubt in found.doubts)) == [], line.name


def test_a_wrong_mean_disagrees() -> None:
    """The oracle's own check: figures of a load of 0.6 are not those of 0.65, nor M/M/1 those of M/D/1."""
    found = simulated("M/M/1 at 0.6").total
    assert disagreements(found, theory.mm1(65, 0.01)) and disagreements(found, theory.md1(60, 0.01))


def test_latency_counts_from_the_intended_arrival() -> None:
    """The dispatcher takes 8 ms for each: an M/D/1 queue before servers that are never all busy."""
    spec = make([request_class(rate=100)], servers=30, overhead="8 ms", duration="200 s", warm_up="none")
    found = measured(spec).total.sojourn_s.mean
    expected = theory.md1(100, 0.008).sojourn_s + 0.010
    assert found.value == pytest.approx(expected, rel=0.05) and theory_of(spec) == []
    assert expected > 1.5 * (0.008 + 0.010)  # who counted from admission would say less


def test_formulas_meet_where_they_must() -> None:
    assert theory.mmc(70, 0.01, 1).waiting_s == pytest.approx(theory.mm1(70, 0.01).waiting_s)
    assert theory.mm1k(70, 0.01, 400).waiting_s == pytest.approx(theory.mm1(70, 0.01).waiting_s)
    assert theory.priority_mm1([70], [0.01], preemptive=True)[0].sojourn_s == pytest.approx(1 / 30)
    assert theory.power_of_d(70, 0.01, 1, 1).sojourn_s == pytest.approx(1 / 30)
    assert gordon_newell(1, 0.05, [Station(1, 0.01, 1)])[1][0].waiting_s == pytest.approx(0)
    assert theory.erlang_c(2, 1.0) == pytest.approx(1 / 3)  # Kleinrock's textbook value


@pytest.mark.parametrize(
    "odd",
    [
        {"limits": {"queue": 4, "drop_late": True}},
        {"batch": {"size": 2}},
        {"overhead": "1 ms"},
        {"policy": {"name": "sjf"}},
        {"servers": [{"name": "s", "travel": FIXED}]},
    ],
    ids=str,
)
def test_no_line_where_no_formula_applies(odd: dict[str, Any]) -> None:
    assert theory_of(make()) and theory_of(make(**odd)) == []


def test_no_line_above_capacity() -> None:
    assert theory_of(make([request_class(rate=101)])) == []
