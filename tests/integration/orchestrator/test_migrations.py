"""A ledger of any version that ever landed is opened, and keeps all that it held; SQLite and PostgreSQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic import autogenerate, command, script
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, create_engine, insert, select, text

from orchestrator.errors import SetupError
from orchestrator.expansion.expand import expand
from orchestrator.ledger import KeepResult, Ledger, migrations
from orchestrator.ledger.attempts import record_columns
from orchestrator.ledger.rows import JobState, block_label, label, pack
from orchestrator.ledger.tables import METADATA, SCHEMA_VERSION
from orchestrator.model.job import Job
from tests.servers import private_postgres
from tests.unit.orchestrator import make

SERIALS = tuple(f"R58M{n:08d}" for n in range(300))
"""As long as real ones, and more of them than an index of PostgreSQL could hold in one row."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_postgres(tmp_path_factory.mktemp("postgres")) as url:
        yield url


count = iter(range(1000))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    server, name = request.getfixturevalue("server"), f"m{next(count)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return str(engine.url.set(database=name).render_as_string(hide_password=False))


@contextmanager
def opened(url: str) -> Iterator[Connection]:
    engine = create_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def jobs_of(experiment_id: str, serials: tuple[str, ...], count: str = "all") -> tuple[Job, ...]:
    return expand(make.many(2, count=count), experiment_id, [make.device(s) for s in serials]).jobs


def of_version_1(url: str) -> list[Job]:
    """A ledger as version 1 wrote it: an experiment with jobs of two devices, one job ended with its record."""
    every = [*jobs_of("old", ("A", "B"))]
    with opened(url) as connection:
        migrations.upgrade(connection, "1")
        connection.execute(text("DROP TABLE alembic_version"))  # that version did not know it
        found = MetaData()
        found.reflect(connection)
        tables = found.tables
        spec = make.many(2).model_dump_json()
        values = {"id": "old", "sequence": 1, "spec": spec, "exclusions": "[]", "submitted_at": 1.0, "served_at": 0.0}
        connection.execute(insert(tables["experiments"]).values(values))
        for index, job in enumerate(every):
            _add_job(connection, tables["jobs"], job, index)
        first = every[0]
        record = make.record(first, attempt=1, token=1, serial=first.candidates[0])
        known = {"job_id": first.job_id, "attempt": 1, "token": 1, "serial": first.candidates[0], "host": "lab"}
        ended = {"ttl_s": 1.0, "started_at": 1.0, "ended_at": 2.0, "outcome": "ok", "cause": ""}
        connection.execute(insert(tables["attempts"]).values(known | ended))
        connection.execute(insert(tables["records"]).values(record_columns(record)))
        done = "UPDATE jobs SET state = 'done', outcome = 'ok', attempts = 1, token = 1 WHERE id = :id"
        connection.execute(text(done), {"id": first.job_id})
        connection.execute(text("UPDATE counters SET value = 1 WHERE name <> 'schema'"))
    return every


def _add_job(connection: Connection, table: Table, job: Job, index: int) -> None:
    start = {"outcome": "", "cause": "", "attempts": 0, "failures": 0, "token": 0, "not_before": 0.0}
    lane = {"candidates": json.dumps(job.candidates), "candidate_count": len(job.candidates)}
    names = {
        "experiment_id": job.experiment_id,
        "cell_id": job.cell.cell_id,
        "label": block_label(label(job), job.block),
    }
    own = {"id": job.job_id, "sequence": index, "block": job.block, "priority": job.priority, "body": pack(job)}
    columns = {**names, **own, **lane, **start, "experiment_sequence": 1, "state": JobState.WAITING}
    connection.execute(insert(table).values(columns))


def test_an_old_ledger_keeps_all_that_it_held_and_goes_on(url: str) -> None:
    every = of_version_1(url)
    for _ in range(2):  # the second time there is nothing to upgrade
        with Ledger(url) as ledger:
            assert [row.job for row in ledger.jobs("old")] == every
            assert ledger.counts() == {"ok": 1, "waiting": len(every) - 1}
            assert {w.job_id for w in ledger.waiting()} == {job.job_id for job in every[1:3]}
            assert [record.job_id for record in ledger.records("old")] == [every[0].job_id]
            assert [figures.job_id for figures in ledger.figures("old")] == [every[0].job_id]
            assert dict(ledger.device_counts("old")) == {"A": (1, 2), "B": (0, 2)}
    with Ledger(url) as ledger:
        assignment = ledger.begin_attempt(every[1].job_id, every[1].candidates[0], "lab", 15.0)
        assert assignment is not None and assignment.token == 2
        record = make.record(assignment.job, attempt=1, token=2, serial=assignment.serial)
        assert ledger.keep(record) is KeepResult.NEW
        assert ledger.submit("new", make.many(2), jobs_of("new", ("A",)))
    with opened(url) as connection:
        assert connection.scalar(text("SELECT value FROM counters WHERE name = 'schema'")) == SCHEMA_VERSION


@pytest.mark.parametrize("made", ["by_upgrades", "at_once"])
def test_tables_are_those_that_the_code_declares(url: str, made: str) -> None:
    if made == "by_upgrades":
        of_version_1(url)
    Ledger(url).close()
    with opened(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert autogenerate.compare_metadata(context, METADATA) == []
        assert context.get_current_revision() == str(SCHEMA_VERSION)


def test_the_version_is_that_of_the_newest_script(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path / 'x'}") as connection:
        assert script.ScriptDirectory.from_config(migrations.config_of(connection)).get_heads() == [str(SCHEMA_VERSION)]


def test_an_upgrade_that_is_interrupted_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = of_version_1(url)
    run = command.upgrade

    def broken(*arguments: object) -> None:
        run(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(KeyboardInterrupt):
        Ledger(url)
    monkeypatch.undo()
    with opened(url) as connection:
        assert connection.scalar(text("SELECT value FROM counters WHERE name = 'schema'")) == 1
        assert connection.scalar(text("SELECT count(candidates) FROM jobs")) == len(every)
    with Ledger(url) as ledger:
        assert [row.job for row in ledger.jobs("old")] == every


def test_a_job_that_could_not_be_read_is_still_one_after_the_upgrade(url: str) -> None:
    every = of_version_1(url)
    with opened(url) as connection:
        damaged = {"id": every[1].job_id, "body": b"no zlib"}
        connection.execute(text("UPDATE jobs SET body = :body WHERE id = :id"), damaged)
    with Ledger(url) as ledger:
        assert [row.job for row in ledger.jobs("old")] == [every[0], *every[2:]]
        assert ledger.begin_attempt(every[1].job_id, "A", "lab", 15.0) is None
        assert ledger.counts() == {"ok": 1, "failed": 1, "waiting": len(every) - 2}


def test_a_waiting_job_takes_little_room(tmp_path: Path) -> None:
    file, jobs = tmp_path / "ledger.sqlite", 3000
    with Ledger(f"sqlite:///{file}") as ledger:
        for experiment_id in ("a", "b", "c"):
            made = expand(make.many(jobs // 3, count="any"), experiment_id, [make.device(s) for s in SERIALS])
            assert ledger.submit(experiment_id, make.many(jobs // 3, count="any"), made.jobs)
    assert file.stat().st_size / jobs <= 300, "bytes a job, 300 phones that may run it included"


def test_processes_that_open_an_old_ledger_at_once_all_can(url: str) -> None:
    every, read = of_version_1(url), []

    def look() -> None:
        with Ledger(url) as ledger:
            read.append([row.job for row in ledger.jobs("old")])

    threads = [threading.Thread(target=look) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [every] * 5


def test_a_newer_ledger_is_refused_and_left(url: str) -> None:
    Ledger(url).close()
    with opened(url) as connection:
        connection.execute(text("UPDATE counters SET value = 99 WHERE name = 'schema'"))
    with pytest.raises(SetupError, match="a newer pocketfarm wrote it"):
        Ledger(url)


def test_any_of_hundreds_of_phones_may_run_a_job(url: str) -> None:
    with Ledger(url) as ledger:
        jobs = jobs_of("e", SERIALS, "any")
        assert ledger.submit("e", make.many(2, count="any"), jobs)
        waiting = ledger.waiting()
        assert [set(job.candidates) for job in waiting] == [set(SERIALS)] * len(jobs) != []
    with opened(url) as connection:
        lanes = Table("lanes", MetaData(), autoload_with=connection)
        assert len(connection.execute(select(lanes.c.id)).all()) == 1
