"""Networks of stations, beside an exact Markov chain, a replay of their lines, and product-form theory."""

from __future__ import annotations

import json
import random
from collections import Counter
from heapq import heapreplace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from farm.cli.app import main
from farm.serving import check_possible
from orchestrator.model.errors import Unsupported
from orchestrator.queueing.measures import ClassFigures, measure
from orchestrator.queueing.network_oracle import network_theory, no_product_form
from orchestrator.queueing.oracle import theory_of
from orchestrator.queueing.product_form import Station, gordon_newell, jackson
from orchestrator.queueing.requests import DONE
from orchestrator.queueing.spec import ClosedArrivals, PolicyChoice, QueueingSpec
from orchestrator.queueing.spec.stations import mean_visits
from orchestrator.queueing.theory import Theory
from tests.source_tree import ROOT
from tests.unit.queueing.make import make, run

pytestmark = pytest.mark.unit

EXAMPLE = ROOT / "examples" / "queueing" / "network.yaml"
OTHERS = [{"kind": "fixed", "mean": "8 ms"}, {"kind": "lognormal", "mean": "12 ms", "cv": 1.5}]
PHONE, SERVER = {"name": "phone", "servers": ["p"]}, {"name": "server", "servers": ["s"]}
GROUPS = [{"name": "p", "count": 2}, {"name": "s"}]


def drawn(rng: random.Random, *, clients: int = 0, times: list[dict[str, Any]] | None = None) -> QueueingSpec:
    """A network of two or three stations: closed where it has `clients`, else of two classes and a load below 0.75."""
    count = rng.choice([2, 3])
    names = [f"n{at}" for at in range(count)]
    groups, stations = [], []
    for at, name in enumerate(names):
        kind = rng.choice(times) if times else {"kind": "exponential", "mean": f"{rng.uniform(5, 30):.3f} ms"}
        groups.append({"name": f"g{at}", "count": rng.choice([1, 1, 2, 3]), "speed": rng.choice([1.0, 1.7]),
                       "service": dict.fromkeys("a" if clients else "ab", kind)})  # fmt: skip
        cuts = [0.0, *sorted(rng.uniform(0, 0.8) for _ in names), 1.0]
        shares = [high - low for low, high in pairwise(cuts)]
        onward = dict(zip([*rng.sample(names, count), "leave"], shares, strict=True))
        stations.append({"name": name, "servers": [f"g{at}"], "next": onward})
    think = {"kind": "exponential", "mean": f"{rng.uniform(1, 60):.3f} ms"}
    arrivals = {"kind": "closed", "clients": clients, "think": think} if clients else {"kind": "poisson", "rate": 1e-3}
    classes: list[dict[str, Any]] = [{"name": "a", "arrivals": arrivals, "enters": rng.choice(names)}]
    if not clients:
        classes.append({"name": "b", "arrivals": {"kind": "poisson", "rate": 2e-3}, "enters": rng.choice(names)})
    spec = make(classes, groups, stations=stations, duration="50 s")
    return spec if clients else spec.at_rate(spec.capacity() * rng.uniform(0.4, 0.75))


def chain(spec: QueueingSpec) -> list[tuple[float, float, float]]:
    """Return each station's visits a second, busy servers and number that waits, from the balance of all states."""
    arrivals = spec.classes[0].arrivals
    assert isinstance(arrivals, ClosedArrivals)
    names, clients = [each.name for each in spec.stations], arrivals.clients
    places = len(names)
    servers = [spec.servers_at(at) for at in range(places)]
    speeds = [1 / spec.mean_service_s(spec.groups_at(at)[0], spec.classes[0]) for at in range(places)]
    states = [state for state in product(range(clients + 1), repeat=places) if sum(state) <= clients]
    number = {state: at for at, state in enumerate(states)}
    balance = np.zeros((len(states), len(states)))

    def flow(state: tuple[int, ...], out: int | None, into: int | None, rate: float) -> None:
        moved = list(state)
        if out is not None:
            moved[out] -= 1
        if into is not None:
            moved[into] += 1
        balance[number[tuple(moved)], number[state]] += rate
        balance[number[state], number[state]] -= rate

    for state in states:
        if thinking := clients - sum(state):
            flow(state, None, names.index(spec.entry(spec.classes[0])), thinking / arrivals.think.mean)
        for at, here in enumerate(state):
            for to, share in spec.stations[at].next.items() if here else ():
                flow(state, at, None if to == "leave" else names.index(to), min(here, servers[at]) * speeds[at] * share)
    balance[-1] = 1.0
    shares = np.linalg.solve(balance, np.eye(len(states))[-1])
    counts = np.array(states)
    busy = shares @ np.minimum(counts, servers)
    return list(zip(busy * speeds, busy, shares @ counts - busy, strict=True))


def test_closed_networks_have_the_figures_of_their_markov_chain(seed: int) -> None:
    rng = random.Random(seed)
    for clients in (1, 2, 4, 6, 7):
        spec = drawn(rng, clients=clients)
        *stations, whole = network_theory(spec)
        expected = chain(spec)
        for at, (line, (rate, busy, waiting)) in enumerate(zip(stations, expected, strict=True)):
            told = (line.waiting_s, line.utilisation, line.queue_length)
            assert told == pytest.approx((waiting / rate, busy / spec.servers_at(at), waiting), rel=1e-7, abs=1e-12)
        think = spec.classes[0].arrivals.think.mean  # type: ignore[union-attr]
        thinking = clients - sum(busy + waiting for _, busy, waiting in expected)
        assert whole.sojourn_s == pytest.approx((clients / thinking - 1) * think, rel=1e-7)  # Little's law


def test_many_clients_who_think_long_are_poisson_arrivals(seed: int) -> None:
    rng = random.Random(seed)
    stations = [Station(rng.uniform(0.2, 2), rng.uniform(0.001, 0.009), rng.choice([1, 2, 30])) for _ in range(5)]
    rate = 0.7 * min(each.servers / each.visits / each.mean_s for each in stations)
    throughput, closed = gordon_newell(4000, 4000 / rate, stations)  # of 2000, 3.1 % are found apart
    there_s = sum(s.visits * (s.mean_s + each.waiting_s) for s, each in zip(stations, closed, strict=True))
    assert throughput == pytest.approx(4000 / (4000 / rate + there_s))  # Little's law: as if they came a little slower
    assert np.array(closed) == pytest.approx(np.array(jackson(throughput, stations)), rel=0.03, abs=1e-9)
    full, crowded = gordon_newell(2000, 1e-6, stations)  # nobody thinks: the narrowest hardly rests
    rests = (len(stations) - 1) / 2000
    assert max(each.utilisation for each in crowded) == pytest.approx(1, abs=rests)
    assert full == pytest.approx(rate / 0.7, rel=rests)


def apart(figures: ClassFigures, line: Theory) -> list[float]:
    """Return how far figures are from theory, in halves of their intervals; waits where there are some to measure."""
    pairs = [(figures.sojourn_s.mean, line.sojourn_s), (figures.utilisation, line.utilisation)]
    if line.queue_length > 0.02:
        pairs += [(figures.waiting_s.mean, line.waiting_s), (figures.queue_length, line.queue_length)]
    return [
        2 * abs(each.value - told) / (each.high - each.low)
        for each, told in pairs
        if each.value is not None and each.low is not None and each.high is not None
    ]


def test_simulated_networks_agree_with_theory(seed: int) -> None:
    found: list[float] = []
    wrong: list[float] = []
    for clients in (0, 0, 12):
        spec = drawn(random.Random(f"{seed} {len(found)}"), clients=clients)
        busy = next(line.utilisation for line in network_theory(spec) if line.part == "all")
        own = sum(spec.mean_service_s(group, spec.classes[0]) for group in spec.servers)
        spec = spec.model_copy(update={"duration": 1700 * own / busy / spec.server_count})
        told = measure(spec, [run(spec, seed + number) for number in range(12)])
        lines, parts = theory_of(spec), dict(told.parts)
        assert {line.part for line in lines} == set(parts)
        for line in lines:
            found += apart(parts[line.part], line)
        slower = spec.servers[0].model_copy(update={"speed": 0.8 * spec.servers[0].speed})
        for line in theory_of(spec.model_copy(update={"servers": (slower, *spec.servers[1:])})):
            wrong += apart(parts[line.part], line)
    # figures of one network err together: the least of 60 draws had 48 % of them within their intervals
    assert len(found) > 20 and max(found) < 4 and np.mean(np.array(found) <= 1) > 0.25, found
    assert max(wrong) > 4  # theory of servers that are a fifth slower is not that of these runs


def test_each_station_serves_its_line_in_order(seed: int) -> None:
    """Whatever the times: its visits, replayed by who comes and how long each takes, begin and end as they did."""
    rng = random.Random(seed)
    for clients in (0, 6, 0, 20):
        spec = drawn(rng, clients=clients, times=OTHERS).model_copy(update={"duration": 20.0})
        found = run(spec, seed)
        for at, visits in enumerate(found.visits):
            rows = visits.rows[np.lexsort((visits.column("started"), visits.column("intended")))]
            free = [0.0] * spec.servers_at(at)
            for entered, started, ended, served in rows[:, [0, 2, 3, 4]]:
                assert started == pytest.approx(max(entered, free[0])) and ended == pytest.approx(started + served)
                heapreplace(free, ended)
        whole, of_visits = found.requests, np.concatenate([each.rows for each in found.visits])
        assert Counter(of_visits[:, 0]) + Counter(whole.column("ended")) == Counter(of_visits[:, 3]) + Counter(
            whole.column("intended")
        )
        assert of_visits[:, 4].sum() == pytest.approx(whole.column("served_s").sum())
        assert (whole.column("outcome") == DONE).all() and whole.waiting_s.min() >= 0
        counts = np.array([len(each) for each in found.visits]) / len(whole)
        shares = np.bincount(whole.column("kind").astype(int)) / len(whole)
        expected = shares @ np.array(spec.visits())
        again = [mean_visits(spec.stations, each.name)[at] for at, each in enumerate(spec.stations)]
        deviation = np.sqrt(expected * (2 * np.array(again) - 1) / len(whole))
        assert (abs(counts - expected) < 5 * deviation).all()


def test_a_network_has_the_same_requests_under_every_policy(seed: int) -> None:
    spec = drawn(random.Random(seed), times=OTHERS)
    choices = [PolicyChoice(name=name) for name in ("fifo", "jsq")]
    one, two = (run(spec.model_copy(update={"policy": each})) for each in choices)
    assert np.array_equal(one.requests.column("intended"), two.requests.column("intended"))
    assert [len(each) for each in one.visits] == [len(each) for each in two.visits]


@pytest.mark.parametrize(
    ("stations", "more", "said"),
    [
        ([{**PHONE, "next": {"server": 0.4, "leave": 0.5}}, SERVER], {}, "phone sums to 0.9, not to 1: 0.4 [+] 0.5"),
        ([{**PHONE, "next": {"sever": 1.0}}, SERVER], {}, "to sever, which is no station: did you mean server"),
        ([PHONE, {**SERVER, "servers": ["x"]}], {}, "has servers x, which is no group of servers here: there are p, s"),
        ([PHONE, SERVER], {}, "no request ever comes to station server"),
        ([{**PHONE, "servers": ["p", "s"]}, SERVER], {}, "servers s stand at 2 stations"),
        ([PHONE], {}, "servers s stand at 0 stations"),
        ([{**PHONE, "next": {"server": 1.0}}, {**SERVER, "next": {"server": 1.0}}], {}, "phone, server never leave"),
        ([PHONE, PHONE], {}, "each station needs its own"),
        ([{**PHONE, "name": "leave"}], {}, "no station can be called leave"),
        ([{**PHONE, "next": {"phone": 0.5, "leave": 0.5}}], {"servers": GROUPS[:1], "rate": 101.0},
         "station phone is unstable: 202 visits/s come, and it can serve 200 at most"),
        ([PHONE, SERVER], {"enters": "phon"}, "a class enters at phon, which is no station: did you mean phone"),
        ([], {"enters": "phone"}, "enters at a station, and there are none"),
    ],
)  # fmt: skip
def test_a_wrong_network_is_told(stations: list[dict[str, Any]], more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        network(stations, **more)


def network(
    stations: list[dict[str, Any]], *, rate: float = 30.0, servers: list[dict[str, Any]] = GROUPS, **more: Any
) -> QueueingSpec:
    of = {
        "name": "a",
        "arrivals": {"kind": "poisson", "rate": rate},
        "service": {"kind": "exponential", "mean": "10 ms"},
    }
    own = {name: more.pop(name) for name in ("enters", "service", "arrivals", "priority") if name in more}
    return make([of | own, *more.pop("classes", [])], servers, stations=stations, **more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"service": OTHERS[1]}, "service of a at phone is lognormal, not exponential"),
        ({"arrivals": {"kind": "gamma", "rate": 30, "cv": 2}}, "arrivals of a are gamma"),
        ({"batch": {"size": 4}}, "the spec has batches"),
        ({"limits": {"queue": 4}}, "the spec has limits"),
        ({"overhead": "1 ms"}, "the spec has an overhead"),
        ({"policy": {"name": "sjf"}}, "policy sjf may not"),
        ({"servers": [{"name": "p", "heat": {"rise_c": 2, "time_constant": "9 s"}}, GROUPS[1]]}, "servers p have heat"),
        ({"servers": [{"name": "p", "travel": OTHERS[0]}, GROUPS[1]]}, "servers p have travel"),
        ({"classes": [{"name": "b", "arrivals": {"kind": "poisson", "rate": 9},
                       "service": {"kind": "exponential", "mean": "5 ms"}}]}, "at phone differ in their mean service"),
    ],
    ids=str,
)  # fmt: skip
def test_theory_says_why_it_says_nothing(more: dict[str, Any], said: str) -> None:
    stations = [{**PHONE, "next": {"server": 0.5, "leave": 0.5}}, SERVER]
    assert no_product_form(network(stations)) == [] and len(theory_of(network(stations))) == 3
    odd = network(stations, **more)
    assert theory_of(odd) == [] and any(said in each for each in no_product_form(odd))
    assert len(run(odd.model_copy(update={"duration": 2.0})).visits) == 2


def test_a_network_is_told_with_its_stations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short.yaml"
    short.write_text(EXAMPLE.read_text().replace("duration: 120 s", "duration: 4 s"))
    assert main(["queue", str(short), "--simulate"]) == 0
    said = capsys.readouterr().out
    assert all(each in said for each in ("at phone", "at server", "sojourn, Jackson network", "23.05", "31.08"))
    short.write_text(short.read_text().replace("{kind: exponential, mean: 12 ms}", "{kind: fixed, mean: 12 ms}"))
    assert main(["queue", str(short), "--simulate"]) == 0
    told = capsys.readouterr()
    assert "Jackson" not in told.out and "service of images at server is fixed, not exponential" in told.err
    page = tmp_path / "page.html"
    assert main(["queue", str(short), "--simulate", "--html", str(page)]) == 0
    assert "at server is fixed, not exponential" in page.read_text() and "at phone" in page.read_text()
    capsys.readouterr()
    assert main(["queue", str(short), "--simulate", "--rates", "0.5,1.2", "--json"]) == 0
    half, above = json.loads(capsys.readouterr().out)["points"]
    assert half["offered_per_s"] == pytest.approx(0.5 * 300 * (1 - 0.25 * 0.05))  # phones are the narrowest
    assert "above capacity" in above["doubts"][0]


def test_a_network_is_refused_on_devices() -> None:
    with pytest.raises(Unsupported, match="simulated alone"):
        check_possible(network([{**PHONE, "next": {"server": 1.0}}, SERVER]))
