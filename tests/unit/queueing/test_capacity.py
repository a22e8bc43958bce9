"""Load curves and the search for a capacity."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from farm.cli.app import main
from orchestrator.model.errors import SpecError
from orchestrator.queueing.capacity import MOST_RUNS, find_capacity, find_live_capacity, load_curve
from orchestrator.queueing.requests import Requests
from orchestrator.queueing.simulation import simulate
from orchestrator.queueing.spec import QueueingSpec
from tests.unit.queueing.make import EXPONENTIAL, make, request_class

pytestmark = pytest.mark.unit

CLOSED = {"kind": "closed", "clients": 3, "think": EXPONENTIAL}


def test_the_capacity_is_that_of_theory() -> None:
    """M/M/1: p99 of the sojourn is ln 100 / (100 - rate); 0.08 s is met up to 42.4 requests/s."""
    found = find_capacity(make(duration="80 s", warm_up="2 s", target={"p99": "80 ms"}))
    truth = 100 - math.log(100) / 0.08
    rate = found.rate_per_s
    assert rate.value and rate.low and rate.high and rate.low <= truth <= rate.high
    assert rate.value == pytest.approx(truth, rel=0.15) and rate.high - rate.low < 0.4 * truth
    assert found.searches == 5
    assert found.load == pytest.approx(rate.value / 100)


def test_the_search_on_devices_finds_what_theory_says_in_fewer_runs() -> None:
    """M/M/1 again; each run draws its own requests, so that a run is never the same as another at its rate."""
    runs: list[QueueingSpec] = []

    def serve(spec: QueueingSpec) -> Requests:
        runs.append(spec)
        return simulate(spec, np.random.SeedSequence([spec.seed, len(runs)])).requests

    found = find_live_capacity(make(duration="40 s", warm_up="2 s", target={"p99": "80 ms"}), 100.0, serve)
    truth, rate = 100 - math.log(100) / 0.08, found.rate_per_s
    assert rate.value and rate.low and rate.high and rate.low <= truth <= rate.high
    assert rate.value == pytest.approx(truth, rel=0.1) and found.load == pytest.approx(rate.value / 100)
    assert len(runs) <= MOST_RUNS and {spec.seed for spec in runs} == {1, 2, 3, 4, 5}


def test_a_run_on_devices_that_gives_up_does_not_meet_the_target() -> None:
    """Above 50 requests/s; what was served until then would."""
    served = simulate(make(duration="1 s"), np.random.SeedSequence(1)).requests.between(0.0, 0.0)

    def serve(spec: QueueingSpec) -> Requests | None:
        return served if sum(spec.offered_rates().values()) < 50 else None

    found = find_live_capacity(make(target={"p99": "100 ms", "drops": "10 %"}), 100.0, serve)
    assert found.rate_per_s.value == pytest.approx(50, rel=0.03)


@pytest.mark.parametrize("seed", range(20))
def test_the_search_on_devices_ends_whatever_the_runs_say(seed: int) -> None:
    """Each run meets the target by chance after the first two, which settle that there is something to find."""
    random, count = np.random.default_rng(seed), iter(range(1000))
    never = simulate(make(duration="1 s"), np.random.SeedSequence(1)).requests
    always = never.between(0.0, 0.0)

    def serve(_: QueueingSpec) -> Requests:
        number = next(count)
        return (always, never)[number] if number < 2 else (always, never)[int(random.integers(2))]

    found = find_live_capacity(make(duration="1 s", warm_up="none", target={"p99": "1 us"}), 100.0, serve)
    assert next(count) <= MOST_RUNS and found.rate_per_s.value and 0 < found.rate_per_s.value < 300


def test_drops_bound_the_capacity_too() -> None:
    """A share of load / (1 + load) is dropped without a queue (Erlang's loss of one server): 20 % at 25 a second."""
    found = find_capacity(make(duration="30 s", limits={"queue": 0}, target={"p99": "10 s", "drops": "20 %"}))
    assert found.rate_per_s.value == pytest.approx(25, rel=0.1)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"p99": "1 ms"}, "not met even at"),
        ({"p99": "1 h", "drops": "99 %"}, "is met even at"),
        (None, "has no target"),
    ],
    ids=str,
)
def test_a_target_outside_the_span_is_told(target: dict[str, str] | None, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        find_capacity(make(duration="20 s", target=target))


def test_a_closed_loop_has_no_capacity() -> None:
    with pytest.raises(SpecError, match="class a has no rate of its own"):
        list(load_curve(make([request_class(arrivals=CLOSED)]), [0.5]))


def test_a_load_curve_offers_what_it_says_and_carries_it_below_one() -> None:
    """Two kinds of servers and two classes: 0.5 of what both can serve, the mix kept."""
    servers = [{"name": "quick", "speed": 3.0}, {"name": "slow"}]
    classes = [request_class("a", 10), request_class("b", 30, service={"kind": "fixed", "mean": "20 ms"})]
    points = list(load_curve(make(classes, servers=servers, duration="30 s", limits={"queue": 20}), [0.5, 1.4]))
    assert points[0].offered_per_s == pytest.approx(0.5 * 4 / 0.0175)
    half, over = (point.figures.throughput_per_s.value or 0 for point in points)
    assert half == pytest.approx(points[0].offered_per_s, rel=0.03)
    assert over == pytest.approx(4 / 0.0175, rel=0.05)


def test_both_in_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(
        "name: t\nservers: [{name: s}]\nduration: 2 s\ntarget: {p99: 100 ms}\n"
        "classes: [{name: a, arrivals: {kind: poisson, rate: 50}, service: {kind: exponential, mean: 10 ms}}]\n"
    )
    assert main(["queue", str(file), "--simulate", "--rates", "0.3,0.6", "--json"]) == 0
    assert [point["offered_per_s"] for point in json.loads(capsys.readouterr().out)["points"]] == [30, 60]
    assert main(["queue", str(file), "--simulate", "--capacity", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["rate_per_s"]) == {"value", "low", "high"}
    assert main(["queue", str(file), "--simulate", "--rates", "0.3,0.6"]) == 0
    assert main(["queue", str(file), "--simulate", "--capacity"]) == 0
    said = capsys.readouterr().out
    assert "carried/s" in said and "p99 <= 100 ms and drops <= 0.00%: up to" in said
    assert main(["queue", str(file), "--simulate", "--rates", "fast"]) == 2
