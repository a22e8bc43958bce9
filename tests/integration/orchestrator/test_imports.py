"""Imports on SQLite and PostgreSQL: whole or not at all, over from the start, fenced like everything else."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from orchestrator.exchange.samples import import_samples
from orchestrator.ledger import Ledger
from orchestrator.ledger.attempts import counted
from orchestrator.ledger.incoming import pieces
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, FIGURES, JOBS, LANES, RECORDS, TEMPLATES
from orchestrator.ledger.upkeep import archives
from orchestrator.ledger.upkeep.check import check
from orchestrator.metrics.results import Results
from orchestrator.model.device import Source
from orchestrator.model.errors import TableError
from tests.integration.orchestrator import ledgers

pytestmark = pytest.mark.integration


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


def table(folder: Path, blocks: int) -> Path:
    path = folder / "many.csv"
    rows = "".join(f"d,n,,renderscript,imprecise,{block},1.{block}\n" for block in range(blocks))
    path.write_text("device,network,layer,backend,precision,block,sample_ms\n" + rows)
    return path


def rows_in(url: str) -> int:
    """The rows of all experiments, in all tables that have such."""
    with ledgers.database(url) as database, database.read() as connection:
        tables = (EXPERIMENTS, TEMPLATES, LANES, JOBS, ATTEMPTS, RECORDS, FIGURES)
        return sum(int(connection.scalar(select(func.count()).select_from(each)) or 0) for each in tables)


def seen(url: str) -> list[object]:
    """Return what others see of it; and they may write."""
    with Ledger(url) as other, ledgers.database(url) as database:
        with database.write() as connection:
            counted_ = {name: +counted.count(connection, name) for name in ("attempts", "records")}
            results = Results()
            results.update(connection)
        return [other.experiments(), other.counts(), other.listed.of_device("d", 9), counted_, results.due]


NOTHING: list[object] = [[], {}, [], {"attempts": Counter(), "records": Counter()}, 0]


def stored(url: str, source: Path) -> int:
    """Jobs that come, of a table or of an archive."""
    with Ledger(url) as ledger, ledgers.database(url) as database:
        if source.suffix == ".csv":
            return import_samples(ledger, source).blocks
        (name,) = archives.adopt(database, source).experiments
        return sum(ledger.counts(name).values())


@pytest.fixture(params=["table", "archive"])
def source(request: pytest.FixtureRequest, tmp_path: Path, seed: int) -> tuple[Path, int]:
    """A file to take in, and how many jobs it has."""
    blocks = random.Random(seed).randrange(250, 450)
    path = table(tmp_path, blocks)
    if request.param == "archive":
        url = f"sqlite:///{tmp_path / 'other.sqlite'}"
        with Ledger(url) as ledger, ledgers.database(url) as database:
            name = import_samples(ledger, path).experiment_id
            path = tmp_path / "old.parquet"
            archives.archive(database, path, [name], lambda _: None)
    return path, blocks


def test_nobody_waits_for_an_import_and_nobody_sees_half_of_it(
    source: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, rests = f"sqlite:///{tmp_path / 'ledger.sqlite'}", list[list[object]]()
    monkeypatch.setattr(pieces, "LASTS_S", 0.0)
    monkeypatch.setattr(pieces, "REST_S", 0.0)
    rest = pieces.Pieces._rest

    def looks(self: pieces.Pieces) -> None:
        if len(rests) < 3:
            rests.append(seen(url))
        rest(self)

    monkeypatch.setattr(pieces.Pieces, "_rest", looks)
    assert stored(url, source[0]) == source[1]
    assert rests == [NOTHING] * 3
    with Ledger(url) as ledger:
        (row,) = ledger.experiments()
        assert dict(row.counts) == {"ok": source[1]} and len(list(ledger.records(row.id))) == source[1]
    assert seen(url)[3] == NOTHING[3], "nothing was done here"
    with ledgers.database(url) as database:
        assert [fault for looked in check(database) for fault in looked.faults] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from orchestrator.ledger.incoming import pieces
from tests.integration.orchestrator.test_imports import stored
left = [int(sys.argv[3])]
def rest(self):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
pieces.LASTS_S, pieces.REST_S, pieces.Pieces._rest = 0.0, 0.0, rest
stored(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_killed_import_leaves_nothing_and_is_repeated(source: tuple[Path, int], tmp_path: Path, seed: int) -> None:
    url, after = f"sqlite:///{tmp_path / 'ledger.sqlite'}", random.Random(seed).randint(1, 3)
    with Ledger(url):
        pass
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, url, str(source[0]), str(after)], capture_output=True)
        assert killed.returncode == -9, killed.stderr
        assert seen(url) == NOTHING and rows_in(url) > 0
    assert stored(url, source[0]) == source[1]
    with Ledger(url) as ledger:
        (row,) = ledger.experiments()
        assert dict(row.counts) == {"ok": source[1]}
    whole = rows_in(url)
    assert whole == 4 * source[1] + 3, (
        "an experiment, a template, a lane, and of each job its row and three of its attempt"
    )


def test_an_import_that_fails_leaves_nothing(
    source: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    url, left = f"sqlite:///{tmp_path / 'ledger.sqlite'}", [random.Random(seed).randint(1, 3)]
    monkeypatch.setattr(pieces, "LASTS_S", 0.0)
    monkeypatch.setattr(pieces, "REST_S", 0.0)

    def interrupted(_self: pieces.Pieces) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(pieces.Pieces, "_rest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stored(url, source[0])
    assert seen(url) == NOTHING and rows_in(url) == 0
