"""The promises of each policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.model.errors import SpecError
from orchestrator.queueing.policies import POLICIES, make_policy
from orchestrator.queueing.requests import DONE, FULL, LATE, Requests
from orchestrator.queueing.spec import PolicyChoice
from tests.unit.queueing.make import make, request_class, run

pytestmark = pytest.mark.unit

TWO_KINDS = [
    {"name": "quick", "count": 2, "speed": 2.0, "power": {"busy_w": 6.0}},
    {"name": "thrifty", "count": 2, "power": {"busy_w": 1.0}},
]
"""The quick ones need three times the energy for each request."""


def requests_under(policy: str, options: dict[str, Any] | None = None, **more: Any) -> Requests:
    return run(make(policy={"name": policy, "options": options or {}}, **{"duration": "30 s", **more})).requests


def shares(requests: Requests, servers: int) -> list[float]:
    return [float(np.mean(requests.column("server") == index)) for index in range(servers)]


def test_fifo_begins_in_the_order_of_arrival() -> None:
    started = requests_under("fifo", servers=3, classes=[request_class(rate=270)]).column("started")
    assert (np.diff(started) >= 0).all()


def test_shortest_first_waits_less_on_average_than_fifo() -> None:
    """The total work is the same with one server that is never idle by choice."""
    fifo, known, unknown = (
        requests_under(name, options, classes=[request_class(rate=85)])
        for name, options in (("fifo", {}), ("sjf", {"known": True}), ("sjf", {}))
    )
    assert known.waiting_s.mean() < 0.8 * fifo.waiting_s.mean()
    assert unknown.waiting_s.mean() == pytest.approx(fifo.waiting_s.mean())  # one class: nothing to tell them by
    assert known.column("ended").max() == pytest.approx(fifo.column("ended").max())


def test_earliest_deadline_goes_first() -> None:
    classes = [request_class("tight", 40, deadline="20 ms"), request_class("loose", 45, deadline="2 s")]
    edf, fifo = (requests_under(name, classes=classes) for name in ("edf", "fifo"))
    assert edf.column("late").mean() < 0.7 * fifo.column("late").mean()


def test_join_the_shortest_queue_beats_two_choices_beats_one() -> None:
    classes = [request_class(rate=900)]
    best, two, one = (
        requests_under(name, options, classes=classes, servers=10, duration="15 s").waiting_s.mean()
        for name, options in (("jsq", {}), ("power_of_d", {"d": 2}), ("power_of_d", {"d": 1}))
    )
    assert best < 0.7 * two and two < 0.5 * one


def test_round_robin_gives_each_the_same_number() -> None:
    requests = requests_under("round_robin", servers=4, duration="5 s")
    assert np.array_equal(requests.column("server")[:8], [0, 1, 2, 3] * 2)


def test_the_fastest_and_the_nearest_end_prefer_quick_servers() -> None:
    fastest = requests_under("fastest_first", servers=TWO_KINDS, classes=[request_class(rate=60)])
    assert sum(shares(fastest, 2)) > 0.9
    nearest = requests_under("least_expected_work", servers=TWO_KINDS, classes=[request_class(rate=400)])
    assert 0.55 < sum(shares(nearest, 2)) < 0.85  # both kinds work, the quick ones more


def test_energy_aware_takes_less_energy_and_more_time() -> None:
    aware, nearest = (
        requests_under(name, options, servers=TWO_KINDS, classes=[request_class(rate=60)])
        for name, options in (("energy_aware", {"patience": 4}), ("least_expected_work", {}))
    )
    assert aware.column("energy_j").mean() < 0.5 * nearest.column("energy_j").mean()
    assert aware.sojourn_s.mean() > nearest.sojourn_s.mean()


def test_a_hot_phone_rests_until_it_is_cool() -> None:
    heat = {"ambient": "25 C", "rise_c": 40, "time_constant": "5 s", "throttle_at": "45 C"}
    spec = make(
        [request_class(rate=130)],
        servers=[{"name": "s", "count": 2, "heat": heat}],
        duration="60 s",
        policy={"name": "thermal_aware", "options": {"rest_at_c": 44, "resume_at_c": 40}},
    )
    careful, careless = run(spec), run(spec.model_copy(update={"policy": PolicyChoice(name="fifo")}))
    hottest = [np.max(found.course.temp_c) for found in (careful, careless)]
    assert 43.5 < hottest[0] < 44.5 and hottest[1] > 46
    assert (
        careful.requests.column("served_s").mean() < careless.requests.column("served_s").mean()
    )  # it never throttles


def test_an_energy_budget_is_kept() -> None:
    server = {"name": "s", "count": 3, "power": {"busy_w": 2.0}}
    fixed = {"kind": "fixed", "mean": "10 ms"}
    requests = requests_under(
        "energy_budget",
        {"joules_per_hour": 3600 * 0.5, "saved_j": 1.0},
        servers=[server],
        classes=[request_class(rate=100, service=fixed)],
        duration="20 s",
    )
    begun = np.sort(requests.column("started"))
    spent = 0.02 * np.arange(1, len(begun) + 1)
    assert (spent <= 1.0 + 0.5 * begun + 1e-6).all()
    assert spent[-1] == pytest.approx(1.0 + 0.5 * begun[-1], rel=0.01)  # and used, for there is more than enough to do


def test_a_higher_priority_interrupts_and_a_lower_one_never() -> None:
    classes = [request_class("low", 50), request_class("high", 30, priority=1)]
    alone = run(make([request_class("low", 0.001), classes[1]], duration="20 s"))
    resumed = run(make(classes, duration="20 s", preemption="resume"))
    high = [found.requests.of(found.requests.column("kind") == 1) for found in (alone, resumed)]
    assert resumed.preemptions > 50 and np.allclose(high[0].sojourn_s, high[1].sojourn_s)
    again = run(make(classes, duration="20 s", preemption="restart"))
    assert again.requests.column("served_s").sum() > 1.05 * resumed.requests.column("served_s").sum()


@pytest.mark.parametrize("inferences", [None, 10], ids=["at once", "between inferences"])
@pytest.mark.parametrize("policy", ["fifo", "jsq"])
def test_what_interrupts_is_not_turned_away_by_a_full_queue(
    tmp_path: Path, policy: str, inferences: int | None
) -> None:
    """One is served and one waits, as many as may; of two urgent ones the first interrupts, the second is dropped."""
    (tmp_path / "arrivals.csv").write_text("time_s,class\n0,long\n0.01,long\n0.42,urgent\n0.43,urgent\n")
    arrivals = {"kind": "trace", "file": str(tmp_path / "arrivals.csv")}
    long = {"name": "long", "service": {"kind": "fixed", "mean": "500 ms"}, "inferences": inferences}
    urgent = {"name": "urgent", "service": {"kind": "fixed", "mean": "30 ms"}, "priority": 1}
    more = {"policy": {"name": policy}, "preemption": "resume", "limits": {"queue": 1}, "duration": "1 s"}
    found = run(make([{**each, "arrivals": arrivals} for each in (long, urgent)], **more))
    assert found.requests.column("outcome").tolist() == [DONE, DONE, DONE, FULL] and found.preemptions == 1
    begin_s = 0.42 if inferences is None else 0.45
    assert found.requests.column("started")[2] == pytest.approx(begin_s)


def test_a_full_queue_turns_away_and_a_late_request_is_not_served() -> None:
    classes = [request_class(rate=150, deadline="30 ms")]
    full = requests_under("fifo", classes=classes, limits={"queue": 0}, duration="10 s")
    assert full.done.waiting_s.max() == pytest.approx(0, abs=1e-12) and (full.column("outcome") == FULL).any()
    late = requests_under("fifo", classes=classes, limits={"drop_late": True}, duration="10 s")
    assert (late.column("outcome") == LATE).any()
    begun = late.done.column("started") - late.done.column("intended")
    assert begun.max() <= 0.030
    assert late.column("late").sum() == (late.column("ended") - late.column("intended") > 0.030).sum()


def test_a_batch_is_full_or_its_window_is_over() -> None:
    batch = {"size": 4, "window": "20 ms", "marginal": 0.25}
    fixed = {"kind": "fixed", "mean": "10 ms"}
    requests = requests_under("fifo", classes=[request_class(rate=120, service=fixed)], batch=batch, duration="10 s")
    for started in set(requests.column("started")):
        own = requests.of(requests.column("started") == started)
        assert len(own) <= 4
        assert len(own) == 4 or started - own.column("intended").min() > 0.0199
        assert np.allclose(own.column("served_s"), 0.010 * (1 + 0.25 * (len(own) - 1)))


OWN = """
from orchestrator.queueing import policies

class Policy(policies.Policy):
    own_queues = True

    def __init__(self, generator, first=0):
        super().__init__(generator)
        self.first = first

    def choose(self, request, servers, now):
        return self.servers[self.first]
"""


def test_a_users_own_policy_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    spec = make(servers=3, policy={"file": str(file), "options": {"first": 2}}, duration="5 s")
    assert set(run(spec).requests.column("server")) == {2}


def test_a_policy_that_lets_wait_for_ever_is_told(tmp_path: Path) -> None:
    heat = {"ambient": "30 C", "rise_c": 40, "time_constant": "1 s", "throttle_at": "45 C"}
    options = {"rest_at_c": 35, "resume_at_c": 29}
    spec = make(servers=[{"name": "s", "heat": heat}], policy={"name": "thermal_aware", "options": options})
    with pytest.raises(SpecError, match=r"thermal_aware lets \d+ requests wait for ever"):
        run(spec)
    (tmp_path / "mine.py").write_text(OWN.replace("self.servers[self.first]", "None"))
    with pytest.raises(SpecError, match="answers None where it must name a server"):
        run(make(policy={"file": str(tmp_path / "mine.py")}))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"name": "lifo"}, "there is no policy 'lifo'.*known: fifo, sjf"),
        ({"name": "power_of_d", "options": {"e": 2}}, "power_of_d.*its options are: d"),
        ({"name": "power_of_d", "options": {"d": 0}}, "at least one server"),
        ({"file": "/nowhere/mine.py"}, "is no Python file"),
    ],
    ids=str,
)
def test_a_wrong_policy_is_told(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){said}"):
        make_policy(PolicyChoice(**choice), 1)


@pytest.mark.parametrize(("text", "said"), [("x = 1", "no class `Policy`"), ("1 / 0", "ZeroDivisionError")])
def test_a_file_that_is_no_policy_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(SpecError, match=said):
        make_policy(PolicyChoice(file=str(tmp_path / "mine.py")), 1)


def test_every_policy_is_asked_here() -> None:
    text = Path(__file__).read_text()
    assert [name for name in POLICIES if f'"{name}"' not in text] == []


def test_what_a_users_policy_raises_names_its_file_and_line(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text(
        "from orchestrator.queueing import policies\n\n\nclass Policy(policies.Policy):\n"
        "    def choose(self, request, servers, now):\n        return servers.no_such_thing\n"
    )
    with pytest.raises(SpecError, match=r"mine\.py:6: AttributeError: .*no_such_thing"):
        run(make(policy={"file": str(own)}, duration="1 s"))
