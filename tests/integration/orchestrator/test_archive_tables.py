"""Rows that are archived, pruned and taken in again are the same, on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, FIGURES, JOBS, RECORDS, TEMPLATES
from orchestrator.ledger.upkeep import archives
from orchestrator.ledger.upkeep.check import check
from orchestrator.model.errors import SetupError
from tests.integration.orchestrator import ledgers

NUMBERS = {"template_id", "lane_id", "changed", "kept_at"}
"""Columns of this ledger's own, and when it got a record."""


def rows(database: Database) -> dict[str, list[dict[str, object]]]:
    found = {}
    with database.read() as connection:
        for table in (EXPERIMENTS, JOBS, ATTEMPTS, RECORDS, FIGURES, TEMPLATES):
            columns = [
                column for column in table.c if column.name not in NUMBERS and (table, column.name) != (TEMPLATES, "id")
            ]
            every = connection.execute(select(*columns).order_by(*columns[:2])).all()
            found[table.name] = [dict(row._mapping) for row in every]
    return found


def test_rows_come_back_as_they_were(url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    with Ledger(url) as ledger, ledgers.database(url) as database:
        for experiment_id in ("first-1", "second-1"):
            ledger.cancel(ledgers.filled(ledger, 4, experiment_id)[-1].job_id)
        newest = ledgers.measured(ledger, ledgers.filled(ledger, 1, "third-1")[0])
        before = rows(database)
        done = archives.archive(database, file, ["first-1", "second-1"], lambda _: None)
        assert done.records == 6 and file.stat().st_mode & 0o777 == 0o600
        every = {"older_than_s": 0.0, "without_archive": False, "whole": True}
        plan = archives.plan(database, experiments=[], **every)
        assert (len(plan.bodies), plan.kept, plan.whole) == (6, 1, ("first-1", "second-1"))
        assert list(archives.prune(database, plan))[-1] == 6
        database.vacuum()
        assert [row["id"] for row in rows(database)["experiments"]] == ["third-1"]
        assert archives.adopt(database, file).records == 6
        assert rows(database) == before
        assert [fault for looked in check(database) for fault in looked.faults] == []
        again = ledgers.begun(ledger, ledgers.filled(ledger, 1, "fourth-1")[0])
        assert again.token == newest.token + 1
        plan = archives.plan(database, experiments=["second-1"], **{**every, "whole": False})
        list(archives.prune(database, plan))
        assert ledger.pruned("second-1") == {str(file): 3} and list(ledger.records("second-1")) == []
        assert len(ledger.figures("second-1")) == 3 and list(ledger.records_of(plan_jobs(plan))) == []
        whole = file.read_bytes()
        file.write_bytes(whole[:200] + b"\xff" * 50 + whole[250:])
        with pytest.raises(SetupError):
            archives.adopt(database, file)
        assert ledger.pruned("second-1") == {str(file): 3}, "all or nothing"


def plan_jobs(plan: archives.Plan) -> set[str]:
    return {job_id for job_id, _ in plan.bodies}
