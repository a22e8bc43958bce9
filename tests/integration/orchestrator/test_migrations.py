"""A ledger of an older version is opened, and keeps all that it held, from the first release on; SQLite, PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic import autogenerate, command, script
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, create_engine, inspect, select, text

from orchestrator.ledger import Hold, KeepResult, Ledger, migrations, schema
from orchestrator.ledger.migrations.versions.v0023_wide_counters import WIDENED
from orchestrator.ledger.tables import METADATA, SCHEMA_VERSION
from orchestrator.model.errors import SetupError
from orchestrator.model.job import Job
from orchestrator.spec.expansion.expand import expand
from tests.unit.orchestrator import make

from .conftest import NEXT

SERIALS = tuple(f"R58M{n:08d}" for n in range(300))
"""Serials as long as real ones, and more of them than an index of PostgreSQL could hold in one row."""

HOLDS_21 = """CREATE TABLE holds (serial VARCHAR(200) PRIMARY KEY, who VARCHAR(100) NOT NULL, since FLOAT NOT NULL,
until FLOAT, note TEXT NOT NULL, alone BOOLEAN DEFAULT false NOT NULL)"""


@contextmanager
def opened(url: str) -> Iterator[Connection]:
    engine = create_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def jobs_of(experiment_id: str, serials: tuple[str, ...], count: str = "all") -> tuple[Job, ...]:
    return expand(make.many(2, count=count), experiment_id, [make.device(s) for s in serials]).jobs


def filled(url: str) -> list[Job]:
    """A ledger of this version: an experiment with jobs of two devices, one job ended with its record."""
    every = [*jobs_of("old", ("A", "B"))]
    with Ledger(url) as ledger:
        assert ledger.submit("old", make.many(2), tuple(every))
        first = every[0]
        assignment = ledger.begin_attempt(first.job_id, first.candidates[0], "lab", 15.0)
        assert assignment is not None
        record = make.record(first, attempt=1, token=assignment.token, serial=first.candidates[0])
        assert ledger.keep(record) is KeepResult.NEW
    return every


def test_an_old_ledger_keeps_all_that_it_held_and_goes_on(url: str, next_version: Callable[[], None]) -> None:
    every = filled(url)
    next_version()
    for _ in range(2):  # the second time there is nothing to upgrade
        with Ledger(url) as ledger:
            assert [row.job for row in ledger.jobs("old")] == every
            assert ledger.counts() == {"ok": 1, "waiting": len(every) - 1}
            assert [record.job_id for record in ledger.records("old")] == [every[0].job_id]
            assert [figures.job_id for figures in ledger.figures("old")] == [every[0].job_id]
            assert dict(ledger.device_counts("old")) == {"A": (1, 2), "B": (0, 2)}
    with Ledger(url) as ledger:
        assignment = ledger.begin_attempt(every[1].job_id, every[1].candidates[0], "lab", 15.0)
        assert assignment is not None and assignment.token == 2
        assert ledger.submit("new", make.many(2), jobs_of("new", ("A",)))
    with opened(url) as connection:
        assert connection.scalar(text("SELECT value FROM counters WHERE name = 'schema'")) == NEXT
        assert {*connection.scalars(text("SELECT note FROM jobs"))} == {"none"}


def test_tables_are_those_that_the_code_declares(url: str) -> None:
    Ledger(url).close()
    with opened(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert autogenerate.compare_metadata(context, METADATA) == []
        assert context.get_current_revision() == str(SCHEMA_VERSION)
        scripts = script.ScriptDirectory.from_config(migrations.config_of(connection))
        assert scripts.get_heads() == [str(SCHEMA_VERSION)] and scripts.get_bases() == [str(schema.FIRST_VERSION)]


def test_a_ledger_of_the_first_release_gets_people_and_keeps_its_holds(url: str) -> None:
    every = filled(url)
    with opened(url) as connection:
        people = (
            "answers",
            "deliveries",
            "webhooks",
            "links",
            "tokens",
            "members",
            "grouped",
            "people",
            "projects",
            "usage",
        )
        for table in (*people, "holds", "device_notes", "device_history"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text(HOLDS_21))
        connection.execute(text("INSERT INTO holds VALUES ('A', 'anna', 1.5, NULL, 'new battery', true)"))
        connection.execute(text("DROP INDEX records_by_experiment"))
        for table, column in (
            ("records", "bytes"),
            ("experiments", "project"),
            ("experiments", "origin"),
            ("audit", "origin"),
            ("audit", "refused"),
        ):
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(text("CREATE INDEX records_by_experiment ON records (experiment_id, started_at)"))
        for table, columns in WIDENED.items() if connection.dialect.name == "postgresql" else ():
            for column in columns:
                connection.execute(text(f"ALTER TABLE {table} ALTER {column} TYPE INTEGER"))
        connection.execute(text("UPDATE counters SET value = 21 WHERE name = 'schema'"))
        connection.execute(text("UPDATE alembic_version SET version_num = '21'"))
    with Ledger(url) as ledger:
        assert [row.job for row in ledger.jobs("old")] == every and ledger.experiment("old").project == "common"
        assert [each.name for each in ledger.people.projects()] == ["common"] and ledger.people.every() == []
        ledger.skip_tokens(2**31)
        later = ledger.begin_attempt(every[1].job_id, every[1].candidates[0], "lab", 15.0)
        assert later is not None and later.token > 2**31
        assert ledger.standing.holds() == [Hold("A", "anna", 1.5, None, "new battery", alone=True, id=1)]
        assert [each.serial for each in ledger.standing.hold(["A", "B"], "bob")] == ["A"]
    with opened(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert autogenerate.compare_metadata(context, METADATA) == []


@pytest.mark.parametrize("version", [1, schema.FIRST_VERSION - 1])
def test_a_ledger_of_before_the_release_is_refused_with_its_way(url: str, version: int) -> None:
    filled(url)
    with opened(url) as connection:
        connection.execute(text("UPDATE counters SET value = :v WHERE name = 'schema'"), {"v": version})
    with pytest.raises(SetupError, match=rf"version {version}.*before release 0\.1\.0") as caught:
        Ledger(url)
    assert "the last commit before release 0.1.0" in str(caught.value.remedy)


def test_an_upgrade_that_is_interrupted_changes_nothing(
    url: str, next_version: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = filled(url)
    next_version()
    run = command.upgrade

    def broken(*arguments: object) -> None:
        run(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(command, "upgrade", broken)
        Ledger(url)
    with opened(url) as connection:
        assert connection.scalar(text("SELECT value FROM counters WHERE name = 'schema'")) == SCHEMA_VERSION
        assert "note" not in {column["name"] for column in inspect(connection).get_columns("jobs")}
    with Ledger(url) as ledger:
        assert [row.job for row in ledger.jobs("old")] == every


def test_a_waiting_job_takes_little_room(tmp_path: Path) -> None:
    file, jobs = tmp_path / "ledger.sqlite", 3000
    with Ledger(f"sqlite:///{file}") as ledger:
        for experiment_id in ("a", "b", "c"):
            made = expand(make.many(jobs // 3, count="any"), experiment_id, [make.device(s) for s in SERIALS])
            assert ledger.submit(experiment_id, make.many(jobs // 3, count="any"), made.jobs)
    assert file.stat().st_size / jobs <= 300, "bytes a job, 300 phones that may run it included"


def test_threads_that_open_an_old_ledger_at_once_all_can(url: str, next_version: Callable[[], None]) -> None:
    every, read = filled(url), list[list[Job]]()
    next_version()

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
