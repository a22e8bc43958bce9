"""Lines of attempts under one lease: what a device is given at once, and what becomes of what it did not begin."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.coordination import keys
from orchestrator.ledger import Ledger, Start
from orchestrator.model.event import Setup
from orchestrator.model.experiment import Workload
from orchestrator.model.live.lease import LINE_MOST, LINE_S, Assignment
from orchestrator.model.record import Outcome, Record, SessionPlace
from orchestrator.scheduling import lines, reconcile
from orchestrator.scheduling.queue_view import QueueView
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, answered, send
from .sites import by, site


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0, retries=1) as opened:
        yield opened


@pytest.fixture
def scheduler(farm: Settings, ledger: Ledger, redis: Redis) -> Scheduler:
    return Scheduler(farm, ledger, redis)


@pytest.fixture
def host(farm: Settings, redis: Redis) -> Host:
    found = Host(farm, redis, [make.device("A"), make.device("B")])
    found.announce()
    return found


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four blocks of any experiment are known to fill a line."""
    monkeypatch.setattr(lines.Lines, "behind", lambda *_: 3)


def measured(assignment: Assignment, took_s: float = 0.1) -> Record:
    """The answer of a worker that ran a line: with the agent's times, and its place in the session."""
    now = time.time()
    setup = Setup(seq=1, t_ns=int(took_s * 4e8), step="build", start_ns=0, duration_ns=int(took_s * 4e8))
    place = SessionPlace(first=1, number=2)
    more = {"setup": (setup,), "session": place, "started_at": now - took_s, "ended_at": now}
    return answered(assignment, Outcome.OK).model_copy(update=more)


def submit(ledger: Ledger, serials: str = "A", blocks: int = 10, of: str = "e-1", **more: object) -> None:
    experiment = make.many(blocks, **more)  # type: ignore[arg-type]
    ledger.submit(of, experiment, expand(experiment, of, [make.device(s) for s in serials]).jobs)


def placed(scheduler: Scheduler) -> Assignment:
    (assignment,) = scheduler.tick().placed
    return assignment


def claimed(host: Host) -> Assignment:
    (assignment,) = host.claim()
    return assignment


def go_on(host: Host, of: Assignment, number: int) -> str:
    """Go on from the attempt before."""
    return host.leases.advance(of.serial, of.every[number - 1].token, host.worker, of.every[number])


def states(ledger: Ledger) -> list[str]:
    return [row.outcome or row.state for row in ledger.jobs("e-1")]


def test_a_line_is_as_long_as_blocks_were_brief(
    farm: Settings, ledger: Ledger, scheduler: Scheduler, host: Host
) -> None:
    lengths, alone = [], {"session": None}
    host.answer = lambda each: measured(each) if lengths[1:] else measured(each).model_copy(update=alone)
    submit(ledger, blocks=50)
    for _ in range(3):
        found = placed(scheduler)
        tokens = [each.token for each in found.every]
        assert tokens == sorted(set(tokens)) and {row.token for row in ledger.running()} == set(tokens)
        begun = [row.job.block for row in ledger.jobs("e-1") if row.state == "placed"]
        assert begun == [e.job.block for e in found.every]
        lengths.append(len(tokens))
        host.claim()
        host.finish()
    assert lengths == [1, 2, int(lines.FILL * LINE_S / 0.1)], "unknown, brief by the agent's time, known"
    submit(ledger, of="e-2")
    found = placed(scheduler)
    shorter = int(lines.FILL * lines.RIVAL_S / 0.1) if found.job.experiment_id == "e-1" else 1
    assert len(found.every) == shorter, "others wait for the device"
    host.claim()
    host.finish()
    ledger.cancel("e-2")


@pytest.mark.parametrize(("took_s", "behind"), [(0.0, LINE_MOST - 1), (0.5, 2), (1.0, 0), (60.0, 0)])
def test_what_does_not_fit_is_not_given(ledger: Ledger, took_s: float, behind: int) -> None:
    known = lines.Lines(QueueView(ledger))
    job = make.job()
    made = Assignment(serial="A", host="lab", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=15.0)
    known.note(measured(made, took_s).model_copy(update={"session": None}))()
    assert known.behind("first-1", "A") == int(took_s < 1.9), "by the agent's time, two"
    known.note(measured(made, took_s))()
    assert known.behind("first-1", "A") == behind
    known.note(measured(made, 1000.0).model_copy(update={"outcome": Outcome.LOST}))()
    assert known.behind("first-1", "A") == behind and known.behind("another", "A") == 0


def test_where_no_line_is_given_whole_sessions_tell_that_blocks_are_brief_again(ledger: Ledger) -> None:
    known = lines.Lines(QueueView(ledger))
    job = make.job()
    made = Assignment(serial="A", host="lab", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=15.0)
    alone = {"session": None}
    known.note(measured(made, 1.0))()
    known.note(measured(made, 60.0).model_copy(update=alone))()
    assert known.behind("first-1", "A") == 0
    for _ in range(40):
        known.note(measured(made, 0.1).model_copy(update=alone))()
    assert known.behind("first-1", "A") > 10, "in line none takes longer than a whole session"


def test_each_device_has_its_part_and_only_what_its_session_prepares(ledger: Ledger) -> None:
    submit(ledger, "AB", blocks=10, count="any")
    jobs = [row.job_id for row in ledger.jobs("e-1")]
    found = ledger.begin_attempts([Start(jobs[0], "A", "lab", 15), Start(jobs[1], "B", "lab", 2)], 15.0)
    assert [len(each.every) for each in found] == [1 + 4, 1 + 2]
    begun = [each.job_id for assignment in found for each in assignment.every]
    assert sorted(begun) == sorted(set(begun)) and ledger.counts("e-1") == {"placed": 8, "waiting": 2}
    submit(ledger, "CDEFG", blocks=4, of="e-3")
    lanes = {row.job.candidates[0]: row.job_id for row in reversed(ledger.jobs("e-3"))}
    found = ledger.begin_attempts([Start(job_id, serial, "lab", 15) for serial, job_id in lanes.items()], 15.0)
    assert [len(each.every) for each in found] == [4] * 5, "each lane has jobs of its own"
    power = {"measure": {"quantities": ["latency", "power"]}, "workload": Workload(network="lenet")}
    submit(ledger, of="e-2", **power)
    (alone,) = ledger.begin_attempts([Start(ledger.jobs("e-2")[0].job_id, "A", "lab", 9)], 15.0)
    assert alone.line == (), "a gauge is calibrated, and read alone"


@pytest.mark.usefixtures("brief")
def test_a_dead_worker_costs_the_attempt_that_ran(
    ledger: Ledger, scheduler: Scheduler, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "RECORD_GRACE_S", 0.0)
    submit(ledger, blocks=4)
    placed(scheduler)
    ours = claimed(host)
    send(host.redis, answered(ours, Outcome.OK))
    assert go_on(host, ours, 1) == "held"
    assert scheduler.tick().taken == {"new": 1}
    assert states(ledger) == ["ok", "running", "placed", "placed"]
    assert host.leases.renew("A", ours.every[1].token, host.worker, 0.01) == "held"
    host.worker = "lab:another"

    def lost() -> int:
        host.announce()
        return scheduler.tick().lost

    assert eventually(lost) == 3
    causes = [(row.state, row.cause, row.attempts) for row in ledger.jobs("e-1")[1:]]
    assert causes == [("waiting", "worker_died", 1), ("waiting", "handed_back", 1), ("waiting", "handed_back", 1)]
    assert ledger.standing.bars().faults.keys() == {"lab"} and not ledger.standing.quarantined()
    assert go_on(host, ours, 2) in ("ended", "superseded"), "who was stopped meanwhile begins nothing"


@pytest.mark.usefixtures("brief")
def test_a_line_that_nobody_claims_is_handed_back(
    ledger: Ledger, scheduler: Scheduler, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(ledger, blocks=3)
    ours = placed(scheduler)
    monkeypatch.setattr(reconcile, "UNCLAIMED_S", -1.0)
    assert scheduler.tick().lost == 3
    assert [row.cause for row in ledger.jobs("e-1")] == ["claim_overdue", "handed_back", "handed_back"]
    assert host.leases.claim("A", ours.token, host.worker) is None


@pytest.mark.usefixtures("brief")
def test_a_job_in_line_that_is_cancelled_does_not_begin(ledger: Ledger, scheduler: Scheduler, host: Host) -> None:
    submit(ledger, blocks=3)
    placed(scheduler)
    ours = claimed(host)
    ledger.cancel(ours.every[1].job_id)
    scheduler.tick()
    assert go_on(host, ours, 1) == "recalled"
    for number, each in enumerate(ours.every):  # as a host does then
        outcome = (Outcome.LOST, "handed_back") if number else (Outcome.OK, "")
        send(host.redis, answered(each, *outcome))
    host.leases.release("A", ours.token)
    assert scheduler.tick().taken == {"new": 3}
    assert [row.state for row in ledger.jobs("e-1")] == ["done", "cancelled", "placed"]


@pytest.mark.usefixtures("brief")
def test_no_further_attempt_begins_on_a_held_device(
    farm: Settings, ledger: Ledger, scheduler: Scheduler, host: Host
) -> None:
    submit(ledger, blocks=3)
    placed(scheduler)
    ours = claimed(host)
    anna = site(farm, ledger, host.redis), by("anna")
    acts.devices.hold(*anna, ["A"])
    scheduler.tick()
    assert go_on(host, ours, 1) == "recalled"
    ledger.standing.end_hold("A")
    scheduler.tick()
    assert go_on(host, ours, 1) == "held"
    acts.devices.hold(*anna, ["A"], now=True)
    assert go_on(host, ours, 2) == "ended" and {row.cause for row in ledger.jobs("e-1")} == {"device_held"}


@pytest.mark.usefixtures("brief")
def test_a_wiped_redis_knows_no_line_any_more(
    ledger: Ledger, scheduler: Scheduler, host: Host, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "MISSING_GRACE_S", -1.0)
    submit(ledger, blocks=3)
    placed(scheduler)
    ours = claimed(host)
    assert go_on(host, ours, 1) == "held"
    host.running["A"] = ours.every[1]
    send(host.redis, answered(ours, Outcome.OK))
    scheduler.tick()
    host.redis.flushall()
    host.announce()
    report = scheduler.tick()
    assert (report.restored, report.lost) == (1, 1), "what runs goes on, what was in line is tried again"
    assert host.leases.renew("A", ours.every[1].token, host.worker, 15.0) == "held"
    assert go_on(host, ours, 2) == "missing"
    assert [row.cause for row in ledger.jobs("e-1")][2] == "lease_missing"


def test_tokens_of_a_line_fence_like_others(host: Host) -> None:
    leases, job = host.leases, make.job()

    def of(token: int) -> Assignment:
        own = job.with_block(token)
        return Assignment(serial="A", host="lab", job_id=own.job_id, job=own, attempt=1, token=token, ttl_s=60.0)

    line = of(3).model_copy(update={"line": (of(4), of(6))})
    assert leases.acquire(line) and leases.claim("A", 4, "w") is None
    assert leases.claim("A", 3, "w") == line
    assert leases.advance("A", 3, "other", of(4)) == "superseded" == leases.advance("A", 2, "w", of(4))
    assert leases.advance("A", 3, "w", of(7)) == "missing"
    assert leases.advance("A", 3, "w", of(4)) == "held"
    lease = leases.all()["A"]
    assert (lease.token, lease.last, lease.job_id) == (4, 6, of(4).job_id)
    assert [lease.covers(token) for token in (3, 4, 6, 7)] == [False, True, True, False]
    assert leases.advance("A", 3, "w", of(6)) == "superseded", "it is at another attempt"
    assert leases.standing("A", 4, "w") == "held" == leases.renew("A", 4, "w", 60.0)
    assert not leases.acquire(of(6)) and leases.floor("A") == 6 and leases.fences("A")["A"].reached == 0
    assert leases.withdraw("A", 4) and leases.fences("A")["A"].reached == 4
    assert not leases.acquire(of(6)) and leases.acquire(of(7)) and leases.fences("A")["A"].reached == 0
    assert leases.standing("A", 6, "w") == "superseded"
    host.redis.delete(keys.lease("A"), keys.held("lab", "A"))
    assert leases.advance("A", 4, "w", of(6)) == "missing"


def test_time_in_line_is_no_service_time(ledger: Ledger) -> None:
    submit(ledger, blocks=2)
    (ours,) = ledger.begin_attempts([Start(ledger.jobs("e-1")[0].job_id, "A", "lab", 1)], 15.0)
    in_line_until = time.time()
    for number, each in enumerate(ours.every, 1):
        place = SessionPlace(first=ours.token, number=number)
        ledger.keep(answered(each, Outcome.OK).model_copy(update={"session": place}))
    first, second = (ledger.listed.attempts(each.job_id)[0] for each in ours.every)
    assert first.ended_at is not None and second.ended_at is not None
    assert first.started_at <= in_line_until <= second.started_at <= second.ended_at
