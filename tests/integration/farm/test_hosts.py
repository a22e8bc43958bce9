"""`farm host`: two hosts in the test's process, a real Redis, ledger and scheduler."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest
from redis import Redis

from orchestrator.ledger import Ledger
from orchestrator.model.live.since import OLDEST_PROTOCOL, PROTOCOL, SINCE, VALUES, said
from orchestrator.model.live.waiting import WaitReason
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import Host
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .conftest import Cli


class Lab:
    """Hosts `one` (device A) and `two` (device B), and a scheduler that turns when it is told."""

    def __init__(self, settings: Settings, redis: Redis, ledger: Ledger) -> None:
        self.ledger, self.scheduler = ledger, Scheduler(settings, ledger, redis)
        self.one, self.two = (
            Host(settings.model_copy(update={"host": name}), redis, [make.device(serial, host=name)])
            for name, serial in (("one", "A"), ("two", "B"))
        )
        self.announce()

    def announce(self) -> None:
        self.one.announce()
        self.two.announce()

    def submit(self, blocks: int) -> None:
        """Jobs that either device may run."""
        experiment = make.many(blocks, count="any")
        jobs = expand(experiment, "e-1", [*self.one.devices, *self.two.devices]).jobs
        self.ledger.submit("e-1", experiment, jobs)

    def turn(self) -> set[str]:
        """One turn of the scheduler, and of both hosts; the devices that got work."""
        self.announce()
        placed = {assignment.serial for assignment in self.scheduler.tick().placed}
        for host in (self.one, self.two):
            host.claim()
        self.announce()
        return placed

    def reasons(self) -> list[WaitReason]:
        """Return the reasons why jobs wait, as the scheduler found out lately."""
        return [*self.scheduler.tick().waiting.values()]

    def records(self) -> list[tuple[str, int]]:
        return [(record.job_id, record.attempt) for record in self.ledger.records("e-1")]


@pytest.fixture
def lab(settings: Settings, redis: Redis) -> Iterator[Lab]:
    with Ledger(settings.ledger, rest_s=0.0) as ledger:
        yield Lab(settings, redis, ledger)


def test_a_host_that_does_not_fit_gets_no_work_and_says_why(lab: Lab, cli: Cli) -> None:
    lab.submit(2)
    lab.two.protocol = PROTOCOL + 1
    assert lab.turn() == {"A"}
    lab.two.protocol = 0
    assert lab.turn() == set()
    known = PROTOCOL if OLDEST_PROTOCOL == PROTOCOL else f"{OLDEST_PROTOCOL} to {PROTOCOL}"
    why = f"worker protocol 0, this farm works with {known}: update pocketfarm on two"
    eventually(lambda: any(each.kind == "busy" and why in each.text for each in lab.reasons()))
    unfit = {each["facts"]["serial"]: each["state"] for each in json.loads(cli("devices", "--json")[1])}["B"]
    assert unfit["health"] == "unfit" and why in unfit["reason"]
    assert why in cli("status")[2] and why in cli("host", "list")[1]
    lab.two.protocol = PROTOCOL
    assert lab.turn() == {"B"}


SAID: dict[str, dict[str, object]] = {
    "conditions.stop_temp": {"conditions": {"stop_temp": 70.0}},
    "engine.models": {"matrix": {"engine": "mnn"}, "engine": {"models": {"mnn": "x.mnn"}}},
    "engine.builds": {"engine": {"builds": {"mnn": {"arm64-v8a": "0" * 64}}}},
    "matrix.ENGINE.AXIS": {"sides": {"candidate": {"axes": {"mnn.power": "low"}}}},
    "sides.engine": {"sides": {"candidate": {"engine": {"mnn": "builds/next"}}}},
    "workload.model": {"workload": {"model": "x.mnn"}, "matrix": {"engine": "mnn"}},
    "workload.language_model": {"workload": {"language_model": "x.gguf"}},
    "workload.batch": {"workload": {"language_model": "x.gguf", "batch": 4}},
    **{f"{at}: {value}": {at.split(".")[0]: {at.split(".")[1]: value}} for at, value in VALUES},
}


def test_a_job_waits_for_a_host_that_knows_what_it_says(lab: Lab, seed: int) -> None:
    """An older worker could not read the assignment, time and again, or would run something else."""
    chance = random.Random(seed)
    assert SAID.keys() == SINCE.keys()
    word, (since, _) = chance.choice(sorted(SINCE.items()))
    lab.two.protocol = chance.randrange(OLDEST_PROTOCOL, since)
    experiment = make.many(1, **{"workload": {"network": "squeezenet_v1_0"}, **SAID[word]})
    assert said(experiment) >= {word}
    jobs = expand(make.many(1), "e-1", [*lab.one.devices, *lab.two.devices]).jobs
    lab.ledger.submit("e-1", experiment, jobs)
    assert lab.turn() == {"A"}
    why = f"the worker of host two does not know {word}: update pocketfarm on two"
    eventually(lambda: any(why in each.text for each in lab.reasons()))
    lab.two.protocol = since
    assert lab.turn() == {"B"}


def test_hosts_are_upgraded_one_by_one_without_losing_a_job(lab: Lab, redis: Redis, cli: Cli) -> None:
    """Drain, wait until nothing is left, restart its worker as another process, resume; then the other."""
    lab.submit(6)
    assert lab.turn() == {"A", "B"}
    for host in (lab.one, lab.two):
        name = host.farm.host
        other = lab.two if host is lab.one else lab.one
        assert json.loads(cli("host", "drain", name, "--json")[1])["running"] == 1
        other.finish()
        assert lab.turn() == {device.serial for device in other.devices}, "the drained one got nothing new"
        listed = {each["name"]: each for each in json.loads(cli("host", "list", "--json")[1])}
        assert listed[name]["state"] == "draining" and listed[other.farm.host]["state"] == "ready"
        host.finish()
        redis.delete(*redis.keys("farm:device*"))  # what was said of it is not Redis' alone
        lab.turn()
        assert {e["name"]: e["state"] for e in json.loads(cli("host", "list", "--json")[1])}[name] == "drained"
        host.worker = f"{name}:upgraded"
        assert "is ready" in cli("host", "resume", name)[2]
        assert lab.turn() == {device.serial for device in host.devices}
    for _ in range(6):
        lab.one.finish()
        lab.two.finish()
        lab.turn()
    assert sorted(attempt for _, attempt in lab.records()) == [1] * 6, "each job once, none lost"


def test_a_host_with_work_is_removed_by_force_alone(lab: Lab, cli: Cli) -> None:
    lab.submit(2)
    assert lab.turn() == {"A", "B"}
    code, said, _ = cli("host", "remove", "two", "--json")
    assert code == 1 and "still runs 1 session: squeezenet_v1_0" in json.loads(said)["error"]["message"]
    assert lab.ledger.standing.hosts() == [], "nothing is said of it"
    assert json.loads(cli("host", "remove", "two", "--force", "--json")[1])["handed_back"] == 1
    stopped = next(iter(lab.two.running.values()))
    assert lab.two.leases.standing("B", stopped.token, lab.two.worker) == "ended"
    lab.two.running.clear()
    assert lab.turn() == set(), "a removed host gets nothing, though it announces itself"
    for _ in range(3):
        lab.one.finish()
        lab.turn()
    assert sorted(attempt for _, attempt in lab.records()) == [1, 2]
    assert "no host 'three'" in cli("host", "drain", "three")[2]
