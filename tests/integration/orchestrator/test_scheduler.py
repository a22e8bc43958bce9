"""The scheduler's turn on a real Redis and a real ledger, with a host in the test's process."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import select

from orchestrator import spec
from orchestrator.coordination import keys
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.tasks import queue
from orchestrator.ledger import Ledger, blame
from orchestrator.ledger.attempts import counted
from orchestrator.ledger.tables import ATTEMPTS
from orchestrator.model.device import Health
from orchestrator.model.errors import ServiceDown, SpecError
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome
from orchestrator.scheduling import reconcile
from orchestrator.scheduling.live_view import LiveView
from orchestrator.scheduling.queue_view import QueueView
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, HostThread, answered, ok, send


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0) as opened:
        yield opened


@pytest.fixture
def scheduler(farm: Settings, ledger: Ledger, redis: Redis) -> Scheduler:
    return Scheduler(farm, ledger, redis)


def submit(ledger: Ledger, host: Host, blocks: int = 2, experiment_id: str = "e-1", **choice: object) -> None:
    experiment = make.many(blocks, **choice)
    jobs = expand(experiment, experiment_id, host.devices).jobs
    ledger.submit(experiment_id, experiment, jobs)


def host_of(farm: Settings, redis: Redis, serials: str = "AB") -> Host:
    host = Host(farm, redis, [make.device(s) for s in serials])
    host.announce()
    return host


def passed(
    reconciler: reconcile.Reconciler, ledger: Ledger, redis: Redis, hosts: list[HostAnnouncement]
) -> reconcile.Reconciled:
    """A pass of the reconciler on views that are built anew."""
    queue, live = QueueView(ledger), LiveView(redis, ledger)
    live.refresh(hosts)
    queue.refresh()
    return reconciler.run(hosts, queue, live)


def test_an_experiment_is_placed_by_the_policy_of_its_file(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler, tmp_path: Path
) -> None:
    """The last one that was submitted, and the only one with a deadline, gets the only phone."""
    host = host_of(farm, redis, "A")
    submit(ledger, host)
    path, text = tmp_path / "late.yaml", "name: late\nworkload: {network: lenet}\nplacement: {policy: deadline%s}\n"
    path.write_text(text % "")
    with pytest.raises(SpecError, match=r"late.yaml:3.*`policy: deadline` and `deadline: 2026-12-01 08:00` together"):
        spec.load(path)
    path.write_text(text % ", deadline: '17:00'")
    with pytest.raises(SpecError, match="expected a day and a time"):
        spec.load(path)
    path.write_text(text % ", deadline: 2026-12-01 08:00")
    late = spec.load(path)
    assert late.placement.deadline == time.mktime((2026, 12, 1, 8, 0, 0, 0, 0, -1))
    ledger.submit("e-2", late, expand(late, "e-2", host.devices).jobs)
    assert [a.job.experiment_id for a in scheduler.tick().placed] == ["e-2"]


def test_from_waiting_to_done(farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler) -> None:
    host = host_of(farm, redis)
    submit(ledger, host)
    report = scheduler.tick()
    assert {a.serial for a in report.placed} == {"A", "B"}
    assert host.tasks() == 2
    assert {lease.token for lease in Leases(redis).all().values()} == {a.token for a in report.placed}
    assert len(host.claim()) == 2
    second = scheduler.tick()
    assert second.placed == ()
    assert all(reason.text == "busy with squeezenet_v1_0 opencl fp32 #0" for reason in second.waiting.values())
    assert host.inventory.waiting() == second.waiting
    assert ledger.counts("e-1") == {"running": 2, "waiting": 2}
    host.finish()
    third = scheduler.tick()
    assert third.taken == {"new": 2} and len(third.placed) == 2
    host.claim()
    host.finish()
    assert scheduler.tick().taken == {"new": 2}
    assert ledger.counts("e-1") == {"ok": 4}
    assert redis.xlen(keys.records("lab")) == 0
    assert all(redis.exists(keys.receipt("lab", f"{r.job_id}:{r.attempt}")) for r in ledger.records("e-1"))


def test_a_job_keeps_the_id_under_which_it_was_submitted(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler
) -> None:
    """The id stays where this version would give another; a host is told the id, and of the devices only its own."""
    host = host_of(farm, redis, "ABC")
    submit(ledger, host, count="any")
    with closing(sqlite3.connect(farm.ledger_file)) as earlier, earlier:
        earlier.execute("UPDATE jobs SET id = 'of-before-' || block")
    assert {each.job.candidates for each in scheduler.tick().placed} == {("A",), ("B",)}
    assert {each.job_id for each in host.claim()} == {"of-before-0", "of-before-1"}
    host.finish()
    assert scheduler.tick().taken == {"new": 2}
    assert {(row.job_id, row.outcome) for row in ledger.jobs("e-1")} == {("of-before-0", "ok"), ("of-before-1", "ok")}


def test_doubled_and_lost_tasks_do_no_harm(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    (assignment,) = scheduler.tick().placed
    assert host.tasks() == 1  # and nobody answers it
    assert scheduler.tick().resent == 0
    monkeypatch.setattr(reconcile, "RESEND_S", 0.0)
    assert scheduler.tick().resent == 1 and scheduler.tick().resent == 1
    assert host.tasks() == 2
    assert host.leases.claim("A", assignment.token, host.worker) == assignment
    assert host.leases.claim("A", assignment.token, host.worker) is None
    assert scheduler.tick().resent == 0


def expire(host: Host, assignment: Assignment) -> None:
    """Returns when the lease has run out, as it does where its holder renews it no more."""
    assert host.leases.renew(assignment.serial, assignment.token, host.worker, 0.01) == "held"
    eventually(lambda: host.leases.all()[assignment.serial].expires_at <= host.leases.now())


def test_a_dead_worker_costs_one_attempt(
    redis: Redis, ledger: Ledger, farm: Settings, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    scheduler.tick()
    (old,) = host.claim()
    host.running.clear()  # SIGKILL
    expire(host, old)
    report = scheduler.tick()
    assert report.lost == 1 and report.placed == (), "it may be dead"
    eventually(lambda: "has said nothing since it lost a session" in str(scheduler.tick().waiting))
    assert set(ledger.standing.bars().faults) == {"lab"}
    an_hour_ago = time.time() - 3600.0
    with monkeypatch.context() as back:
        back.setattr("orchestrator.ledger.said.health.time.time", lambda: an_hour_ago)
        assert ledger.standing.bars().faults == {}, "a clock that was put back closes no host"
    host.announce()
    (new,) = scheduler.tick().placed
    assert new.attempt == 2 and new.token > old.token
    send(redis, answered(old, Outcome.OK))
    host.claim()
    host.finish()
    assert scheduler.tick().taken == {"stale": 1, "new": 1}
    assert [r.attempt for r in ledger.records("e-1")] == [2]
    assert ledger.standing.quarantined() == []


def test_a_job_that_kills_its_worker_is_found_out_and_costs_the_others_nothing(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other job is over before the worker dies: all that run beside it come under suspicion."""
    monkeypatch.setattr(blame, "MAX_PAUSE_S", 0.0)
    with Ledger(farm.ledger, rest_s=0.0, quarantine_s=0.01) as ledger:
        scheduler, host = Scheduler(farm, ledger, redis), host_of(farm, redis, "ABC")
        submit(ledger, host, blocks=6)
        poison = ledger.jobs("e-1")[0].job_id
        beside: list[set[str]] = []
        suspects: set[str] = set()

        def turn() -> bool:
            host.announce()
            scheduler.tick()
            host.claim()
            suspects.update(job.job_id for job in ledger.waiting() if job.alone)
            if poison in [each.job_id for each in host.running.values()]:
                beside.append({each.job_id for each in host.running.values()} - {poison})
                for assignment in host.running.values():
                    expire(host, assignment)
                host.running.clear()
                host.worker = f"lab:{len(beside)}"  # as the supervisor starts it again
                return False
            if ledger.counts("e-1").get("lost"):
                host.finish()
            return ledger.experiment("e-1").finished

        eventually(turn)
        assert ledger.counts("e-1") == {"ok": 17, "lost": 1}
        (lost,) = [row for row in ledger.jobs("e-1") if row.outcome == "lost"]
        assert (lost.job_id, lost.cause) == (poison, "kills_worker")
        assert [len(each) for each in beside] == [2] * blame.SUSPECT_AFTER + [0] * blame.LONE_DEATHS
        assert suspects == {poison}.union(*beside)
        assert ledger.standing.quarantined_hosts() == [] == ledger.standing.quarantined()
        with ledger._database.read() as connection:
            ends = counted.count(connection, "attempts")
            acquitted = connection.scalars(select(ATTEMPTS.c.job_id).where(ATTEMPTS.c.cause == blame.ACQUITTED)).all()
        assert sorted(acquitted) == sorted([*beside[0]] * blame.SUSPECT_AFTER)
        assert ends["lost", "worker_died"] == 3 * blame.SUSPECT_AFTER + blame.LONE_DEATHS, "no counter falls"
        assert ends["lost", blame.ACQUITTED] == 0


def test_a_host_that_loses_every_record_is_quarantined_and_no_job_is_lost(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "RECORD_GRACE_S", 0.0)
    host = host_of(farm, redis, "A")
    with Ledger(farm.ledger, quarantine_s=3600.0) as ledger:
        scheduler = Scheduler(farm, ledger, redis)
        submit(ledger, host, blocks=8)
        for _ in range(20):
            scheduler.tick()
            for assignment in host.claim():
                host.leases.release("A", assignment.token)  # and its record never comes
                host.running.clear()
            host.announce()
        (held,) = ledger.standing.quarantined_hosts()
        assert held.serial == "lab" and ledger.counts("e-1") == {"waiting": 8}
        (reason,) = {each.text for each in scheduler.tick().waiting.values() if "lab" in each.text}
        assert "its host lab had 3 faults of its own" in reason and "`farm release lab`" in reason
    with Ledger(farm.ledger, quarantine_s=0.0) as ledger:
        assert len(Scheduler(farm, ledger, redis).tick().placed) == 1, "probation, by itself"


def test_a_wiped_redis_costs_no_job_and_no_attempt(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler
) -> None:
    host = host_of(farm, redis)
    submit(ledger, host)
    scheduler.tick()
    assert len(host.claim()) == 2
    tokens = {a.token for a in host.running.values()}
    redis.flushall()
    assert scheduler.tick().placed == ()  # nothing is announced yet
    for device in host.devices:  # devices may come back before the host tells what it runs
        host.inventory.announce_device(device)
    assert scheduler.tick().placed == ()
    host.announce()
    assert scheduler.tick().restored == 2
    assert {lease.token for lease in host.leases.all().values()} == tokens
    assert all(host.leases.renew(s, a.token, host.worker, 5.0) == "held" for s, a in host.running.items())
    host.finish()
    report = scheduler.tick()
    assert report.taken == {"new": 2} and len(report.placed) == 2
    assert {r.attempt for r in ledger.records("e-1")} == {1}


def test_a_wiped_redis_and_a_dead_worker(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    scheduler.tick()
    host.claim()
    redis.flushall()
    host.running.clear()
    host.announce()
    assert scheduler.tick().placed == ()
    monkeypatch.setattr(reconcile, "MISSING_GRACE_S", 0.0)
    report = scheduler.tick()
    assert report.lost == 1
    (again,) = report.placed
    assert again.attempt == 2


def test_a_released_lease_is_not_restored_and_its_record_is_waited_for(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=2)
    scheduler.tick()
    (assignment,) = host.claim()
    host.announce()
    host.leases.release("A", assignment.token)
    report = scheduler.tick()
    assert report.restored == 0 and report.lost == 0
    assert len(report.placed) == 1  # the device is free for the next job
    assert scheduler.tick().lost == 0
    host.running.clear()
    host.announce()
    monkeypatch.setattr(reconcile, "RECORD_GRACE_S", 0.0)
    assert scheduler.tick().lost == 1
    send(redis, ok(assignment))  # later than late: no other attempt has begun
    assert scheduler.tick().taken == {"new": 1}
    assert ledger.counts("e-1")["ok"] == 1


def test_lost_attempts_go_elsewhere_and_a_bad_device_ends_in_quarantine(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler
) -> None:
    host = host_of(farm, redis, "AB")
    host.answer = lambda a: answered(a, Outcome.LOST, "transport_lost") if a.serial == "A" else ok(a)
    submit(ledger, host, blocks=8, count="any")
    for _ in range(30):
        scheduler.tick()
        host.claim()
        host.finish()
    assert ledger.counts("e-1") == {"ok": 8}
    assert [q.serial for q in ledger.standing.quarantined()] == ["A"]
    submit(ledger, host, experiment_id="e-2")
    assert any(reason.text.startswith("quarantined: 3 attempts") for reason in scheduler.tick().waiting.values())


def test_a_device_that_is_well_after_its_quarantine_is_tried_again(farm: Settings, redis: Redis) -> None:
    host = host_of(farm, redis, "A")
    host.answer = lambda a: answered(a, Outcome.LOST, "transport_lost")
    with Ledger(farm.ledger, rest_s=0.0, quarantine_after=1, quarantine_s=0.3) as ledger:
        scheduler = Scheduler(farm, ledger, redis)
        submit(ledger, host, blocks=3)

        def until_quarantined() -> float:
            assert len(scheduler.tick().placed) == 1
            host.claim()
            host.finish()
            assert scheduler.tick().placed == ()
            (held,) = ledger.standing.quarantined()
            return held.until

        until = until_quarantined()
        host.announce()
        assert scheduler.tick().placed == ()  # its term is not over
        eventually(lambda: time.time() > until + 0.02)  # no time that a host tells has yet to come
        host.devices = [make.device("A", health=Health.SICK, reason="no answer", seen_at=until + 0.01)]
        host.announce()
        scheduler.tick()
        assert len(ledger.standing.quarantined()) == 1  # its host does not find it well
        host.devices = [make.device("A", seen_at=until + 0.01)]
        host.announce()
        again = until_quarantined()
        (held,) = ledger.standing.quarantined()
        assert again - held.since == pytest.approx(0.6)


def test_a_device_rests_after_a_loss(farm: Settings, redis: Redis) -> None:
    """Discovery needs a moment to notice that a phone was unplugged; until then it would lose job after job."""
    host = host_of(farm, redis, "A")
    host.answer = lambda a: answered(a, Outcome.LOST, "transport_lost")
    with Ledger(farm.ledger, rest_s=60.0) as ledger:
        scheduler = Scheduler(farm, ledger, redis)
        submit(ledger, host, blocks=3)
        scheduler.tick()
        host.claim()
        host.finish()
        report = scheduler.tick()
        assert report.taken == {"new": 1} and report.placed == ()
        assert all(r.text.startswith("resting after a lost attempt, ready at about") for r in report.waiting.values())
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        assert len(Scheduler(farm, ledger, redis).tick().placed) == 1


@pytest.mark.parametrize("events", [True, False])
def test_cancelling_revokes_the_tasks_that_are_under_way(
    farm: Settings, redis: Redis, ledger: Ledger, events: bool
) -> None:
    host = host_of(farm, redis, "AB")
    scheduler = Scheduler(farm.model_copy(update={"celery_events": events}), ledger, redis)
    submit(ledger, host, blocks=2)
    placed = scheduler.tick().placed
    with redis.pubsub() as heard:
        heard.psubscribe("*.celery.pidbox")
        assert heard.get_message(timeout=60)
        ledger.cancel("e-1")
        for _ in range(2):  # told once
            scheduler.tick()
        told = [message["data"] for message in iter(lambda: heard.get_message(timeout=0.2), None)]
    wanted = sorted(queue.task_id(each.job_id, each.attempt) for one in placed for each in one.every)
    bodies = [json.loads(base64.b64decode(json.loads(each)["body"])) for each in told]
    assert [each["arguments"]["task_id"] for each in bodies] == ([wanted] if events else [])


def test_cancelling_reaches_the_session(farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler) -> None:
    host = host_of(farm, redis, "AB")
    submit(ledger, host, blocks=2)
    scheduler.tick()
    claimed = host.leases.claim("A", host.leases.all()["A"].token, host.worker)
    assert claimed is not None
    assert len(ledger.cancel("e-1")) == 4
    scheduler.tick()
    assert redis.smembers(keys.CANCELLED) >= {claimed.job_id}
    assert set(host.leases.all()) == {"A"}  # nobody had claimed B's
    send(redis, answered(claimed, Outcome.CANCELLED))
    host.leases.release("A", claimed.token)
    assert scheduler.tick().placed == ()
    assert redis.smembers(keys.CANCELLED) == set()
    assert ledger.running() == [] and ledger.counts("e-1") == {"cancelled": 4}


def test_what_is_no_record_is_kept_and_disturbs_nothing(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    scheduler.tick()
    (assignment,) = host.claim()
    redis.xadd(keys.records("lab"), {"record": "{not json"})
    redis.xadd(keys.records("lab"), {"other": "field"})
    redis.xadd(keys.records("lab"), {"record": b"\xff\x00"})
    redis.sadd(keys.SENDERS, "lab")
    foreign = make.record(make.job("unknown"), attempt=1, token=assignment.token)
    send(redis, foreign)
    host.finish()
    assert scheduler.tick().taken["dead"] == 4
    assert redis.xlen(keys.records("lab")) == 0
    bodies = {ledger.dead.body(each.id) for each in ledger.dead.every()}
    assert bodies >= {b"{not json", b"\xff\x00", foreign.model_dump_json().encode()} and len(bodies) == 4
    assert ledger.counts("e-1") == {"ok": 1}


def test_a_restarted_redis_is_survived(server: RedisServer, farm: Settings, redis: Redis, ledger: Ledger) -> None:
    scheduler, host = Scheduler(farm, ledger, redis), host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    scheduler.tick()
    (assignment,) = host.claim()
    expire(host, assignment)
    server.stop(kill=True)
    with pytest.raises(ServiceDown):
        scheduler.tick()
    server.start()
    host.announce()
    assert scheduler.tick().lost == 0  # the holder could not renew: it gets the time to do so now
    assert host.leases.renew("A", assignment.token, host.worker, 60.0) == "held"
    scheduler._reconciler._patient_until = 0.0  # this time is over
    assert scheduler.tick().lost == 0
    host.finish()
    scheduler.tick()
    assert ledger.counts("e-1") == {"ok": 1}


def test_a_farm_that_was_suspended_lets_its_holders_renew_before_it_reaps(
    farm: Settings, redis: Redis, ledger: Ledger
) -> None:
    times = {"now": 100.0}
    host = host_of(farm, redis, "AB")
    submit(ledger, host, blocks=1)
    Scheduler(farm, ledger, redis).tick()
    asleep, dead = host.claim()
    reconciler = reconcile.Reconciler(ledger, redis, lambda *_: None, lambda _: None, clock=lambda: times["now"])

    def turn(after_s: float) -> int:
        times["now"] += after_s
        host.announce()
        return passed(reconciler, ledger, redis, host.inventory.hosts()).lost

    assert turn(0.3) == 0
    for each in (asleep, dead):
        expire(host, each)
    assert turn(30.0) == 0, "the first turn after it"
    assert host.leases.renew(asleep.serial, asleep.token, host.worker, 60.0) == "held"
    assert turn(59.0) == 0, "late again: no lease is spared twice, and its time is not over"
    assert turn(2.0) == 1, "its holder had the life of a lease"
    assert set(host.leases.all()) == {asleep.serial}
    expire(host, asleep)
    assert turn(0.3) == 1, "in time"


def test_a_session_whose_attempt_is_over_is_told(
    farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler
) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    scheduler.tick()
    (old,) = host.claim()
    host.announce()
    scheduler.tick()
    assert redis.smembers(keys.ENDED) == set()
    ledger.end_attempt(old.job_id, old.attempt, Outcome.LOST, "lease_missing")
    scheduler.tick()
    assert redis.smembers(keys.ENDED) == {str(old.token)}
    host.running.clear()
    host.announce()
    scheduler.tick()
    assert redis.smembers(keys.ENDED) == set()


def test_a_live_host_that_claims_nothing_loses_the_lease_and_its_good_name(
    farm: Settings, redis: Redis, ledger: Ledger
) -> None:
    times = {"now": 100.0}
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    Scheduler(farm, ledger, redis).tick()
    reconciler = reconcile.Reconciler(ledger, redis, lambda *_: None, lambda _: None, clock=lambda: times["now"])

    def turn(after_s: float, running: int = 0) -> int:
        times["now"] += after_s
        others = tuple(("S", "j", 1, 10**6 + i) for i in range(running))
        announced = HostAnnouncement(
            host="lab", worker=host.worker, pid=1, running=others, sessions=2, protocol=PROTOCOL
        )
        return passed(reconciler, ledger, redis, [announced]).lost

    assert turn(0.0) == 0
    assert turn(reconcile.UNCLAIMED_S, running=2) == 0, "it is full: the task waits for its turn"
    assert turn(1.0, running=1) == 0
    assert turn(reconcile.UNCLAIMED_S) == 0
    assert turn(1.0) == 1
    assert host.leases.all() == {} and host.claim() == []
    (row,) = ledger.jobs("e-1")
    assert (row.state, row.cause) == ("waiting", "claim_overdue")


def test_two_schedulers_do_no_harm(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    host = Host(farm, redis, [make.device(s) for s in "ABCD"])
    submit(ledger, host, blocks=10)
    thread = HostThread(host)
    thread.start()
    try:
        with Ledger(farm.ledger) as other:
            both = [Scheduler(farm, ledger, redis), Scheduler(farm, other, redis)]
            turns = [threading.Thread(target=until_done, args=(each, ledger)) for each in both]
            for turn in turns:
                turn.start()
            for turn in turns:
                turn.join(60)
    finally:
        thread.stop()
    assert ledger.counts("e-1") == {"ok": 40}
    records = list(ledger.records("e-1"))
    assert len(records) == 40 and len({r.token for r in records}) == 40


def until_done(scheduler: Scheduler, ledger: Ledger) -> None:
    def finished() -> bool:
        scheduler.tick()
        return ledger.experiment("e-1").finished

    eventually(finished)


def test_chaos_loses_no_job_and_doubles_no_record(
    farm: Settings, redis: Redis, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wipes, dead workers, lost tasks and stale records in random order: every job ends once, and well.

    The budget is the smallest: no fault is the job's own.
    """
    monkeypatch.setattr(blame, "MAX_PAUSE_S", 0.0)
    chance = random.Random(seed)
    quick = farm.model_copy(update={"lease_ttl_s": 0.3})
    with Ledger(farm.ledger, retries=1, rest_s=0.0, quarantine_s=0.01) as ledger:
        scheduler, host = Scheduler(quick, ledger, redis), host_of(farm, redis, "ABC")
        submit(ledger, host, blocks=8)
        stale: list[Assignment] = []

        def turn() -> bool:
            host.announce()
            scheduler.tick()
            stale.extend(host.claim())
            fate = chance.random()
            if fate < 0.05:
                redis.flushall()
            elif fate < 0.10:
                host.running.clear()
                time.sleep(0.35)
            elif fate < 0.2 and stale:
                send(redis, answered(chance.choice(stale), Outcome.OK))
            else:
                host.finish()
            return ledger.experiment("e-1").finished

        eventually(turn)
        assert ledger.counts("e-1") == {"ok": 24}
        records = list(ledger.records("e-1", outcomes=["ok"]))
        assert len(records) == 24 == len({r.job_id for r in records})


def test_the_program_starts_works_and_ends(farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path) -> None:
    host = host_of(farm, redis, "AB")
    submit(ledger, host, blocks=2)
    environment = {**os.environ, "FARM_STATE": str(farm.state), "FARM_REDIS_URL": farm.redis_url, "FARM_TICK_S": "0.05"}
    log = tmp_path / "scheduler.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.scheduling.scheduler"], env=environment, stderr=errors
        )
    thread = HostThread(host)
    thread.start()
    try:
        eventually(lambda: ledger.experiment("e-1").finished, what=log.read_text)
        assert ledger.counts("e-1") == {"ok": 4}, log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        thread.stop()
        process.kill()
        process.wait(10)
    assert "event=placed" in log.read_text() and "event=stopped" in log.read_text()


def test_a_thousand_jobs_on_a_hundred_devices(
    farm: Settings, redis: Redis, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler = Scheduler(farm.model_copy(update={"lease_ttl_s": 3600.0}), ledger, redis)
    host = Host(farm.model_copy(update={"sessions": 100}), redis, [make.device(f"S{i:03}") for i in range(100)])
    host.announce()
    submit(ledger, host, blocks=10)
    times = []
    for _ in range(4):
        host.announce()
        start = time.perf_counter()
        report = scheduler.tick()
        times.append(1e3 * (time.perf_counter() - start))
    with capsys.disabled():
        print(f"\n1000 waiting jobs x 100 devices: {' '.join(f'{t:.0f}' for t in times)} ms a turn (first places 100)")
    assert report.placed == () and len(host.leases.all()) == 100


def test_an_offline_device_is_waited_for(farm: Settings, redis: Redis, ledger: Ledger, scheduler: Scheduler) -> None:
    host = host_of(farm, redis, "A")
    submit(ledger, host, blocks=1)
    host.devices = [make.device("A", health=Health.OFFLINE, reason="unplugged")]
    host.announce()
    assert [reason.text for reason in scheduler.tick().waiting.values()] == ["offline: unplugged"]
    host.devices = [make.device("A")]
    host.announce()
    assert len(scheduler.tick().placed) == 1


def test_a_host_gets_no_more_sessions_than_it_holds(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    """The host's own word counts: the scheduler's machine has another limit."""
    scheduler = Scheduler(farm, ledger, redis)
    host = host_of(farm.model_copy(update={"sessions": 2}), redis, "ABC")
    submit(ledger, host, blocks=1)
    assert len(scheduler.tick().placed) == 2
    assert [reason.text for reason in scheduler.tick().waiting.values()] == ["host lab is at its limit of 2 sessions"]
