"""Imports on SQLite and PostgreSQL: whole or not at all, over from the start, fenced like everything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.errors import TableError
from orchestrator.exchange.samples import import_samples
from orchestrator.ledger import Ledger
from orchestrator.ledger.attempts import counted
from orchestrator.model.device import Source
from tests.integration.orchestrator import ledgers
from tests.servers import private_postgres

pytestmark = pytest.mark.integration


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.sqlite'}"
        return
    with private_postgres(tmp_path / "postgres") as found:
        yield found


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url) as opened:
        yield opened


def test_an_import_is_over_and_nobody_is_given_its_jobs(ledger: Ledger, url: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    header = "device,network,layer,backend,precision,block,sample_ms\n"
    path.write_text(header + "d,n,,renderscript,imprecise,0,1.5\nd,n,,renderscript,imprecise,1,x\n")
    with pytest.raises(TableError, match="line 3"):
        import_samples(ledger, path)
    assert ledger.experiments() == []
    path.write_text(path.read_text().replace(",x", ",2.5"))
    first, again = import_samples(ledger, path), import_samples(ledger, path)
    assert (first.created, again.created, first.experiment_id) == (True, False, again.experiment_id)
    (row,) = ledger.experiments()
    assert (row.finished, dict(row.counts), ledger.waiting(), ledger.running()) == (True, {"ok": 2}, [], [])
    tokens = [record.token for record in ledger.records(row.id)]
    assert tokens == sorted(set(tokens)) and len(tokens) == 2
    jobs = ledger.jobs(row.id)
    assert [job.job.block for job in jobs] == [0, 1]
    assert ledger.begin_attempt(jobs[0].job_id, "d", "lab", 15.0) is None
    assert ledger.cancel(row.id) == []
    assert [each.source for each in ledger.listed.of_device("d", 9)] == [Source.IMPORT] * 2
    with ledgers.database(url) as database, database.read() as connection:
        assert set(counted.count(connection, "attempts").values()) == {0}, "nothing was done here"
