"""Devices that a person holds get no work, finish what they have, and are back when the hold ends."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.answers import when_it_ends
from orchestrator.ledger import Hold, Ledger, Start
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.model.errors import DeviceBusy, SpecError, Unsupported
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.waiting import WaitKind
from orchestrator.model.people import Kind
from orchestrator.model.quantity import parse_moment
from orchestrator.model.record import Outcome
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, answered, send
from .sites import by, site


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0, retries=1) as opened:
        yield opened


@pytest.fixture
def host(farm: Settings, redis: Redis) -> Host:
    found = Host(farm, redis, [make.device("A"), make.device("B")])
    found.announce()
    return found


def submit(ledger: Ledger, serials: str, blocks: int = 1, **choice: object) -> None:
    experiment = make.many(blocks, **choice)  # type: ignore[arg-type]
    ledger.submit("e-1", experiment, expand(experiment, "e-1", [make.device(s) for s in serials]).jobs)


def test_what_waits_for_a_held_device_says_so_and_starts_when_the_hold_ends(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host
) -> None:
    submit(ledger, "A")
    scheduler = Scheduler(farm, ledger, redis)
    ledger.standing.hold(["A"], "anna", time.time() + 3600, "new battery")
    report = scheduler.tick()
    (reason,) = report.waiting.values()
    clock = time.strftime("%H:%M", time.localtime(ledger.standing.holds()[0].until))
    assert report.placed == () and reason.kind is WaitKind.HELD
    assert reason.text.startswith(f"held by anna until {clock}: new battery")
    ledger.standing.hold(["A"], "anna", time.time() + 0.2)  # the same person, another time
    assert eventually(lambda: [a.serial for a in scheduler.tick().placed]) == ["A"]


@pytest.mark.parametrize(
    ("who", "alone", "lets_in"), [("me", False, True), ("me", True, False), ("anna", False, False)]
)
def test_a_hold_lets_its_holders_experiments_through(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, monkeypatch: pytest.MonkeyPatch,
    who: str, alone: bool, lets_in: bool,
) -> None:  # fmt: skip
    monkeypatch.setenv("LOGNAME", "me")
    submit(ledger, "A", blocks=2)
    scheduler = Scheduler(farm, ledger, redis)
    ledger.standing.hold(["A"], who, alone=alone)
    report = scheduler.tick()
    assert [a.serial for a in report.placed] == ["A"] * lets_in
    if lets_in:  # and the next one after it
        host.claim()
        host.finish()
        assert [a.serial for a in scheduler.tick().placed] == ["A"]
    else:
        assert {reason.kind for reason in report.waiting.values()} == {WaitKind.HELD}


def test_nothing_begins_on_a_device_that_is_held_while_a_turn_goes_on(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(ledger, "AB")
    begin = ledger.begin_attempts

    def late(starts: Sequence[Start], ttl_s: float) -> list[Assignment]:
        assert {start.serial for start in starts} == {"A", "B"}  # the turn knew nothing of it
        ledger.standing.hold(["A"], "anna")
        return begin(starts, ttl_s)

    monkeypatch.setattr(ledger, "begin_attempts", late)
    assert [a.serial for a in Scheduler(farm, ledger, redis).tick().placed] == ["B"]
    assert [row.serial for row in ledger.running()] == ["B"] and host.leases.all().keys() == {"B"}


def test_what_runs_on_a_held_device_is_finished(farm: Settings, redis: Redis, ledger: Ledger, host: Host) -> None:
    submit(ledger, "A", blocks=2)
    scheduler = Scheduler(farm, ledger, redis)
    scheduler.tick()
    host.claim()
    done = acts.devices.hold(site(farm, ledger, redis), by("anna"), ["A"])
    assert [each.serial for each in done.running] == ["A"] and done.handed_back == []
    scheduler.tick()
    host.finish()
    scheduler.tick()
    assert ledger.counts() == {"ok": 1, "waiting": 1}


def test_what_is_handed_back_goes_elsewhere_and_pays_nothing(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host
) -> None:
    """A job that paid would be over with a budget of one loss."""
    submit(ledger, "AB", count="any")
    scheduler = Scheduler(farm, ledger, redis)
    (first,) = scheduler.tick().placed
    host.claim()
    done = acts.devices.hold(site(farm, ledger, redis), by("anna"), [first.serial], now=True)
    assert [each.serial for each in done.handed_back] == [first.serial] and done.running == []
    (second,) = scheduler.tick().placed
    assert {first.serial, second.serial} == {"A", "B"} and second.attempt == 2
    assert host.leases.standing(first.serial, first.token, host.worker) == "ended"
    send(redis, answered(first, Outcome.LOST, "lease_lost"))  # as its session finds it
    scheduler.tick()
    assert ledger.counts() == {"placed": 1}
    assert ledger.standing.bars().resting == {} and ledger.standing.quarantined() == []


def test_what_is_reserved_is_told_before_and_kept_afterwards(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host
) -> None:
    """A block that was begun before is finished; then the phone is the project's, and everybody else is told so."""
    ledger.people.add_project("vision", "")
    scheduler, where, begins = Scheduler(farm, ledger, redis), site(farm, ledger, redis), time.time() + 3600
    (later,) = acts.reserving.reserve(where, by("anna"), ["A"], begins, begins + 3600, "vision").reservations
    with pytest.raises(DeviceBusy, match="A is reserved for vision from") as refused:
        acts.devices.hold(where, by("bob"), ["A"])
    assert f"`farm devices unreserve {later.id}`" in str(refused.value)
    acts.devices.hold(where, by("me"), ["A"], begins - 60)  # over before it begins
    acts.devices.release(where, by("me"), "A")
    assert ledger.standing.reservations() == [later]
    submit(ledger, "A", blocks=2)
    assert [a.serial for a in scheduler.tick().placed] == ["A"], "nothing is known of its duration"
    host.claim()
    acts.reserving.unreserve(where, by("anna"), later.id)
    acts.reserving.reserve(where, by("anna"), ["A"], None, begins, "vision", "demo")
    host.finish()
    (reason,) = eventually(lambda: [each for each in scheduler.tick().waiting.values() if each.kind is WaitKind.HELD])
    clock = time.strftime("%H:%M", time.localtime(begins))
    assert reason.text.startswith(f"reserved for vision until {clock}: demo")
    jobs = expand(make.many(1), "e-2", [make.device("A")]).jobs
    ledger.submit("e-2", make.many(1), jobs, project="vision")
    assert [a.job.experiment_id for a in eventually(lambda: scheduler.tick().placed)] == ["e-2"]


def test_what_a_group_has_is_for_who_belongs_to_it_at_that_moment(
    farm: Settings, redis: Redis, ledger: Ledger, host: Host, seed: int
) -> None:
    where, chance, people = site(farm, ledger, redis), random.Random(seed), ["anna", "bob", "carla"]
    for each in people:
        ledger.people.add(each, Kind.PERSON)
    acts.groups.add_group(where, by("me"), "cameras")
    with pytest.raises(SpecError, match="cameras has no device for good"):
        acts.reserving.reserve(where, by("me"), ["A"], name="cameras")
    acts.reserving.reserve(where, by("me"), ["A"], until=time.time() + 3600, name="cameras")
    scheduler, inside = Scheduler(farm, ledger, redis), set[str]()
    for number, who in enumerate(chance.choices(people, k=6)):
        change = chance.choice([acts.groups.join_group, acts.groups.leave_group])
        change(where, by("me"), "cameras", [who])
        inside = inside | {who} if change is acts.groups.join_group else inside - {who}
        asks = chance.choice(people)
        jobs = expand(make.many(1), f"of-{number}", [make.device("A")]).jobs
        ledger.submit(f"of-{number}", make.many(1), jobs, by=asks)
        turn = scheduler.tick()
        assert [each.job.experiment_id for each in turn.placed] == [f"of-{number}"] * (asks in inside)
        told = {each.text.partition(" until")[0] for each in turn.waiting.values()}
        assert told == ({"reserved for cameras"} if asks not in inside else set())
        ledger.cancel(f"of-{number}")
        host.claim()
        host.finish()
        scheduler.tick()


def test_whatever_is_reserved_a_device_has_one_holder_at_a_time(ledger: Ledger, seed: int) -> None:
    """A device is held beside its pool, which is of one project."""
    chance, now = random.Random(seed), time.time()
    for _ in range(80):
        serials, project = chance.sample("ABC", chance.randint(1, 2)), chance.choice(["", "vision", "speech"])
        begins = chance.choice([0.0, now + chance.uniform(10, 900)])
        until = chance.choice([None, max(begins, now) + chance.uniform(10, 300)])
        like = Hold("", chance.choice(["anna", "bob"]), now, until, "", project=project, begins=begins)
        before = ledger.standing.reservations()
        others = ledger.standing.reserve(serials, like)
        assert not others or ledger.standing.reservations() == before, "all or none"
        if chance.random() < 0.3 and before:
            ledger.standing.end_reservation(chance.choice(before).id)
    found = ledger.standing.reservations()
    assert len(found) > 3
    for at in (now + chance.uniform(1, 1200) for _ in range(200)):
        for serial in "ABC":
            here = [e for e in found if e.serial == serial and e.begins <= at and (e.until is None or e.until > at)]
            assert len({each.project for each in here if each.is_pool}) <= 1
            assert len({(each.project, each.project or each.who) for each in here if not each.is_pool}) <= 1


def test_a_pool_and_a_limit_are_of_one_project(farm: Settings, redis: Redis, ledger: Ledger, host: Host) -> None:
    where = site(farm, ledger, redis)
    acts.projects.add_project(where, by("me"), "vision", most_waiting=7)
    acts.reserving.reserve(where, by("me"), ["A"], name="vision")
    mine, theirs = (
        acts.submit(where, by("me"), make.many(3, name=name), Path(), project=project)
        for name, project in (("mine", "vision"), ("theirs", "common"))
    )
    assert mine.devices == {"A", "B"} and theirs.devices == {"B"}
    with pytest.raises(SpecError, match="has 6 jobs that wait, and 2 more would be over its 7"):
        acts.submit(where, by("me"), make.many(1, name="third"), Path(), project="vision")
    acts.projects.set_project(where, by("me"), "vision", most_waiting=0)
    assert acts.submit(where, by("me"), make.many(1, name="third"), Path(), project="vision").did
    with pytest.raises(Unsupported, match="neither held"):
        acts.devices.release(where, by("me"), "A")
    scheduler = Scheduler(farm, ledger, redis)
    assert {a.serial for a in scheduler.tick().placed} == {"A", "B"}
    host.claim()
    host.finish()
    scheduler.tick()
    seen = devices_for_work(host.inventory.devices(), host.inventory.hosts(), ledger)
    assert {each.serial: str(each.state.health) for each in seen} == {"A": "held", "B": "ready"}
    assert not when_it_ends(ledger, mine.experiment_id, seen).unknown, "its pool is free for it"


def test_times_of_day_are_the_next_ones() -> None:
    noon = time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))
    assert parse_moment("17:00", noon) == noon + 5 * 3600
    assert parse_moment("9:30", noon) == noon + 21.5 * 3600
    assert parse_moment("2026-03-05 08:00", noon) == noon + 20 * 3600
    for wrong in ("25:00", "tomorrow", "2026-13-01 08:00", "", True):
        with pytest.raises(ValueError, match="expected a time"):
            parse_moment(wrong, noon)
