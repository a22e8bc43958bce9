"""A check finds each planted fault by its row, and none in a ledger that is whole; SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.ledger import Ledger
from orchestrator.ledger.upkeep.check import Fault, check
from orchestrator.model.people import Kind, Role
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Once
from tests.integration.orchestrator import ledgers
from tests.integration.orchestrator.sites import ME


@pytest.fixture
def url(url: str) -> str:
    """A ledger with jobs that were measured, lost, cancelled, are under way and wait, and a dead record."""
    with Ledger(url, retries=1) as ledger:
        jobs = ledgers.filled(ledger, 6)
        ledgers.begun(ledger, jobs[-1])
        lost, cancelled, *_ = ledgers.filled(ledger, 1, "second-1") + ledgers.filled(ledger, 1, "third-1")
        ledger.end_attempt(lost.job_id, ledgers.begun(ledger, lost).attempt, Outcome.LOST, "transport_lost")
        ledgers.begun(ledger, cancelled)
        ledger.cancel("third-1")
        ledger.dead.set_aside(b"no record", "it is none", host="lab", name="x:1")
    return url


def found(url: str) -> tuple[Counter[str], list[Fault]]:
    rows: Counter[str] = Counter()
    faults: list[Fault] = []
    with ledgers.database(url) as database:
        for looked in check(database):
            rows[looked.at] += looked.rows
            faults += looked.faults
    return rows, faults


def test_a_whole_ledger_has_no_fault_and_every_row_is_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.ledger.upkeep.check.steps.BATCH", 2)  # pages end within tables, and at their end
    rows, faults = found(url)
    assert faults == []
    assert {name: rows[name] for name in ("experiments", "jobs", "attempts", "records", "figures", "dead_records")} == {
        "experiments": 3, "jobs": 8, "attempts": 8, "records": 5, "figures": 5, "dead_records": 1,
    }  # fmt: skip


def test_what_people_said_and_did_has_no_fault_on_either_database(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.standing.hold(["C"], "anna", alone=True)
        ledger.nights.begin("night-1", "suite", 1.0, b"{}")
        ledger.people.add("anna", Kind.PERSON)
        ledger.people.grant("anna", Role.VIEW, "common")
        ledger.people.groups.join("anna", ["anna"])
        ledger.people.tokens.make("anna", Role.VIEW, "", "", None)
        ledger.people.answers.keep("anna", Once("key", "ab" * 32), "{}")
        ledger.audit.note(ME, "hold", "C", "refused", refused=True)
    rows, faults = found(url)
    assert faults == []
    assert {
        rows[name] for name in ("holds", "nights", "people", "grouped", "members", "tokens", "answers", "audit")
    } == {1}


MINE = "(SELECT MIN(id) FROM jobs WHERE outcome = 'ok')"
PLANTED = {
    "spec": ("UPDATE experiments SET spec = '{' WHERE id = 'second-1'", "experiments", "second-1"),
    "exclusions": ("UPDATE experiments SET exclusions = '[1]' WHERE id = 'second-1'", "experiments", "second-1"),
    "infinite": ("UPDATE experiments SET served_at = 9e999 WHERE id = 'third-1'", "experiments", "third-1"),
    "number": ("UPDATE counters SET value = 1 WHERE name = 'experiment'", "experiments", "second-1"),
    "template": ("UPDATE templates SET body = :bad", "templates", None),
    "choice": ("UPDATE choices SET candidate_count = 7", "choices", None),
    "choice text": ("UPDATE choices SET candidates = '['", "choices", None),
    "state": (f"UPDATE jobs SET state = 'odd' WHERE id = {MINE}", "jobs", "job"),
    "token of a job": (f"UPDATE jobs SET token = 77 WHERE id = {MINE}", "jobs", "job"),
    "under way": (f"UPDATE jobs SET state = 'running', outcome = '' WHERE id = {MINE}", "jobs", "job"),
    "outcome": (f"UPDATE jobs SET outcome = '' WHERE id = {MINE}", "jobs", "job"),
    "lane": (
        f"UPDATE jobs SET lane_id = (SELECT MAX(id) FROM lanes WHERE experiment = 2) WHERE id = {MINE}", "jobs", "job",
    ),
    "attempt": (f"UPDATE attempts SET ended_at = NULL WHERE job_id = {MINE}", "attempts", "job 1"),
    "tokens back": ("UPDATE counters SET value = 7 WHERE name = 'token'", "attempts", None),
    "no record": (f"DELETE FROM records WHERE job_id = {MINE}", "jobs", "job"),
    "another outcome": (f"UPDATE records SET outcome = 'lost' WHERE job_id = {MINE}", "records", "job 1"),
    "record": (f"UPDATE records SET body = :bad WHERE job_id = {MINE}", "records", "job 1"),
    "token of a record": (f"UPDATE records SET token = 77 WHERE job_id = {MINE}", "records", "job 1"),
    "experiment": (f"UPDATE records SET experiment_id = 'second-1' WHERE job_id = {MINE}", "records", "job 1"),
    "figures": (f"UPDATE figures SET body = :bad WHERE job_id = {MINE}", "figures", "job 1"),
    "brief": (f"UPDATE figures SET brief = '[1,2]' WHERE job_id = {MINE}", "figures", "job 1"),
    "serial": (f"UPDATE figures SET serial = 'Z' WHERE job_id = {MINE}", "figures", "job 1"),
    "dead record": ("UPDATE dead_records SET body = :bad", "dead_records", None),
    "version": ("UPDATE alembic_version SET version_num = '3'", "alembic_version", "3"),
}  # fmt: skip
HARMLESS = {
    "no figures": (f"DELETE FROM figures WHERE job_id = {MINE}", "records"),
    "old figures": (f"UPDATE figures SET version = 0 WHERE job_id = {MINE}", "figures"),
}


def test_each_planted_fault_is_found_by_its_row(url: str) -> None:
    """One after the other, each put back: a copy of the tables for each would take longer than the checks."""
    bad = "x'00'" if url.startswith("sqlite") else "'\\x00'::bytea"
    with ledgers.database(url) as database:
        for name, (statement, table, row) in PLANTED.items():
            with pytest.raises(_Undo), database.write() as connection:
                job_id = connection.exec_driver_sql(f"SELECT {MINE}").scalar_one()
                connection.exec_driver_sql(
                    statement.replace(":bad", bad).replace(
                        "9e999", "'infinity'::float8" if "x00'::" in bad else "9e999"
                    )
                )
                wrong = [fault for looked in check(_Same(connection)) for fault in looked.faults]
                raise _Undo
            hits = [fault for fault in wrong if fault.table == table and not fault.harmless and fault.remedy]
            assert hits, f"{name}: {wrong}"
            if row is not None:
                assert row.replace("job", job_id) in {fault.row for fault in hits}, name
        for name, (statement, table) in HARMLESS.items():
            with pytest.raises(_Undo), database.write() as connection:
                connection.exec_driver_sql(statement)
                wrong = [fault for looked in check(_Same(connection)) for fault in looked.faults]
                raise _Undo
            assert [(fault.table, fault.harmless) for fault in wrong] == [(table, True)], name


class _Undo(Exception):
    """Roll the planted fault back."""


class _Same:
    """A database whose every transaction is this one."""

    def __init__(self, connection: object) -> None:
        self.connection = connection

    def read(self) -> _Same:
        return self

    def __enter__(self) -> object:
        return self.connection

    def __exit__(self, *_: object) -> None:
        return None


def test_a_damaged_page_and_a_missing_parent_are_found(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    url = f"sqlite:///{file}"
    with Ledger(url) as ledger:
        ledgers.filled(ledger, 5)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM experiments")  # without foreign keys
        connection.execute("INSERT INTO experiments SELECT 'other', 1, '{}', '[]', 1.0, 1.0, '', 'common', ''")
    _, faults = found(url)
    assert any("names a row of experiments" in fault.what for fault in faults)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as damaged:
        damaged.seek((root - 1) * size)
        damaged.write(b"\xff" * size)
    rows, faults = found(url)
    assert {"file", "records"} <= {fault.table for fault in faults}
    assert rows["figures"] == 4, "the other tables are read to their end"
