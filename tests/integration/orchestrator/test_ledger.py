"""The ledger on SQLite and on PostgreSQL: idempotent, fenced, within the retry budget."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Row, create_engine, text

from orchestrator.figures import FIGURES_VERSION, figures_of
from orchestrator.figures.brief import brief_of
from orchestrator.ledger import JobState, KeepResult, Ledger, Renewed, blame
from orchestrator.ledger.attempts import keep
from orchestrator.ledger.tables import SCHEMA_VERSION
from orchestrator.model.errors import ServiceDown, SetupError, StableError, Unstorable
from orchestrator.model.event import Sample
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import expand
from tests.unit.orchestrator import make


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger that tests share: of PostgreSQL, where a database each would take a minute."""
    return f"sqlite:///{tmp_path}/deep/ledger" if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url, retries=3, quarantine_after=3) as opened:
        yield opened


count = iter(range(10_000))


def submitted(ledger: Ledger, blocks: int = 2, serials: str = "A", **choice: object) -> tuple[str, list[Job]]:
    """Submit a fresh experiment; PostgreSQL is shared by the tests of this module."""
    experiment_id = f"e{next(count)}"
    experiment = make.many(blocks, **choice)
    jobs = expand(experiment, experiment_id, [make.device(s) for s in serials]).jobs
    assert ledger.submit(experiment_id, experiment, jobs, [Exclusion("Z", "cell", "no opencl")])
    return experiment_id, list(jobs)


def begun(ledger: Ledger, job: Job, serial: str = "A") -> Assignment:
    assignment = ledger.begin_attempt(job.job_id, serial, "lab", 15.0)
    assert assignment is not None
    return assignment


def answer(assignment: Assignment, outcome: Outcome = Outcome.OK, **more: object):
    return make.record(
        assignment.job, attempt=assignment.attempt, token=assignment.token, serial=assignment.serial,
        outcome=outcome, **more,
    )  # fmt: skip


def test_submit_is_idempotent_and_whole(ledger: Ledger) -> None:
    experiment_id, jobs = submitted(ledger)
    assert not ledger.submit(experiment_id, make.many(9), jobs)
    row = ledger.experiment(experiment_id)
    assert row.experiment == make.many(2)
    assert row.exclusions == (Exclusion("Z", "cell", "no opencl"),)
    assert row.counts == {"waiting": 2} and not row.finished
    assert [r.job for r in ledger.jobs(experiment_id)] == jobs
    assert experiment_id in [r.id for r in ledger.experiments()]


def test_a_job_from_waiting_to_done(ledger: Ledger) -> None:
    experiment_id, (first, second) = submitted(ledger)
    assignment = begun(ledger, first)
    assert assignment.job == first and assignment.attempt == 1
    assert ledger.begin_attempt(first.job_id, "A", "lab", 15.0) is None
    assert ledger.counts(experiment_id) == {"placed": 1, "waiting": 1}
    ledger.mark_running([first.job_id])
    (row,) = [r for r in ledger.running() if r.experiment_id == experiment_id]
    assert (row.job_id, row.token, row.state) == (first.job_id, assignment.token, JobState.RUNNING)
    assert ledger.assignment(row) == assignment
    record = answer(assignment)
    assert ledger.keep(record) is KeepResult.NEW
    assert ledger.keep(record) is KeepResult.DUPLICATE
    assert list(ledger.records(experiment_id)) == [record]
    assert ledger.counts(experiment_id) == {"ok": 1, "waiting": 1}
    assert begun(ledger, second).token > assignment.token


def test_a_lost_attempt_is_retried_until_the_budget_is_used_up(ledger: Ledger) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    for attempt in (1, 2, 3):
        assignment = begun(ledger, job)
        assert assignment.attempt == attempt
        assert ledger.keep(answer(assignment, Outcome.LOST, cause="transport_lost")) is KeepResult.NEW
    assert ledger.counts(experiment_id) == {"lost": 1}
    assert ledger.experiment(experiment_id).finished
    assert len(list(ledger.records(experiment_id, outcomes=["lost"]))) == 3
    assert list(ledger.records(experiment_id, outcomes=["ok"])) == []


def waiting_job(ledger: Ledger, experiment_id: str) -> WaitingJob:
    (found,) = [each for each in ledger.waiting() if each.experiment_id == experiment_id]
    return found


@pytest.mark.parametrize("cause", ["lease_expired", "handed_back"])
def test_what_others_did_uses_up_no_budget_of_a_job(ledger: Ledger, cause: str) -> None:
    """Hosts, outages, people: however often."""
    experiment_id, (job,) = submitted(ledger, blocks=1)
    pauses = []
    for _ in range(0 if cause in blame.HOST else 9):
        ledger.end_attempt(job.job_id, begun(ledger, job).attempt, Outcome.LOST, cause)
        assert waiting_job(ledger, experiment_id).not_before <= time.time() + blame.PAUSES_S.get(cause, 0.0)
    for _ in range(60):
        assignment, before = begun(ledger, job), time.time()
        ledger.end_attempt(job.job_id, assignment.attempt, Outcome.LOST, cause)
        after, due = time.time(), waiting_job(ledger, experiment_id).not_before
        pauses.append((due - after, due - before))
    for wanted_s, (least, most) in zip([0, 4, 8, 16, blame.MAX_PAUSE_S], [*pauses[:4], pauses[-1]], strict=True):
        assert least <= max(wanted_s, blame.PAUSES_S.get(cause, 0.0)) <= most
    assert waiting_job(ledger, experiment_id).failed_on == frozenset()
    assert ledger.keep(answer(begun(ledger, job))) is KeepResult.NEW
    assert ledger.counts(experiment_id) == {"ok": 1}


def test_a_job_whose_workers_die_runs_alone_and_then_is_lost(ledger: Ledger) -> None:
    """The job that ran beside it need not run alone once it is lost."""
    experiment_id, (job,) = submitted(ledger, blocks=1)
    beside_id, (beside,) = submitted(ledger, blocks=1, serials="B")
    for number in range(blame.SUSPECT_AFTER + blame.LONE_DEATHS):
        assert not ledger.jobs(experiment_id, ["lost"])
        alone = number >= blame.SUSPECT_AFTER
        assert waiting_job(ledger, experiment_id).alone is waiting_job(ledger, beside_id).alone is alone
        attempts = [begun(ledger, job), *([] if alone else [begun(ledger, beside, "B")])]
        assert {row.alone for row in ledger.running() if row.experiment_id == experiment_id} == {alone}
        for one in attempts:
            ledger.end_attempt(one.job_id, one.attempt, Outcome.LOST, "worker_died")
    (row,) = ledger.jobs(experiment_id)
    assert (row.state, row.outcome, row.cause) == ("done", "lost", "kills_worker")
    assert not waiting_job(ledger, beside_id).alone


def test_lost_failed_and_killed_jobs_are_retried_and_keep_their_records(ledger: Ledger) -> None:
    experiment_id, (lost, failed, good, killed) = submitted(ledger, blocks=4, serials="R")
    for _ in range(3):
        ledger.keep(answer(begun(ledger, lost, "R"), Outcome.LOST, cause="transport_lost"))
    ledger.keep(answer(begun(ledger, failed, "R"), Outcome.FAILED, cause="unsupported"))
    ledger.keep(answer(begun(ledger, good, "R")))
    ledger.keep(answer(begun(ledger, killed, "R"), Outcome.KILLED))
    assert ledger.retry(experiment_id) == sorted([lost.job_id, failed.job_id, killed.job_id])
    assert ledger.retry(experiment_id) == [] == ledger.retry(good.job_id)
    assert ledger.counts(experiment_id) == {"waiting": 3, "ok": 1}
    for _ in range(2):
        ledger.keep(answer(begun(ledger, lost, "R"), Outcome.LOST, cause="transport_lost"))
    again = begun(ledger, lost, "R")
    assert again.attempt == 6, "its budget is whole again"
    ledger.keep(answer(again))
    assert ledger.counts(experiment_id) == {"waiting": 2, "ok": 2}
    assert len(list(ledger.records(experiment_id, outcomes=["lost"]))) == 5
    with pytest.raises(StableError, match=r"there is no experiment or job"):
        ledger.retry("nothing")


def test_a_host_is_quarantined_for_faults_of_its_own_not_for_each_session(ledger: Ledger) -> None:
    host, sick = f"h{next(count)}", ledger.standing.quarantined()  # PostgreSQL is shared by the tests of this module
    _, jobs = submitted(ledger, blocks=1, serials="ABCDEF")

    def fault() -> bool:
        """All sessions of the host are lost at once; whether it is in quarantine then."""
        together = [ledger.begin_attempt(job.job_id, job.candidates[0], host, 15.0) for job in jobs]
        for assignment in together:
            assert assignment is not None
            ledger.end_attempt(assignment.job_id, assignment.attempt, Outcome.LOST, "record_missing")
        return host in [each.serial for each in ledger.standing.quarantined_hosts()]

    assert [fault() for _ in range(3)] == [False, False, True]
    (held,) = (each for each in ledger.standing.quarantined_hosts() if each.serial == host)
    assert "3 faults of its own in a row, the last by record_missing" in held.reason
    assert ledger.standing.quarantined() == sick
    assert ledger.standing.parole_host(host) and not ledger.standing.parole_host(host)
    assert fault(), "one more on probation puts it back"
    assert ledger.standing.clear_host(host)
    assert not fault()
    good = ledger.begin_attempt(jobs[0].job_id, "A", host, 15.0)
    assert good is not None
    ledger.keep(answer(good))
    jobs.pop(0)
    assert [fault(), fault(), fault()] == [False, False, True], "a record clears its faults"


def test_conditions_that_are_not_met_use_up_no_budget_for_a_long_time(ledger: Ledger) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    for _ in range(blame.UNMET_LIMIT):
        ledger.keep(answer(begun(ledger, job), Outcome.LOST, cause="condition_not_met"))
    assert ledger.counts(experiment_id) == {"waiting": 1}
    waiting = waiting_job(ledger, experiment_id)
    assert waiting.not_before > 0 and waiting.failed_on == frozenset()
    ledger.keep(answer(begun(ledger, job), Outcome.LOST, cause="device_busy"))
    assert ledger.counts(experiment_id) == {"lost": 1}


def test_stable_outcomes_are_final(ledger: Ledger) -> None:
    experiment_id, jobs = submitted(ledger, blocks=3)
    for job, outcome in zip(jobs, (Outcome.FAILED, Outcome.KILLED, Outcome.INVALID), strict=True):
        ledger.keep(answer(begun(ledger, job), outcome))
    assert ledger.counts(experiment_id) == {"failed": 1, "killed": 1, "invalid": 1}


def test_an_older_token_is_refused(ledger: Ledger) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    old = begun(ledger, job)
    assert ledger.end_attempt(job.job_id, 1, Outcome.LOST, "lease_expired") is JobState.WAITING
    assert ledger.end_attempt(job.job_id, 1, Outcome.LOST, "lease_expired") is None
    new = begun(ledger, job, "A")
    assert ledger.keep(answer(old)) is KeepResult.STALE
    assert ledger.keep(answer(new)) is KeepResult.NEW
    assert [r.token for r in ledger.records(experiment_id)] == [new.token]
    with pytest.raises(Unstorable, match="the ledger has no job"):
        ledger.keep(make.record(make.job("unknown"), attempt=1, token=10**9))


def test_a_late_record_of_the_newest_token_still_counts(ledger: Ledger) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    assignment = begun(ledger, job)
    ledger.end_attempt(job.job_id, 1, Outcome.LOST, "lease_expired")
    assert ledger.keep(answer(assignment)) is KeepResult.NEW
    assert ledger.counts(experiment_id) == {"ok": 1}


def test_a_late_lost_record_is_not_counted_twice(ledger: Ledger) -> None:
    _, (job,) = submitted(ledger, blocks=1)
    assignment = begun(ledger, job)
    for _ in range(2):
        ledger.end_attempt(job.job_id, assignment.attempt, Outcome.LOST, "lease_expired")
        ledger.keep(answer(assignment, Outcome.LOST, cause="transport_lost"))
        assignment = begun(ledger, job)
    assert assignment.attempt == 3


def test_cancelling(ledger: Ledger) -> None:
    experiment_id, (first, second, third) = submitted(ledger, blocks=3)
    ledger.keep(answer(begun(ledger, first)))
    assignment = begun(ledger, second)
    assert ledger.cancel(third.job_id) == [third.job_id]
    assert ledger.cancel(experiment_id) == [second.job_id]
    assert ledger.cancel(experiment_id) == []
    (row,) = [r for r in ledger.running() if r.experiment_id == experiment_id]
    assert row.state is JobState.CANCELLED
    assert ledger.keep(answer(assignment, Outcome.CANCELLED)) is KeepResult.NEW
    assert ledger.counts(experiment_id) == {"ok": 1, "cancelled": 2}
    with pytest.raises(StableError, match=r"there is no experiment or job"):
        ledger.cancel("nothing")


def test_jobs_are_counted_by_the_only_device_that_may_run_them(ledger: Ledger) -> None:
    experiment_id, jobs = submitted(ledger, blocks=2, serials="AB")
    any_of, _ = submitted(ledger, blocks=3, serials="AB", count="any")
    ledger.keep(answer(begun(ledger, next(job for job in jobs if job.candidates == ("B",)), "B")))
    assert ledger.device_counts(experiment_id) == {"A": (0, 2), "B": (1, 2)}
    assert ledger.device_counts(any_of) == {}
    assert ledger.device_counts()["B"][1] >= 2


def test_waiting_shows_no_more_jobs_than_devices_of_each_choice(ledger: Ledger) -> None:
    all_of, _ = submitted(ledger, blocks=5, serials="AB")
    any_of, _ = submitted(ledger, blocks=5, serials="ABC", count="any")
    waiting = ledger.waiting()
    assert [w.candidates for w in waiting if w.experiment_id == all_of] == [("A",), ("B",)]
    assert [w.candidates for w in waiting if w.experiment_id == any_of] == [("A", "B", "C")] * 3
    orders = [w.order for w in waiting if w.experiment_id in (all_of, any_of)]
    assert orders == sorted(orders)


def test_a_device_that_keeps_losing_is_quarantined(ledger: Ledger) -> None:
    serial = f"S{next(count)}"
    _, jobs = submitted(ledger, blocks=5, serials=[serial])  # type: ignore[arg-type]
    causes = ["transport_lost", "service_down", "device_sick", None, "transport_lost", "device_sick", "transport_lost"]
    for cause in causes:
        waiting = next(j for j in ledger.jobs(jobs[0].experiment_id, ["waiting"]))
        assert serial not in [q.serial for q in ledger.standing.quarantined()]
        assignment = begun(ledger, waiting.job, serial)
        outcome = Outcome.LOST if cause else Outcome.OK
        ledger.keep(answer(assignment, outcome, cause=cause or ""))
    (found,) = [q for q in ledger.standing.quarantined() if q.serial == serial]
    assert found.reason == "3 attempts in a row were lost on it, the last by transport_lost"
    assert ledger.standing.clear_quarantine(serial) and not ledger.standing.clear_quarantine(serial)


def test_a_relapse_on_probation_doubles_the_quarantine_and_a_success_ends_it(ledger: Ledger) -> None:
    serial = f"S{next(count)}"
    _, jobs = submitted(ledger, blocks=9, serials=[serial])  # type: ignore[arg-type]

    def attempt(outcome: Outcome) -> None:
        waiting = ledger.jobs(jobs[0].experiment_id, ["waiting"])[0]
        ledger.keep(answer(begun(ledger, waiting.job, serial), outcome, cause="device_sick"))

    def term_s() -> float | None:
        return next((round(q.until - q.since) for q in ledger.standing.quarantined() if q.serial == serial), None)

    terms: list[float | None] = []
    for _ in range(3):
        attempt(Outcome.LOST)
    for _ in range(8):
        terms.append(term_s())
        assert ledger.standing.parole(serial) and term_s() is None
        attempt(Outcome.LOST)
    assert terms == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    ledger.standing.parole(serial)
    attempt(Outcome.OK)
    for _ in range(2):
        attempt(Outcome.LOST)
    assert term_s() is None
    attempt(Outcome.LOST)
    assert term_s() == 60
    assert not ledger.standing.parole("unknown")


def running(ledger: Ledger, experiment_id: str) -> int:
    return sum(row.experiment_id == experiment_id for row in ledger.running())


def test_failed_devices_are_remembered(ledger: Ledger) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1, serials="AB", count="any")
    ledger.keep(answer(begun(ledger, job, "A"), Outcome.LOST, cause="transport_lost"))
    (waiting,) = [w for w in ledger.waiting() if w.experiment_id == experiment_id]
    assert waiting.failed_on == {"A"}
    assert running(ledger, experiment_id) == 0
    begun(ledger, job, "B")
    submitted(ledger)
    _, rest = submitted(ledger, blocks=2)
    begun(ledger, rest[0])
    assert running(ledger, rest[0].experiment_id) == 1


def test_threads_that_begin_at_once_get_different_tokens(url: str) -> None:
    with Ledger(url) as ledger, Ledger(url) as other:
        _, jobs = submitted(ledger, blocks=12)
        begun_by: list[Assignment | None] = []

        def work(mine: Ledger) -> None:
            begun_by.extend([mine.begin_attempt(j.job_id, "A", "lab", 1.0) for j in jobs])

        threads = [threading.Thread(target=work, args=(each,)) for each in (ledger, other, ledger, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assigned = [a for a in begun_by if a is not None]
        assert len(begun_by) == 48 and len(assigned) == 12
        assert len({a.token for a in assigned}) == 12 and len({a.job_id for a in assigned}) == 12


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger's file, closed."""
    path = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{path}").close()
    return path


def changed(path: Path, statement: str) -> str:
    """Do something to a ledger behind its back; its URL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE counters SET value = 99 WHERE name = 'schema'", f"version 99, .* knows {SCHEMA_VERSION}: a newer"),
        (
            "UPDATE counters SET value = 0 WHERE name = 'schema'",
            f"version 0, .* knows {SCHEMA_VERSION}: a pocketfarm from before",
        ),
        ("DELETE FROM counters WHERE name = 'schema'", "without a version"),
        ("DROP TABLE counters", "without a version"),
        ("ALTER TABLE device_health DROP COLUMN failed_at", r"lack device_health\.failed_at"),
        ("DROP TABLE records", r"lack records\.job_id, records\.attempt"),
    ],
)
def test_a_ledger_of_another_schema_is_refused_with_what_to_do(file: Path, statement: str, told: str) -> None:
    with pytest.raises(SetupError, match=told) as caught:
        Ledger(changed(file, statement))
    assert str(file) in str(caught.value)
    assert "--state" in str(caught.value.remedy)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_text("a letter to my aunt, which is longer than the header of a database " * 20)
    before = path.read_bytes()
    with pytest.raises(SetupError, match="is no ledger"):
        Ledger(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_postgresql_database_without_an_encoding_keeps_every_letter(postgres: str) -> None:
    """The database is as `createdb` makes it where the machine's locale is C."""
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0"))
    engine.dispose()
    with Ledger(postgres.replace("/postgres?", "/plain?"), retries=3, quarantine_after=3) as ledger:
        experiment_id, (job,) = submitted(ledger, blocks=1)
        record = answer(begun(ledger, job), Outcome.FAILED, cause="internal", reasons=("Gerät, 携帯",))
        assert ledger.keep(record) is KeepResult.NEW
        assert list(ledger.records(experiment_id)) == [record]


def test_a_postgresql_ledger_of_another_schema_is_refused(postgres: str) -> None:
    Ledger(postgres).close()
    engine = create_engine(postgres)

    def do(statement: str) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)

    do("ALTER TABLE device_health RENAME COLUMN failed_at TO failed")
    try:
        with pytest.raises(SetupError, match=r"lack device_health\.failed_at"):
            Ledger(postgres)
    finally:
        do("ALTER TABLE device_health RENAME COLUMN failed TO failed_at")
        engine.dispose()
    Ledger(postgres).close()


def test_processes_that_open_a_new_ledger_at_once_all_can(url: str) -> None:
    opened: list[Ledger] = []
    threads = [threading.Thread(target=lambda: opened.append(Ledger(url))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    for ledger in opened:
        ledger.close()


def test_a_new_ledger_that_another_process_writes_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")  # before the file keeps a write-ahead log
        end = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
        end.start()
        Ledger(f"sqlite:///{path}").close()
        end.join()


def test_a_postgresql_that_takes_the_call_and_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.ledger.database.opening.CONNECT_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"postgresql+psycopg://farm@127.0.0.1:{mute.getsockname()[1]}/farm"
        with pytest.raises(ServiceDown, match="does not answer"):
            Ledger(address)
        monkeypatch.setattr("orchestrator.ledger.database.opening.CONNECT_S", 10_000)
        with pytest.raises(ServiceDown, match="does not answer"):
            Ledger(f"{address}?connect_timeout=2")


def test_urls_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be used"):
        Ledger("nonsense")
    with pytest.raises(ServiceDown, match="does not answer") as caught:
        Ledger(f"postgresql+psycopg://farm:secret@/postgres?host={tmp_path}")
    assert "secret" not in str(caught.value)


def timed(assignment: Assignment, *times_ms: float, **more: object) -> Record:
    samples = tuple(
        Sample(seq=i, t_ns=i, index=i, phase="timed", start_ns=i, duration_ns=int(ms * 1e6))
        for i, ms in enumerate(times_ms)
    )
    return answer(assignment, samples=samples, **more)


def in_database(url: str, statement: str, **values: object) -> list[Row]:
    engine = create_engine(url)
    with engine.begin() as connection:
        found = connection.execute(text(statement), values)
        rows = list(found.all()) if found.returns_rows else []
    engine.dispose()
    return rows


def test_a_record_is_kept_with_its_figures(ledger: Ledger, url: str) -> None:
    experiment_id, jobs = submitted(ledger)
    kept = [timed(begun(ledger, job), *times) for job, times in zip(jobs, [(4.0, 5.0, 7.0), ()], strict=True)]
    for record in (*kept, kept[0]):  # the last is a duplicate
        ledger.keep(record)
    query = "SELECT job_id, serial, outcome, median_ms, version, error FROM figures WHERE experiment_id = :id"
    rows = {tuple(row) for row in in_database(url, query, id=experiment_id)}
    medians = (5.0, None)
    assert rows == {(j.job_id, "A", "ok", ms, FIGURES_VERSION, "") for j, ms in zip(jobs, medians, strict=True)}
    found = {each.job_id: each for each in ledger.figures(experiment_id)}
    assert found == {job.job_id: figures_of(record, job.cell) for job, record in zip(jobs, kept, strict=True)}
    assert ledger.figures_of([jobs[0].job_id]) == [found[jobs[0].job_id]]
    assert {each.job_id: each for each in ledger.briefs(experiment_id)} == {
        job_id: brief_of(each) for job_id, each in found.items()
    }


def test_briefs_are_read_by_bodies_where_there_are_none_and_a_bad_one_stops_no_other(
    ledger: Ledger, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    experiment_id, jobs = submitted(ledger, blocks=3)
    for number, job in enumerate(jobs):
        ledger.keep(timed(begun(ledger, job), 5.0 + number))
    before = sorted(ledger.briefs(experiment_id), key=lambda each: each.median_ms or 0.0)
    assert [each.median_ms for each in before] == [5.0, 6.0, 7.0]
    in_database(url, "UPDATE figures SET brief = NULL WHERE job_id = :id", id=jobs[0].job_id)
    in_database(url, "UPDATE figures SET brief = '[1]' WHERE job_id = :id", id=jobs[1].job_id)
    assert sorted(ledger.briefs(experiment_id), key=lambda each: each.median_ms or 0.0) == [before[0], before[2]]
    assert jobs[1].job_id in caplog.text and jobs[0].job_id not in caplog.text
    assert list(ledger.renew_figures(experiment_id, everything=True)) == [Renewed(3, 2, 0)]
    assert sorted(ledger.briefs(experiment_id), key=lambda each: each.median_ms or 0.0) == before


def test_a_record_and_its_figures_are_kept_together_or_not_at_all(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    record = timed(begun(ledger, job), 5.0)
    monkeypatch.setattr(keep, "conclude_all", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ledger.keep(record)
    monkeypatch.undo()
    assert list(ledger.records(experiment_id)) == []
    assert in_database(url, "SELECT job_id FROM figures WHERE job_id = :id", id=job.job_id) == []
    assert ledger.keep(record) is KeepResult.NEW and len(ledger.figures(experiment_id)) == 1


def test_figures_that_cannot_be_made_cost_no_record(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    record = timed(begun(ledger, job), 5.0)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a value of \0 nobody thought of")

    monkeypatch.setattr("orchestrator.ledger.figures.intake.figures_of", broken)
    assert ledger.keep(record) is KeepResult.NEW
    assert list(ledger.records(experiment_id)) == [record] and ledger.counts(experiment_id) == {"ok": 1}
    assert ledger.figures(experiment_id) == [] and "ZeroDivisionError" in caplog.text
    (row,) = in_database(url, "SELECT error, version FROM figures WHERE job_id = :id", id=job.job_id)
    assert row.error == "ZeroDivisionError: a value of ? nobody thought of"
    assert list(ledger.renew_figures(experiment_id)) == [], "it is not tried again and again"
    monkeypatch.undo()
    assert list(ledger.renew_figures(experiment_id, faulty=True)) == [Renewed(1, 1, 0)]
    assert ledger.figures(experiment_id) == [figures_of(record, job.cell)]


@pytest.mark.parametrize(
    "damage", ["DELETE FROM figures", "UPDATE figures SET version = 0, body = NULL"], ids=["missing", "older"]
)
def test_rows_that_are_missing_or_older_are_made_when_asked_for(ledger: Ledger, url: str, damage: str) -> None:
    experiment_id, jobs = submitted(ledger, blocks=3)
    for number, job in enumerate(jobs):
        ledger.keep(timed(begun(ledger, job), 5.0 + number))
    before = sorted(ledger.figures(experiment_id), key=lambda each: each.token)
    in_database(url, f"{damage} WHERE experiment_id = :id", id=experiment_id)
    assert ledger.figures_of([jobs[1].job_id]) == [before[1]]
    kept = "SELECT count(*) AS rows FROM figures WHERE experiment_id = :id AND version = :version"
    assert in_database(url, kept, id=experiment_id, version=FIGURES_VERSION)[0].rows == 1, "no others were made"
    assert sorted(ledger.figures(experiment_id), key=lambda each: each.token) == before
    assert in_database(url, kept, id=experiment_id, version=FIGURES_VERSION)[0].rows == 3
    assert list(ledger.renew_figures(experiment_id, everything=True)) == [Renewed(3, 0, 0)]


def test_figures_outlive_their_record(ledger: Ledger, url: str) -> None:
    experiment_id, (job,) = submitted(ledger, blocks=1)
    ledger.keep(timed(begun(ledger, job), 5.0))
    (before,) = ledger.figures(experiment_id)
    in_database(url, "DELETE FROM records WHERE job_id = :id", id=job.job_id)
    assert list(ledger.renew_figures(experiment_id, everything=True)) == []
    assert ledger.figures(experiment_id) == [before]
