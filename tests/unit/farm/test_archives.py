"""All that is archived and pruned comes back as it was; nothing is deleted that no whole archive holds."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from orchestrator.ledger import Ledger
from orchestrator.metrics.queue import queue_families
from orchestrator.model.record import Outcome
from orchestrator.system.config import Settings
from tests.integration.orchestrator import ledgers
from workers.spool import old_dead

from .conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A ledger with an experiment that is over, one of its jobs lost, one cancelled; and one that is not over."""
    folder = tmp_path_factory.mktemp("made")
    url = Settings(state=folder).ledger
    with Ledger(url, retries=1) as ledger:
        first, second, *rest = ledgers.filled(ledger, 5)[-1:] + ledgers.filled(ledger, 2, "open-1")
        assert second.block == 0 and rest
        lost = ledgers.begun(ledger, first)
        ledger.keep(ledgers.record_of(lost, outcome=Outcome.LOST, cause="transport_lost"))
        cancelled = ledgers.filled(ledger, 1, "gone-1")[0]
        ledger.cancel(cancelled.job_id)
    return (folder / "ledger.sqlite").read_bytes()


@pytest.fixture
def filled(farm: Run, made: bytes, tmp_path: Path) -> Run:
    (tmp_path / ".farm").mkdir(0o700)
    (tmp_path / ".farm" / "ledger.sqlite").write_bytes(made)
    return farm


def shown(farm: Run, *more: str) -> list[str]:
    """Return what is told of an experiment, but for the time at which it is told."""
    asked = [
        ("results", "first-1", "--json"),
        ("results", "first-1", "--json", "--raw"),
        ("status", "first-1", "--json"),
    ]
    asked.append(("export", "first-1", "--format", "csv", "-o", "-"))
    return [_told(farm(*words, *more)) for words in asked]


def _told(answer: tuple[int, str, str]) -> str:
    assert answer[0] == 0, answer
    return re.sub('"generated_at": .*', "", answer[1])


def counters() -> dict[tuple[str, ...], float]:
    """Return the counters of attempts and records, as the exporter tells them."""
    with ledgers.database(Settings().ledger) as database, database.read() as connection:
        told = [each for family in queue_families(connection, None) for each in family.samples]
    return {(each.name, *each.labels.values()): each.value for each in told if each.name.endswith("_total")}


def faults(farm: Run) -> object:
    return json.loads(farm("ledger", "check", "--json")[1])["faults"]


def test_raw_records_are_pruned_and_come_back(filled: Run, tmp_path: Path) -> None:
    before = shown(filled)
    told = json.loads(_told(filled("ledger", "archive", "a.parquet", "first", "--json")))
    assert (told["experiments"], told["records"]) == (["first-1"], 5)
    assert "is there already" in filled("ledger", "archive", "a.parquet", "first")[2]
    plan = json.loads(_told(filled("ledger", "prune", "--older-than", "0d", "--dry-run", "--json")))
    assert (plan["records"], plan["kept"], plan["deleted"]) == (5, 0, False)
    assert "--yes" in filled("ledger", "prune", "--older-than", "0d")[2] and shown(filled) == before
    assert json.loads(filled("ledger", "prune", "--dry-run", "--json")[1])["records"] == 0, "not old enough"
    size = (tmp_path / ".farm" / "ledger.sqlite").stat().st_size
    _told(filled("ledger", "prune", "--older-than", "0d", "--yes"))
    bare = shown(filled)
    assert (bare[0], bare[2]) == (before[0], before[2]) and json.loads(bare[1])["records"] == []
    assert "farm ledger adopt" in filled("results", "first-1", "--raw", "--json")[2]
    assert (tmp_path / ".farm" / "ledger.sqlite").stat().st_size <= size and faults(filled) == []
    assert json.loads(filled("ledger", "recompute", "--json", "--all")[1])["looked_at"] == 1
    assert json.loads(_told(filled("ledger", "adopt", "a.parquet", "--json"))) == {"experiments": [], "records": 5}
    assert shown(filled) == before and faults(filled) == []
    assert json.loads(_told(filled("ledger", "adopt", "a.parquet", "--json"))) == {"experiments": [], "records": 0}


def test_a_whole_experiment_is_pruned_and_comes_back_here_and_elsewhere(filled: Run) -> None:
    before, counted = shown(filled), counters()
    assert (
        counted["farm_attempts_total", "ok", ""] == 5 and counted["farm_attempts_total", "lost", "transport_lost"] == 1
    )
    _told(filled("ledger", "archive", "a.parquet", "--older-than", "0d"))
    told = json.loads(_told(filled("ledger", "prune", "--older-than", "0d", "--whole", "--yes", "--json")))
    assert told["whole"] == ["first-1", "gone-1"]
    assert [each["experiment"] for each in json.loads(filled("status", "--json")[1])] == ["open-1"]
    assert counters() == counted, "what was done stays done"
    assert json.loads(_told(filled("ledger", "adopt", "a.parquet", "--json")))["experiments"] == ["first-1", "gone-1"]
    assert shown(filled) == before and faults(filled) == [] and counters() == counted
    _told(filled("ledger", "adopt", "a.parquet", "--state", "other"))
    there = shown(filled, "--state", "other")
    assert (there[0], there[2], there[3]) == (before[0], before[2], before[3])
    assert json.loads(filled("ledger", "check", "--state", "other", "--json")[1])["faults"] == []


def test_nothing_is_deleted_that_no_whole_archive_holds(filled: Run, tmp_path: Path) -> None:
    before = shown(filled)
    assert "not over yet" in filled("ledger", "archive", "a.parquet", "open")[2]
    assert json.loads(_told(filled("ledger", "prune", "--older-than", "0d", "--yes", "--json")))["kept"] == 5
    _told(filled("ledger", "archive", "a.parquet", "first"))
    file = tmp_path / "a.parquet"
    whole = file.read_bytes()
    for content in (whole[:-1] + b"\0", b""):
        file.write_bytes(content)
        told = json.loads(_told(filled("ledger", "prune", "--older-than", "0d", "--yes", "--whole", "--json")))
        assert (told["records"], told["kept"], told["whole"]) == (0, 5, ["gone-1"] if content else [])
        assert told["archives_unread"] == [str(file)]
        assert filled("ledger", "adopt", "a.parquet", "--json")[0] == 1
    file.write_bytes(whole)
    with ledgers.database(Settings().ledger) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE records SET body = (SELECT body FROM records WHERE outcome = 'lost')")
    assert json.loads(filled("ledger", "prune", "--older-than", "0d", "--dry-run", "--json")[1])["kept"] == 4
    assert shown(filled)[2] == before[2]
    _told(filled("ledger", "prune", "first", "--older-than", "0d", "--without-archive", "--yes"))
    assert "no archive holds them" in filled("results", "first", "--raw", "--json")[2]


def test_an_archive_is_a_table_of_blocks(filled: Run) -> None:
    _told(filled("ledger", "archive", "a.parquet", "first"))
    rows = parquet.read_table("a.parquet").to_pylist()
    assert [(row["block"], row["outcome"], row["attempt"]) for row in rows] == [
        (0, "ok", 1), (1, "ok", 1), (2, "ok", 1), (3, "ok", 1), (4, "lost", 1),
    ]  # fmt: skip
    first = rows[0]
    assert (first["network"], first["backend"], first["experiment"]) == ("squeezenet_v1_0", "opencl", "first")
    assert first["median_ms"] == pytest.approx(5.0000025) and first["samples"] == 6 and first["pss_bytes"] is None
    assert len(json.loads(first["record"])["samples"]) == 6 and first["source"] == "virtual"


def test_dead_files_are_bounded_by_age_and_bytes(filled: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".farm" / "spool" / "dead"
    folder.mkdir(parents=True)
    for day in range(5):
        path = folder / f"{day}.json"
        path.write_bytes(bytes(100))
        os.utime(path, (time.time() - day * 86_400,) * 2)
    state = tmp_path / ".farm"
    assert sorted(path.stem for path in old_dead(state, 2.5 * 86_400, 10**6)) == ["3", "4"]
    assert sorted(path.stem for path in old_dead(state, 9e9, 250)) == ["2", "3", "4"]
    assert old_dead(state, 9e9, 500) == []
    _told(filled("ledger", "prune", "--dead-bytes", "250 B", "--yes"))
    assert sorted(path.stem for path in folder.iterdir()) == ["0", "1"]
    assert filled("ledger", "prune", "--dead-bytes", "250")[0] == filled("ledger", "prune", "--older-than", "x")[0] == 2
