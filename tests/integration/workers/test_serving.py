"""Queueing experiments on devices: real agents that stay resident, behind a real adb server."""

from __future__ import annotations

import getpass
import io
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from benchmarks.farm.serving import spec_of
from device_agent.build import binary
from farm import serving
from farm.access import COMMAND_LINE, site_of, user_by
from orchestrator.acts import held, holding
from orchestrator.ledger import Ledger
from orchestrator.model.errors import DeviceBusy, NoData, SpecError, TransportLost, Unsupported
from orchestrator.queueing import capacity
from orchestrator.queueing.kept import as_parquet, data_of, list_runs, read_run
from orchestrator.queueing.live import LiveRun, run_live
from orchestrator.queueing.live import run as live_run
from orchestrator.queueing.live.run import _Live
from orchestrator.queueing.measures import measure
from orchestrator.queueing.requests import DONE, FULL, LOST
from orchestrator.queueing.simulation import simulate
from orchestrator.queueing.simulation.simulate import _Simulation
from orchestrator.queueing.spec import Batch, QueueingSpec, parse
from orchestrator.system.config import Settings
from tests import phones as mending
from tests.unit.kernels.front.decoders import SPELLINGS, drawn
from tests.waiting import eventually
from virtual_phones.faults import Unplug
from workers.connection.local import LocalConnection
from workers.serving import AgentWire
from workers.session import owner

from .conftest import Wiring

pytestmark = pytest.mark.long

HELD = {"kind": "gamma", "mean": "40 ms", "cv": 0.5}
CLASSES = [{"name": "a", "arrivals": {"kind": "poisson", "rate": 15}, "service": HELD}]


def regular(rate: float, service: str) -> dict[str, Any]:
    arrivals = {"kind": "deterministic", "rate": rate}
    return {"name": "a", "arrivals": arrivals, "service": {"kind": "fixed", "mean": service}}


def make(**more: Any) -> QueueingSpec:
    data = {
        "name": "live",
        "servers": [{"name": "phone", "devices": 'kind == "phone"'}],
        "classes": CLASSES,
        "duration": "3 s",
        "warm_up": "none",
        **more,
    }
    return parse(yaml.safe_dump(data), "live")


CPU = [{"name": "cpu", "devices": 'kind == "workstation"'}]


@contextmanager
def agents(settings: Settings, count: int) -> Iterator[list[AgentWire]]:
    """Real ones on this machine, ready to serve."""
    connections = [LocalConnection(f"local-{number}", settings.state / str(number)) for number in range(count)]
    wires = [AgentWire(each.stream([str(binary()), "serve"]), each.serial) for each in connections]
    try:
        for wire in wires:
            wire.await_ready(60.0)
        yield wires
    finally:
        for wire in wires:
            wire.close()


SEARCHED: dict[str, Any] = {
    "servers": CPU,
    "classes": [regular(1, "40 ms")],
    "limits": {"queue": 1},
    "duration": "400 ms",
    "target": {"p99": "1 s", "drops": "10 %"},
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def run(
    spec: QueueingSpec, settings: Settings, ledger: Ledger, at_start: Callable[[], None] = lambda: None
) -> serving.OnDevices:
    """`at_start` is called just before the first request."""
    return serving.run_on_devices(spec, settings, ledger, lambda told: at_start() if told.startswith("run 1") else None)


def beside_gauges(doubts: Sequence[str]) -> list[str]:
    """Leave out those of gauges that are slower than the requests."""
    return [each for each in doubts if "its gauge has news" not in each]


def test_on_a_phone(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    """Inferences of a network, and time that is held, of which latency counts from the intended arrival; the phone is
    held meanwhile, tells its power, and is left as it was."""
    lenet = {
        "name": "b",
        "arrivals": {"kind": "deterministic", "rate": 10},
        "infer": {"network": "lenet", "backend": "cpu"},
    }
    spec = make(classes=[*CLASSES, lenet], batch={"size": 2})
    holds: list[str] = []
    held = ledger.standing.holds
    ran = run(spec, lab_settings, ledger, lambda: holds.extend(f"{each.serial} {each.who}" for each in held()))
    assert holds == [f"{lab.serial} {getpass.getuser()}"] and held() == []
    (live,), (phone,) = ran.runs, ran.residents
    rows = live.run.requests
    assert set(rows.column("kind")) == {0, 1} and set(rows.column("outcome")) == {DONE}
    assert (rows.column("admitted") >= rows.column("intended")).all()
    assert (rows.sojourn_s >= rows.column("served_s")).all()
    held = rows.of(rows.column("kind") == 0)
    assert held.column("served_s").mean() > 0.02
    assert set(phone.plans) == {"1x1", "1x2"} and phone.expected_s["1x1"] > 0
    assert phone.state_before and phone.state_after and phone.error is None
    assert len(phone.wire.readings) > 10 and phone.wire.readings[-1].temp_c is not None  # type: ignore[union-attr]
    assert (rows.column("energy_j") > 0).all(), "the phone tells its power from before the first to after the last"
    total = measure(spec, [live.run]).total
    assert total.energy_j_per_request.value and total.energy_with_idle_j_per_request.value
    assert total.energy_with_idle_j_per_request.value > total.energy_j_per_request.value
    told = data_of(read_run(ledger, ran.keep(ledger)))
    assert told["all"]["requests"] == len(rows) and told["source"] == "virtual"
    assert told["all"]["sojourn_s"]["p99"]["value"] == pytest.approx(total.sojourn_s.p99.value, abs=1e-6)
    assert told["all"]["energy_j_per_request"]["value"] == pytest.approx(total.energy_j_per_request.value, rel=1e-4)
    assert told["servers"][0]["plans"] == phone.plans and told["dispatcher_overhead_s"][0]["p99"] > 0
    assert [each["name"] for each in list_runs(ledger)] == ["live"]
    table = pq.read_table(io.BytesIO(as_parquet(read_run(ledger, "latest"))))
    assert len(table) == len(rows) and set(table["class"].to_pylist()) == {"a", "b"}
    assert set(table["server"].to_pylist()) == {"phone"} and set(table["outcome"].to_pylist()) == {"served"}
    assert table["served_s"].to_numpy() == pytest.approx(rows.column("served_s"), abs=1e-8)
    assert owner.keeper_of(lab.connection, owner.Claimant("another")) is None
    agents = lab.connection.shell(["pgrep", "-f", "pocketfarm-agent serve"])
    assert agents.stdout == b"", "its agent stayed behind"


def test_a_load_curve_on_a_phone(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    """More of twice the capacity (all that a busy phone serves) is turned away than of low load, however busy this
    machine is. The phone stays resident, and is held, from the first load to the last."""
    arrivals = {"kind": "poisson", "rate": 1}
    spec = make(classes=[{"name": "a", "arrivals": arrivals, "service": HELD}], limits={"queue": 3})
    told: list[str] = []
    held, carried, full, wires = set(), {}, {}, []
    for load, ran in serving.run_at_loads(spec, [0.4, 2.0], lab_settings, ledger, told.append):
        held.add(tuple(each.serial for each in ledger.standing.holds()))
        total = measure(ran.spec, [each.run for each in ran.runs]).total
        carried[load] = total.throughput_per_s.value
        full[load] = (ran.runs[0].run.requests.column("outcome") == FULL).mean()
        wires += [each.wire for each in ran.residents]
        ran.keep(ledger)
    assert held == {(lab.serial,)} and ledger.standing.holds() == []
    assert wires[0] is wires[1] is not None
    assert "capacity: 25 requests/s" in told
    assert 0 < carried[0.4] < 15 and 0 < carried[2.0] < 30, "more than the phone can serve was carried"
    assert full[0.4] < full[2.0]
    assert [each["requests"] > 20 for each in list_runs(ledger)] == [True, True]


def test_a_phone_that_dies_is_a_result(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    """The request that it served is lost and told; who waited in its line is served by the other one."""
    second = lab.phones.phones[1].serial
    mending.connect(lab.server, second)
    spec = make(
        servers=[{"name": "phone", "count": 2, "devices": 'kind == "phone"'}],
        classes=[{"name": "a", "arrivals": {"kind": "poisson", "rate": 30}, "service": HELD}],
        policy={"name": "round_robin"},
        duration="5 s",
    )
    killer = threading.Timer(1.5, lambda: lab.phones.control.fault(second, Unplug(seconds=60.0)))
    ran = run(spec, lab_settings, ledger, killer.start)
    killer.join()
    rows, (doubt,) = ran.runs[0].run.requests, beside_gauges(ran.runs[0].run.doubts)
    away = re.search(r"went away after ([0-9.]+) s", doubt)
    assert away and len(ran.residents) == 2
    assert set(rows.column("outcome")) <= {DONE, LOST}
    assert (rows.column("outcome") == LOST).sum() <= 1, "only what it served is lost"
    (gone,) = (n for n, each in enumerate(ran.residents) if each.member.facts.serial in doubt)
    after = rows.column("started") > float(away[1]) + 0.01
    assert after.sum() > 10 and set(rows.column("server")[after]) == {1.0 - gone}


def test_what_is_refused(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    with pytest.raises(SpecError, match="names no devices"):
        run(make(servers=[{"name": "s"}]), lab_settings, ledger)
    low = [{**each, "name": each["name"] + "2", "priority": -1} for each in CLASSES]
    with pytest.raises(Unsupported, match="a request of class a2 is one inference"):
        run(make(classes=[*CLASSES, *low], preemption="resume"), lab_settings, ledger)
    with pytest.raises(NoData, match="needs 7 devices"):
        run(make(servers=[{"name": "s", "count": 7, "devices": "true"}]), lab_settings, ledger)
    ledger.standing.hold(["local-cpu"], "somebody else")
    with pytest.raises(NoData, match="needs 1 device, and 0 are free"):
        run(make(servers=[{"name": "s", "devices": 'kind == "workstation"'}]), lab_settings, ledger)
    with (
        pytest.raises(DeviceBusy, match="is held"),
        held(site_of(lab_settings, ledger), user_by(COMMAND_LINE), ["local-cpu"], "n"),
    ):
        pass


def test_a_hold_is_renewed_as_long_as_its_block_lasts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "HOLD_S", 0.4)
    with held(site_of(Settings(), ledger), user_by(COMMAND_LINE), ["A", "B"], "n"):
        first_end = time.time() + holding.HOLD_S
        monkeypatch.setattr(holding, "HOLD_S", 60.0)  # what is renewed lasts, however busy this machine is
        found = ledger.standing.holds
        eventually(lambda: [hold.serial for hold in found() if (hold.until or 0.0) > first_end] == ["A", "B"])
    assert ledger.standing.holds() == []


def test_a_hold_of_a_run_that_was_killed_is_taken_over(ledger: Ledger) -> None:
    """One that the same user has for longer than a run says that it lives stays as it is."""
    me, now = getpass.getuser(), time.time()
    ledger.standing.hold(["A"], me, now + holding.HOLD_S, "killed")
    ledger.standing.hold(["B"], me, now + 3600.0, "lent")
    ledger.standing.hold(["C"], me, None, "mine")
    before = {hold.serial: hold.since for hold in ledger.standing.holds()}
    with held(site_of(Settings(), ledger), user_by(COMMAND_LINE), ["A", "B", "C"], "n"):
        assert [hold.note for hold in ledger.standing.holds()] == ["n", "lent", "mine"]
        assert {hold.serial: hold.since for hold in ledger.standing.holds()} == before
    assert [hold.serial for hold in ledger.standing.holds()] == ["B", "C"]


def test_a_hold_that_ended_by_itself_is_taken_again_and_a_released_one_is_not(ledger: Ledger) -> None:
    """It is so after a while in which the ledger was away."""
    serials = ["A", "B", "C", "D"]
    ledger.standing.hold(serials, "me", time.time() + 60.0)
    since = {hold.serial: hold.since for hold in ledger.standing.holds()}
    renewal = holding.Renewal(ledger, serials, "me", "n")
    ledger.standing.end_hold("A")
    ledger.standing.end_hold("D")
    ledger.standing.hold(["D"], "somebody else")
    renewal.renew()
    kept = {hold.serial: hold.since for hold in ledger.standing.holds() if hold.who == "me"}
    assert kept == {serial: since[serial] for serial in "BC"}
    for serial in "BC":
        ledger.standing.end_hold(serial)
    ledger.standing.hold(["C"], "somebody else")
    renewal.until = time.time() - 1.0
    renewal.renew()
    found = [(hold.serial, hold.who) for hold in ledger.standing.holds()]
    assert found == [("B", "me"), ("C", "somebody else"), ("D", "somebody else")]
    assert renewal.still_held() == ["B"] and renewal.until > time.time() + holding.HOLD_S / 2


def test_the_capacity_of_a_device(settings: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds 40 ms for each request, and only one waits: of a run of 0.4 s no more than 12 requests are served,
    and of 14 more than a tenth is dropped. Every run is kept, with a seed of its search."""
    for name, value in {"LEAST_RUNS": 2, "FIRST_STEPS": 1, "NEXT_STEPS": 1}.items():
        monkeypatch.setattr(capacity, name, value)
    spec = make(**SEARCHED)
    told: list[str] = []
    found, kept = serving.capacity_on_devices(spec, settings, ledger, told.append)
    assert "capacity: 25 requests/s" in told[1] and "of 0.4 s" in told[1]
    rate = found.rate_per_s
    assert rate.low is not None and rate.value is not None and rate.low <= rate.value < 37.5
    runs = [read_run(ledger, each) for each in kept]
    assert 5 <= len(runs) <= 8 and {each.kept.spec.seed for each in runs} == {1, 2}
    assert {each.row.name for each in runs} == {"live"} and ledger.standing.holds() == []
    assert [text for text in told if text.startswith("kept")] == [f"kept as {each}" for each in kept]
    with pytest.raises(SpecError, match="has no target"):
        serving.capacity_on_devices(make(), settings, ledger, told.append)


@pytest.mark.parametrize(
    ("ending", "error", "match"),
    [
        ({"given_up": True}, SpecError, "is not met even at"),
        ({"gone": ("local-cpu",)}, TransportLost, "phones went away at"),
    ],
    ids=["gives up", "goes away"],
)
def test_what_a_search_makes_of_a_run_that_ended_badly(
    settings: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, ending: dict[str, Any],
    error: type[Exception], match: str,
) -> None:  # fmt: skip
    """All that was served met the target; the run is kept, which is told before the search ends."""

    def ends_badly(*arguments: Any) -> LiveRun:
        return replace(run_live(*arguments), **ending)

    monkeypatch.setattr(serving, "run_live", ends_badly)
    told: list[str] = []
    with pytest.raises(error, match=match):
        serving.capacity_on_devices(make(**SEARCHED), settings, ledger, told.append)
    assert told[-1] == f"kept as {list_runs(ledger)[0]['id']}"


def test_a_run_that_gives_up_leaves_its_phones_to_the_next(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends while one request is served and others wait, with a queue for all and with one for each."""
    policies: list[dict[str, Any]] = [{"name": "fifo"}, {"name": "round_robin"}]
    two = [{**CPU[0], "count": 2}]
    with agents(settings, 2) as wires:
        for policy in policies:
            much = make(classes=[regular(100, "200 ms")], servers=two, policy=policy, duration="300 ms")
            with monkeypatch.context() as sooner:
                sooner.setattr(live_run, "DRAIN_S", 0.1)
                sooner.setattr(live_run, "LOOK_S", 0.05)
                ended = run_live(much, np.random.SeedSequence(1), wires)
            outcomes = ended.run.requests.column("outcome")
            assert ended.given_up and ended.gone == () and set(outcomes) == {DONE, LOST} and len(outcomes) == 29
            assert len(ended.run.doubts) == 1 and (outcomes == DONE).sum() < 15
            little = make(classes=[regular(10, "1 ms")], servers=two, policy=policy, duration="300 ms")
            after = run_live(little, np.random.SeedSequence(1), wires)
            assert set(after.run.requests.column("outcome")) == {DONE}
            assert after.run.doubts == () and not after.given_up


def test_a_phone_that_goes_away_while_it_is_idle_is_told(settings: Settings) -> None:
    """Nothing is lost: the other one serves."""
    with agents(settings, 2) as wires:
        wires[1].shut()
        spec = make(classes=[regular(10, "1 ms")], servers=[{**CPU[0], "count": 2}], duration="300 ms")
        live = run_live(spec, np.random.SeedSequence(1), wires)
    assert live.gone == ("local-1",) and not live.given_up and set(live.run.requests.column("outcome")) == {DONE}


def test_a_live_run_equals_its_simulation(settings: Settings) -> None:
    """Three real agents that hold drawn times, at a load of 0.6. The simulation gets the same sizes by its seed; told
    when the dispatcher came to each request and what each took beyond its size, it serves all at the same moments,
    however slow the machine is. (How far it is right without that, `benchmarks.farm.serving equal` measures.)"""
    spec = spec_of(3, 22.5, 5.0, {"kind": "gamma", "mean": "80 ms", "cv": 0.7})
    with agents(settings, 3) as wires:
        live = run_live(spec, np.random.SeedSequence(1), wires).run
    rows, drawn = live.requests, simulate(spec, np.random.SeedSequence(1)).requests
    assert live.doubts == () and np.array_equal(rows.column("intended"), drawn.column("intended"))
    beyond_s = rows.column("ended") - rows.column("started") - drawn.column("served_s")
    assert (beyond_s > 0).all() and (rows.column("served_s") >= drawn.column("served_s") - 1e-6).all()
    last_s = float(rows.column("admitted").max())  # after the end of arrivals, where the dispatcher came late
    simulation = _Simulation(spec.model_copy(update={"duration": last_s + 1.0}), np.random.SeedSequence(1))
    simulation._demand.moments[0] = iter(rows.column("admitted").tolist())
    travels = iter(beyond_s.tolist())
    for server in simulation._fleet.servers:
        server._travels = travels
    found = simulation.run().requests
    for name in ("started", "ended"):
        np.testing.assert_allclose(found.column(name), rows.column(name), atol=1e-6)
    assert (rows.column("started") > rows.column("admitted")).any(), "nobody waited: nothing was tried"
    waiting_s = rows.column("ended") - rows.column("admitted") - rows.column("served_s") - rows.column("travel_s")
    assert live.waited_s == pytest.approx(waiting_s.sum(), rel=0.02), "Little's law"


@pytest.mark.parametrize("preemption", ["resume", "restart"])
def test_a_request_is_interrupted_between_two_inferences(
    settings: Settings, ledger: Ledger, tmp_path: Path, preemption: str
) -> None:
    """The urgent one comes while the first of ten is held, is served next, and the others follow, or all ten again."""
    (tmp_path / "arrivals.csv").write_text("time_s,class\n0,long\n0.02,urgent\n0.03,net\n")
    trace = {"kind": "trace", "file": str(tmp_path / "arrivals.csv")}
    spec = make(
        servers=[{"name": "cpu", "devices": 'kind == "workstation"'}],
        classes=[
            {"name": "long", "arrivals": trace, "service": {"kind": "fixed", "mean": "500 ms"}, "inferences": 10},
            {"name": "urgent", "arrivals": trace, "service": {"kind": "fixed", "mean": "30 ms"}, "priority": 1},
            {"name": "net", "arrivals": trace, "infer": {"network": "lenet", "backend": "cpu"}, "inferences": 3},
        ],
        preemption=preemption,
        duration="100 ms",
    )
    ran = run(spec, settings, ledger)
    found, expected_s = ran.runs[0].run, ran.residents[0].expected_s["2x1"]
    started, ended, served_s = (found.requests.column(name) for name in ("started", "ended", "served_s"))
    assert set(found.requests.column("outcome")) == {DONE} and found.preemptions == 1
    assert expected_s > 0 and len(found.requests) == 3
    assert started[0] < started[1] < ended[1] < ended[0] <= started[2]
    least_s, again_s = 0.5, 0.05 if preemption == "restart" else 0.0
    assert served_s[0] >= least_s + again_s and served_s[1] >= 0.03 and served_s[2] > 0
    alone = simulate(spec.model_copy(update={"classes": spec.classes[:2]}), np.random.SeedSequence(1)).requests
    assert alone.column("served_s") == pytest.approx([least_s + again_s, 0.03])
    assert alone.column("started")[1] == pytest.approx(0.05), "when the inference under way is over"
    assert alone.column("ended") == pytest.approx([0.53 + again_s, 0.08])


def test_a_loop_that_is_late_forgets_no_request(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept from its work until after the last arrival, it serves all of them then."""
    turns, turn = iter([0.5]), _Live._turn

    def late(live: _Live) -> None:
        time.sleep(next(turns, 0.0))
        turn(live)

    monkeypatch.setattr(_Live, "_turn", late)
    spec = make(classes=[regular(45, "1 ms")], duration="100 ms")
    with agents(settings, 1) as wires:
        rows = run_live(spec, np.random.SeedSequence(1), wires).run.requests
    assert set(rows.column("outcome")) == {DONE} and len(rows) == 4 and (rows.column("admitted") > 0.4).all()


def test_a_language_model_answers_on_a_device(
    lab_settings: Settings, ledger: Ledger, tmp_path: Path, seed: int
) -> None:
    """Prompts and answers of drawn lengths: each has its tokens, and the first comes before the end; kept, and told."""
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, str(rng.choice(SPELLINGS)))
    service = {"kind": "answer", "prompt": [2, 9], "generate": [3, 12]}
    infer = {"language_model": str(model.path), "backend": "cpu", "axes": {"threads": 1}}
    arrivals = {"kind": "deterministic", "rate": 10}
    spec = make(servers=CPU, classes=[{"name": "chat", "arrivals": arrivals, "service": service, "infer": infer}])
    found = run(spec, lab_settings, ledger)
    (live,) = found.runs
    done = live.run.requests.done
    assert len(done) == len(live.run.requests) >= 25
    tokens = done.column("tokens")
    assert {*tokens} <= set(range(3, 13)) and len({*tokens}) > 3
    started, first, ended = (done.column(name) for name in ("started", "first", "ended"))
    assert (started < first).all() and (first < ended).all()
    told = data_of(read_run(ledger, found.keep(ledger)))["all"]
    assert told["tokens_per_s"]["value"] == pytest.approx(tokens.sum() / 3, rel=0.01)
    assert 0 < told["first_token_s"]["mean"]["value"] < told["sojourn_s"]["mean"]["value"]
    with pytest.raises(Unsupported, match="one sequence at a time"):
        run(spec.model_copy(update={"batch": Batch(size=2)}), lab_settings, ledger)
