"""Redis lost a part of its keys, or has something else there: every phone works again, and no scheduler ends."""

from __future__ import annotations

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
from orchestrator.model.live.lease import Assignment
from orchestrator.scheduling import reconcile
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .hosts import Host, ok, send

TTL_S = 3.0
LIMIT_S = 60.0
"""What a busy machine may take; at rest it is a lease's life and a moment."""
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
    """Of the index it is the phone's own name."""
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
