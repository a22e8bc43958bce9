"""Periodic work: by two beats, by one that slept, by none; and what Redis forgets of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import celery.beat
import pytest
from redis import Redis

from farm.tasks import beat
from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.tasks import consumer
from orchestrator.coordination.tasks.periodic import ADMIT, LATE_S, NIGHTS, SWEEP, Periodic
from orchestrator.coordination.tasks.queue import make_app
from orchestrator.ledger import Ledger
from orchestrator.model.base import Model
from orchestrator.nightly import Night, Suite, Told
from orchestrator.nightly.keeper import Keeper
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.system.config import Settings
from tests.waiting import eventually

HOUR_S = 3600.0


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with Ledger(settings.ledger) as opened:
        yield opened


@pytest.fixture
def periodic(redis: Redis) -> Periodic:
    return Periodic(redis)


def suite_of(name: str) -> Model:
    return Suite.model_validate({
        "name": name, "experiments": ["e.yaml"], "sides": {"candidate": {"axes": {"tuned": False}}}, "budget": 60.0,
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_each_night_is_begun_and_told_once_by_two_beats_by_one_that_slept_and_by_none(
    settings: Settings, ledger: Ledger, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The clock goes on by seconds or by hours between turns, as for a machine that slept; there is no suite to run,
    so that each night is over as soon as it has begun, and is told."""
    chance, told, first = Random(seed), Counter[str](), time.time()
    now = first

    def tell(night: Night) -> list[Told]:
        time.sleep(chance.random() / 50)
        told[night.night_id] += 1
        return [Told(to="test", at=now)]

    monkeypatch.setattr(beat, "keeper_of", lambda site, actor: Keeper(site, actor, Inventory(redis), tell))
    ledger.nights.schedule("s", str(tmp_path / "gone.yaml"), "0 * * * *", suite_of("s").model_dump_json().encode())
    beats = [beat.Upkeep(settings, ledger, redis, clock=lambda: now) for _ in range(2)]
    turned = first
    with ThreadPoolExecutor(4) as threads:
        for _ in range(25):
            now += chance.choice([1.0, 20.0, HOUR_S / 2, HOUR_S, 3 * HOUR_S])
            awake = [each for each in beats if chance.random() < 0.6]
            messages = [each for each in awake for _ in range(chance.choice([1, 1, 2]))]  # doubled, too
            list(threads.map(lambda each: each.do(NIGHTS), messages))
            turned = now if awake else turned
            redis.delete(keys.periodic(NIGHTS.name))  # the time in which it is not due is over
    due = [hour for hour in range(int(first // HOUR_S) + 1, int(turned // HOUR_S) + 1) if hour * HOUR_S > first]
    assert sorted(ledger.nights.due_times("s", 200)) == [hour * HOUR_S for hour in due]
    assert set(told.values()) == {1} and len(told) == len(due), told


def test_a_work_is_one_s_until_it_is_over_and_due_again_after_a_while(periodic: Periodic) -> None:
    with periodic.turn(SWEEP) as first, periodic.turn(SWEEP) as second, periodic.turn(ADMIT) as other:
        assert (first, second, other) == (True, False, True)
    assert not periodic.take(SWEEP, 0.0), "it has just been done"
    eventually(lambda: periodic.take(SWEEP, 0.0))
    with pytest.raises(ZeroDivisionError), periodic.turn(SWEEP) as again:
        assert again and 1 / 0
    eventually(lambda: periodic.take(SWEEP, 0.0))


@pytest.mark.parametrize(("mark_s", "is_due", "is_late"), [
    (-HOUR_S, True, True),  # all beats slept
    (-1.0, True, False),
    (5.0, False, False),  # somebody is at it
    (HOUR_S, True, True),  # Redis' clock was set back
])  # fmt: skip
def test_marks_go_by_redis_clock(periodic: Periodic, redis: Redis, mark_s: float, is_due: bool, is_late: bool) -> None:
    def take(late_s: float) -> bool:
        redis.set(keys.periodic(SWEEP.name), redis.time()[0] + mark_s)
        return periodic.take(SWEEP, 0.0, late_s)

    assert (take(0.0), take(LATE_S)) == (is_due, is_late)


def test_two_beats_do_all_the_work_and_one_that_is_stopped_holds_up_nothing(
    settings: Settings, ledger: Ledger, redis: Redis
) -> None:
    ledger.standing.admit_host("lab", "0" * 64)
    beats = [subprocess.Popen([sys.executable, "-m", "farm.tasks.beat"], stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        for each in (None, *beats):
            if each is not None:
                each.send_signal(signal.SIGSTOP)
            redis.delete(keys.HOSTS)
            redis.set(keys.host("lab"), "x" * (1 << 20))
            beat.ready(settings.state).unlink(missing_ok=True)
            eventually(lambda: redis.zscore(keys.HOSTS, "lab") is not None and not redis.exists(keys.host("lab")))
            eventually(beat.ready(settings.state).exists)
            if each is not None:
                each.send_signal(signal.SIGCONT)
    finally:
        for each in beats:
            each.send_signal(signal.SIGCONT)
            each.terminate()
    assert [each.wait(60) for each in beats] == [0, 0]


def test_beat_sleeps_until_a_task_is_due(
    settings: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """It may look a few times for each task; Celery's own looks until it is due, ten milliseconds long."""
    app, chance, looks = make_app(settings), Random(seed), Counter[str]()
    for entry in app.conf.beat_schedule.values():
        entry["schedule"] = 0.1 + chance.random() / 5
    tick = celery.beat.Scheduler.tick
    monkeypatch.setattr(celery.beat.Scheduler, "tick", lambda *given: (looks.update(["look"]), tick(*given))[1])
    with consumer.beat(app):
        eventually(lambda: redis.llen(keys.WORK) >= 20)
    assert looks["look"] < 5 * redis.llen(keys.WORK)


def test_tasks_that_nobody_does_do_not_fill_redis(settings: Settings, ledger: Ledger, redis: Redis) -> None:
    with consumer.beat(make_app(settings)):
        eventually(lambda: redis.llen(keys.WORK) >= 3)
        redis.rpush(keys.WORK, "x" * (2 << 20))
        scheduler = Scheduler(settings, ledger, redis)
        eventually(lambda: scheduler.tick() and (redis.memory_usage(keys.WORK) or 0) < 1 << 20)


def test_without_a_beat_the_scheduler_sees_to_redis_and_asks_for_nights(
    settings: Settings, ledger: Ledger, redis: Redis
) -> None:
    ledger.standing.admit_host("lab", "0" * 64)
    scheduler = Scheduler(settings, ledger, redis)
    for _ in range(2):  # again, once it stands in for it
        redis.delete(keys.HOSTS)
        redis.set(keys.host("lab"), "x" * (1 << 20))
        eventually(lambda: scheduler.tick() and redis.zscore(keys.HOSTS, "lab") is not None)
        eventually(lambda: scheduler.tick() and not redis.exists(keys.host("lab")))
    eventually(lambda: scheduler.tick() and redis.llen(keys.WORK))
    Periodic(redis).take(SWEEP, 30.0)
    redis.set(keys.host("lab"), "x" * (1 << 20))
    scheduler.tick()
    assert redis.exists(keys.host("lab")), "a beat sees to it"
