"""Laws that hold in every run, whatever the spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from orchestrator.queueing.arrivals import arrival_times
from orchestrator.queueing.policies import POLICIES
from orchestrator.queueing.requests import DONE, FULL, LATE
from tests.unit.queueing.make import make, request_class, run

pytestmark = pytest.mark.unit

SERVICES = [
    {"kind": "exponential", "mean": "10 ms"},
    {"kind": "fixed", "mean": "7 ms"},
    {"kind": "uniform", "low": "1 ms", "high": "30 ms"},
]
HEAT = {"rise_c": 30, "time_constant": "1 s", "throttle_at": "35 C"}
SERVER = {"power": {"idle_w": 0.1, "busy_w": 2.0}}


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Small systems of all kinds."""
    batch = draw(st.sampled_from([{}, {"size": 3, "window": "5 ms", "marginal": 0.5}]))
    servers = [
        {"name": "fast", "count": draw(st.integers(1, 3)), "speed": 1.5, "heat": HEAT, **SERVER},
        {"name": "slow", "count": 1, "service": {"a": SERVICES[1]}, "setup": "4 ms", "keep_warm": "10 ms", **SERVER},
    ]
    closed = {"kind": "closed", "clients": 5, "think": {"kind": "exponential", "mean": "20 ms"}}
    classes = [
        request_class("a", draw(st.sampled_from([30.0, 150.0, 600.0])), service=draw(st.sampled_from(SERVICES))),
        {"name": "b", "arrivals": closed, "service": SERVICES[0], "priority": 3, "deadline": "40 ms"},
    ]
    if not batch:
        classes[0]["inferences"] = draw(st.sampled_from([None, 3]))
    servers = servers[: draw(st.integers(1, 2))]
    stations: list[dict[str, Any]] = []
    if len(servers) == 2 and draw(st.booleans()):
        stations.append({"name": "first", "servers": ["fast"], "next": {"second": 0.5, "first": 0.2, "leave": 0.3}})
        stations.append({"name": "second", "servers": ["slow"], "next": {"first": 0.1, "leave": 0.9}})
        classes[1]["enters"] = draw(st.sampled_from(["first", "second"]))
    limits = {"queue": draw(st.sampled_from([None, 0, 5])), "drop_late": draw(st.booleans())}
    return {
        "classes": classes,
        "servers": servers,
        "stations": stations,
        "batch": batch,
        "preemption": "none" if batch else draw(st.sampled_from(["none", "resume", "restart"])),
        "policy": {"name": draw(st.sampled_from(sorted(POLICIES)))},
        "limits": limits,
        "overhead": draw(st.sampled_from(["0 ms", "0.5 ms"])),
        "duration": "1 s",
    }


@settings(max_examples=30, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(specs(), st.integers(0, 1000))
def test_requests_are_conserved_and_little_holds(data: dict[str, Any], seed: int) -> None:
    spec = make(**data)
    found = run(spec, seed)
    rows = found.requests
    intended, admitted, started, ended, served = (
        rows.column(name) for name in ("intended", "admitted", "started", "ended", "served_s")
    )
    done = rows.column("outcome") == DONE
    assert set(rows.column("outcome")) <= {DONE, FULL, LATE}
    open_ones = rows.column("kind") == 0
    child = np.random.SeedSequence(seed).spawn(2)[1]
    meant = arrival_times(spec.classes[0].arrivals, "a", np.random.default_rng(child))
    assert np.allclose(np.sort(intended[open_ones]), [at for at, _ in zip(meant, range(open_ones.sum()), strict=False)])
    assert next(meant, 1.0) >= 1.0  # each that arrived in time is there, once

    assert (admitted >= intended).all() and (ended >= admitted).all()
    assert (started[done] >= admitted[done]).all() and (ended[done] >= started[done]).all()
    assert (ended - started - served > -1e-9)[done].all()

    # Little's law: the number that waits, over time, is what each waited, in sum
    waited = (ended - admitted - served).sum()
    assert found.waited_s == pytest.approx(waited, abs=1e-6)

    # no server serves two at once, and none is idle before its own time
    served_at = [visits.done for visits in found.visits or (rows,)]
    for visits in served_at if spec.preemption == "none" else ():
        for index in set(visits.column("server")):
            own = visits.of(visits.column("server") == index)
            mine = np.unique(np.stack([own.column("started"), own.column("ended")], axis=1), axis=0)
            assert (mine[1:, 0] >= mine[:-1, 1] - 1e-9).all()
    assert sum(float(visits.column("served_s").sum()) for visits in found.visits) == pytest.approx(
        served.sum() if found.visits else 0
    )
    assert sum(map(len, served_at)) >= done.sum()


def test_a_seed_gives_the_same_run_again_and_another_seed_another() -> None:
    spec = make(duration="3 s")
    assert np.array_equal(run(spec, 7).requests.rows, run(spec, 7).requests.rows, equal_nan=True)
    assert not np.array_equal(
        run(spec, 7).requests.column("intended")[:9], run(spec, 8).requests.column("intended")[:9]
    )


def test_a_policy_changes_neither_arrivals_nor_sizes() -> None:
    """Common random numbers: what differs between two policies is the policies' own."""
    one, two = (run(make(servers=2, policy={"name": name}, duration="5 s")) for name in ("fifo", "round_robin"))
    assert np.array_equal(one.requests.column("intended"), two.requests.column("intended"))
    assert np.allclose(np.sort(one.requests.column("served_s")), np.sort(two.requests.column("served_s")))
