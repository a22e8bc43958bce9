"""Devices that a person holds get no work, finish what they have, and are back when the hold ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.ledger import Ledger, Start
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.waiting import WaitKind
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
    """With a budget of one loss a job that paid would be over."""
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


def test_times_of_day_are_the_next_ones() -> None:
    noon = time.mktime((2026, 3, 4, 12, 0, 0, 0, 0, -1))
    assert parse_moment("17:00", noon) == noon + 5 * 3600
    assert parse_moment("9:30", noon) == noon + 21.5 * 3600
    assert parse_moment("2026-03-05 08:00", noon) == noon + 20 * 3600
    for wrong in ("25:00", "tomorrow", "2026-13-01 08:00", "", True):
        with pytest.raises(ValueError, match="expected a time"):
            parse_moment(wrong, noon)
