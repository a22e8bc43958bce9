"""Redis lost a part of its keys, or has something else there: every phone works again, and no scheduler ends."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import chain, combinations

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.scheduling import reconcile
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .hosts import Host, ok, send

TTL_S = 3.0
LIMIT_S = 60.0
"""The time that a busy machine may take; at rest it is a lease's life and a moment."""
OTHERS: dict[str, Callable[[Redis, str], object]] = {
    "hash": lambda redis, key: redis.hset(key, "x", "y"),
    "string": lambda redis, key: redis.set(key, "nonsense"),
    "set": lambda redis, key: redis.sadd(key, "nocolon", ":", "x:"),
    "zset": lambda redis, key: redis.zadd(key, {"nocolon": 0}),
    "list": lambda redis, key: redis.lpush(key, "x"),
    "stream": lambda redis, key: redis.xadd(key, {"x": "y"}),
}


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0) as opened:
        yield opened


class Working(Host):
    """Renews what it holds, as a worker does, and stops where its lease is over; a phone of its own is at work once."""

    def turn(self, *, is_done: bool = True) -> None:
        self.announce()
        self.claim()
        for serial, assignment in list(self.running.items()):
            standing = self.leases.renew(serial, assignment.token, self.worker, TTL_S)
            if standing in ("ended", "superseded"):
                del self.running[serial]
            elif is_done:
                send(self.redis, ok(assignment), self.farm.host)
                self.leases.release(serial, assignment.token)
                del self.running[serial]

    def claim(self) -> list[Assignment]:
        try:
            return super().claim()
        except ServiceDown:
            return []


def parts_of(serial: str) -> list[str]:
    return [keys.lease(serial), keys.held("lab", serial), keys.assignment("lab", serial), keys.LEASED]


def lose(redis: Redis, key: str, serial: str) -> None:
    """Lose the key; of the index it is the phone's own name."""
    redis.srem(key, f"lab:{serial}") if key == keys.LEASED else redis.delete(key)


def spoil(redis: Redis, key: str, chance: random.Random) -> None:
    now = redis.type(key)
    redis.delete(key)
    OTHERS[chance.choice([name for name in OTHERS if name != now])](redis, key)


def submit(ledger: Ledger, host: Host, blocks: int) -> None:
    experiment = make.many(blocks)
    assert ledger.submit("e-1", experiment, expand(experiment, "e-1", host.devices).jobs)


def until_done(scheduler: Scheduler, ledger: Ledger, host: Working, everywhere: Callable[[], None]) -> None:
    """Every job has its record, whatever is read meanwhile."""
    end = time.monotonic() + LIMIT_S
    while ledger.counts("e-1").keys() - {"ok"}:
        assert time.monotonic() < end, (ledger.counts("e-1"), [(r.serial, r.token, r.state) for r in ledger.running()])
        turned(scheduler)
        try:
            host.turn()
            everywhere()
        except ServiceDown:  # as an outage is: it asks again
            continue
        time.sleep(0.01)


def turned(scheduler: Scheduler) -> None:
    try:
        scheduler.tick()
    except ServiceDown:  # as `run` does: the next turn
        return


def test_whatever_of_a_lease_is_lost_its_phone_works_again(
    farm: Settings, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A phone for each subset of what describes its lease, lost or of another type, claimed or not, all at once."""
    monkeypatch.setattr(reconcile, "MISSING_GRACE_S", 1.0)
    farm, chance = farm.model_copy(update={"lease_ttl_s": TTL_S, "sessions": 100}), random.Random(seed)
    subsets = list(chain.from_iterable(combinations(range(4), count) for count in range(1, 5)))
    cases = [(which, kind, claimed) for which in subsets for kind in ("lost", "type") for claimed in (True, False)]
    cases = [case for case in cases if not (case[1] == "type" and 3 in case[0])]  # the index is all phones'
    serials = [f"P{number}" for number in range(len(cases))]
    host = Working(farm, redis, [make.device(serial) for serial in serials])
    host.announce()
    submit(ledger, host, 2)
    scheduler = Scheduler(farm, ledger, redis)
    assert len(scheduler.tick().placed) == len(cases)
    for serial, (_, _, claimed) in zip(serials, cases, strict=True):
        if claimed:
            taken = host.leases.claim(serial, Leases(redis).all()[serial].token, host.worker)
            assert taken is not None
            host.running[serial] = taken
    host.announce()
    scheduler.tick()
    for serial, (which, kind, _) in zip(serials, cases, strict=True):
        for key in [parts_of(serial)[index] for index in which]:
            lose(redis, key, serial) if kind == "lost" else spoil(redis, key, chance)
    until_done(scheduler, ledger, host, lambda: None)
    for _ in range(3):
        turned(scheduler)
    assert Leases(redis).all() == {} and ledger.running() == []


def test_whatever_is_lost_or_of_another_type_ends_no_scheduler_and_no_view(
    farm: Settings, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(reconcile, "MISSING_GRACE_S", 1.0)
    farm, chance = farm.model_copy(update={"lease_ttl_s": TTL_S, "sessions": 100}), random.Random(seed)
    host = Working(farm, redis, [make.device(serial) for serial in "ABC"])
    host.announce()
    submit(ledger, host, 12)
    scheduler, inventory = Scheduler(farm, ledger, redis), Inventory(redis)

    def everywhere() -> None:
        inventory.devices(), inventory.hosts(), inventory.progress(), inventory.waiting(), Leases(redis).all()
        for serial in "ABC":
            RecordStream(redis, "lab").waiting(), host.leases.holder(serial)

    for _ in range(12):
        scheduler_turns = chance.randrange(4)
        for number in range(scheduler_turns):
            turned(scheduler)
            try:
                host.turn(is_done=number % 2 == 1)
            except ServiceDown:
                continue
        known = sorted({*redis.keys("farm:*"), keys.LEASED, keys.OWNERS, keys.HOSTS, keys.SENDERS, keys.EPOCH})
        for key in chance.sample(known, chance.randrange(1, len(known))):
            redis.delete(key) if chance.random() < 0.5 else spoil(redis, key, chance)
        if chance.random() < 0.3:
            scheduler = Scheduler(farm, ledger, redis)
    until_done(scheduler, ledger, host, everywhere)
    wrong = [key for key in redis.keys("farm:*") if redis.type(key) != keys.KINDS[key.split(":")[1]].type]
    assert not wrong


def test_no_time_that_a_host_announces_has_yet_to_come(redis: Redis, seed: int) -> None:
    """Drawn: 1970, 2100, none at all. What is shown and what decides has times at which something may have been."""
    chance, inventory, now = random.Random(seed), Inventory(redis), time.time()
    honest = {"seen_at": now - 3.0, "ready_at": now + 600.0, "at": now - 5.0, "since": now - 60.0}
    for _ in range(30):
        told = {
            name: chance.choice([at, at, -1e300, 1e300, float("inf"), float("nan"), now + 4e9])
            for name, at in honest.items()
        }
        reading = {"at": told["at"]}
        state = {"health": "ready", "seen_at": told["seen_at"], "ready_at": told["ready_at"], "reading": reading}
        device = make.device("A").model_dump(mode="json") | {"state": state}
        host = {"host": "lab", "worker": "w", "pid": 1, "seen_at": told["seen_at"]}
        session = {"serial": "A", "job_id": "j", "attempt": 1, "token": 1, "label": "", "phase": "running"}
        session |= {"since": told["since"], "reading": reading}
        inventory.announce_host(HostAnnouncement(host="lab", worker="w", pid=1))
        for key, said in (("device", device), ("live", session)):
            redis.set(f"farm:{key}:lab:A", json.dumps(said))
            redis.zadd(f"farm:{'devices' if key == 'device' else 'lives'}:lab", {"A": 0})
        redis.set(keys.host("lab"), json.dumps(host))
        (found,), (its,), (shown,) = inventory.devices(), inventory.hosts(), inventory.progress()
        assert found.state.reading is not None and found.state.ready_at is not None and shown.reading is not None
        read = [("seen_at", found.state.seen_at), ("seen_at", its.seen_at), ("ready_at", found.state.ready_at)]
        read += [("at", found.state.reading.at), ("at", shown.reading.at), ("since", shown.since)]
        for name, at in read:
            assert 0.0 <= at <= time.time() + (86_400.0 if name == "ready_at" else 0.0), (name, told[name], at)
            assert at == told[name] or told[name] != honest[name], name
