"""The owner of a phone, whatever hosts say, Redis forgets or schedulers begin anew, in drawn histories of hosts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import HostState, Ledger
from orchestrator.ledger.incoming import dead_records
from orchestrator.model.device import Health
from orchestrator.model.live.announcement import HostAnnouncement, Progress
from orchestrator.scheduling.intake import Intake
from orchestrator.scheduling.live_view import LiveView
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

LATE_S = keys.ANNOUNCE_TTL_S + 1.0


class World:
    """Hosts `lab` and `evil`, each with a secret of its own, and `here`, the farm's own machine."""

    def __init__(self, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.redis, self.ledger, self.inventory, self.now = redis, ledger, Inventory(redis), 0.0
        monkeypatch.setattr("orchestrator.scheduling.owners.time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr("orchestrator.scheduling.seldom.Seldom.due", property(lambda _: self.looks_at_all))
        self.looks_at_all = True
        for name in ("lab", "evil"):
            ledger.standing.admit_host(name, "0" * 64)
        self.live = LiveView(redis, ledger)

    def say(self, host: str, *, has: bool = True, health: Health = Health.READY) -> None:
        """Announce the host and, where it has one, the phone."""
        self.inventory.announce_host(HostAnnouncement(host=host, worker="w", pid=1))
        self.redis.delete(keys.device(host, "A"))
        if has:
            Inventory(self.redis).announce_device(make.device("A", host=host, health=health))

    def silence(self, host: str) -> None:
        self.redis.delete(keys.host(host), keys.device(host, "A"))

    def owner(self) -> str:
        """Return whose it is for the scheduler; every view says the same, where Redis has what was decided."""
        self.live.refresh(self.inventory.hosts())
        found = self.live.devices.get("A")
        shown = {device.serial: device for device in self.inventory.devices()}.get("A")
        if not self.redis.hexists(keys.OWNERS, "A"):
            pass
        elif found is not None:
            assert shown is not None and shown.facts.host == found.facts.host
        elif shown is not None:
            assert "device conflict: it is host" in (shown.state.reason or ""), "a phone that no work comes to says why"
        return found.facts.host if found else ""

    def later(self, seconds: float = LATE_S) -> None:
        self.owner()
        self.now += seconds


@pytest.fixture
def world(redis: Redis, farm: Settings, monkeypatch: pytest.MonkeyPatch) -> object:
    with Ledger(farm.ledger) as ledger:
        yield World(redis, ledger, monkeypatch)


def test_a_phone_that_was_the_lab_s_is_nobody_else_s_whatever_is_lost(world: World, seed: int) -> None:
    """The lab is up or silent, Redis is wiped, keys of ownership are lost, schedulers begin anew, hours pass."""
    chance = random.Random(seed)
    steps: dict[str, Callable[[], object]] = {
        "lab": lambda: world.say("lab"),
        "evil": lambda: world.say("evil"),
        "silence": lambda: world.silence("lab"),
        "evil silence": lambda: world.silence("evil"),
        "wipe": world.redis.flushall,
        "lost": lambda: world.redis.delete(keys.OWNERS),
        "another scheduler": lambda: setattr(world, "live", LiveView(world.redis, world.ledger)),
        "looks": lambda: setattr(world, "looks_at_all", chance.random() < 0.5),
        "a moment": lambda: world.later(1.0),
        "long": lambda: world.later(chance.uniform(1.0, 1e5)),
    }
    world.say("lab")
    world.say("evil")
    assert world.owner() == "lab", "both were there before the first look: it was added first"
    told = []
    for _ in range(300):
        told.append(chance.choice(list(steps)))
        steps[told[-1]]()
        assert world.owner() in ("", "lab"), (seed, told[-20:])
    world.say("lab")
    world.later()
    assert world.owner() == "lab", (seed, told[-20:])


@pytest.mark.parametrize("how", ["it says gone", "it does not list it", "drained", "removed", "the farm's own machine"])
def test_a_phone_moves(world: World, how: str) -> None:
    other = "here" if how == "the farm's own machine" else "evil"
    world.say("lab")
    assert world.owner() == "lab"
    world.say(other)
    world.silence("lab")
    if how == "it says gone":
        world.say("lab", health=Health.OFFLINE)
        assert world.owner() == other
    world.later()
    if how == "it does not list it":
        world.say("lab", has=False)
    if how in ("drained", "removed"):
        assert world.owner() == "", "a silent host keeps it"
        world.ledger.standing.say_of_host("lab", HostState(how.replace("drained", "draining")))
    assert world.owner() == other
    world.say("lab")
    assert world.owner() == other, "who has it keeps it"
    world.live = LiveView(world.redis, world.ledger)
    assert world.owner() == other


def test_what_no_host_has_any_more_is_forgotten(world: World) -> None:
    """A host that names others each day fills no table."""
    for serial in range(20):
        world.inventory.announce_host(HostAnnouncement(host="evil", worker="w", pid=1))
        world.inventory.announce_device(make.device(f"x{serial}", host="evil"))
        world.owner()
        world.redis.delete(keys.device("evil", f"x{serial}"))
        world.later()
    world.owner()
    assert len(world.ledger.standing.owners()) <= 1


def test_a_host_is_believed_of_its_own_attempts_and_phones_alone(
    redis: Redis, farm: Settings, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Drawn records and sessions of host `evil`, each partly of what is its own, another's or nobody's, too large, or
    under an older token. What is wrong in any part counts for nothing, is set aside, and takes no more room than its
    share."""
    chance, jobs = random.Random(seed), [make.job(block=block, candidates=("A", "B")) for block in range(3)]
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(3), jobs)
        began = [ledger.begin_attempt(jobs[n].job_id, serial, host, 60.0) for n, (serial, host) in enumerate(
            (("A", "lab"), ("B", "evil"), ("B", "evil")))]  # fmt: skip
        theirs, own, second = [
            make.record(each.job, attempt=1, token=each.token, serial=each.serial) for each in began if each is not None
        ]
        unknown = {"job_id": "0" * 16, "cell_id": "no", "block": 9, "token": own.token - 2, "attempt": 2,
                   "experiment_id": "no-1"}  # fmt: skip
        for number in range(80):
            said, right = own.model_dump(mode="json"), second.model_dump(mode="json") if number == 40 else None
            for field in chance.sample([*unknown, "device"], chance.randint(1, 3)):
                another = theirs.model_dump(mode="json")[field]
                said[field] = chance.choice([another, unknown.get(field, {"serial": "x"})])
            if said == own.model_dump(mode="json"):  # what is another's and the same: the experiment, the cell
                said["block"] = 2
            said["evidence"] = ["x" * chance.choice([1, 400])] * 40
            RecordStream(redis, "evil").send(json.dumps(right or said).encode(), f"{said['job_id']}:{number}")
            taken = Intake(redis, ledger).drain()
            assert set(taken) == {"new"} if right else set(taken) <= {"dead", "forged"}, (seed, said, taken)
        assert {each.host for each in ledger.dead.every()} == {"evil"}
        assert ledger.counts("first-1") == {"placed": 1, "ok": 1, "failed": 1}, "the lab's goes on, its own is lost"
        monkeypatch.setattr(dead_records, "HOST_BYTES", sum(each.size for each in ledger.dead.every()))
        RecordStream(redis, "evil").send(b"more", "more:1")
        RecordStream(redis, "lab").send(theirs.model_dump_json().encode(), "j:1")
        intake = Intake(redis, ledger)
        assert intake.drain() == {"new": 1} and redis.xlen(keys.records("evil")) == 1, "what has no room waits"
        ledger.dead.drop([each.id for each in ledger.dead.every()])
        assert Intake(redis, ledger).drain() == {"dead": 1}
        assert sorted(r.device.serial for r in ledger.records("first-1")) == ["A", "B"]
    inventory = Inventory(redis)
    for host in ("lab", "evil"):
        inventory.announce_host(HostAnnouncement(host=host, worker="w", pid=1))
    redis.hset(keys.OWNERS, mapping={"A": "lab", "B": "evil"})
    for _ in range(40):
        where, of = chance.choice("ABC"), chance.choice("ABC")
        session = Progress(serial=of, job_id="j", attempt=1, token=1, label="", phase="running", since=1.0)
        redis.zadd(keys.lives("evil"), {where: 0})
        redis.set(keys.live("evil", where), session.model_dump_json())
        shown = {each.serial for each in inventory.progress()}
        assert shown == ({of} if where == of != "A" else set()), (seed, where, of)
        redis.delete(keys.live("evil", where))
