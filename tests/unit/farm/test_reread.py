"""`farm ledger recompute` over the kept output of programs: what changes, what stays, and who did it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.ledger import Ledger
from orchestrator.ledger.attempts import counted
from orchestrator.model.device import Api
from orchestrator.model.event import Line, Process, Sample
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.experiment.engine_settings import EngineSettings, Printed
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Outcome, Provenance, Record
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .conftest import Run

MS = 10**6
SAMPLES = 5
WORKLOAD = Workload(command="./bench {samples}")
PRINTED = Printed(regex="took (?P<sample>[0-9]+) ms", unit="ms")
SETTINGS, SAMPLING = EngineSettings(result=PRINTED), Sampling(samples=SAMPLES, warmup=0)
CELL = Cell(workload=WORKLOAD, backend=Api.CPU, options={"engine": "command"}, printed=PRINTED)


def measured(job: Job, token: int, random: Random) -> tuple[Record, list[int]]:
    """A record as a parser with a fault left it, and the times in ns that its output has."""
    times = [random.randint(1, 900) for _ in range(SAMPLES)]
    lines = tuple(
        Line(seq=2 + n, t_ns=2000 * MS, index=0, phase="timed", stream="stdout", text=f"took {ms} ms")
        for n, ms in enumerate(times)
    )
    run = Process(
        seq=20, t_ns=9000 * MS, index=0, phase="timed", pid=1, start_ns=MS, end_ns=8000 * MS, status=0, signal=0,
        user_ns=1, system_ns=1, peak_rss_bytes=1,
    )  # fmt: skip
    wrong = [ms * random.choice((10, 1000)) for ms in times]
    told: dict[str, Any] = {"outcome": Outcome.FAILED, "cause": "unread_output", "reasons": ("no",)}
    if random.random() < 0.5:
        samples = [
            Sample(seq=20, t_ns=1, index=n, phase="timed", start_ns=MS, duration_ns=ms * MS)
            for n, ms in enumerate(wrong)
        ]  # fmt: skip
        told = {"outcome": Outcome.OK, "samples": tuple(samples)}
    record = make.record(
        job, attempt=1, token=token, lines=lines, processes=(run,), provenance=Provenance(engine="command"), **told
    )
    return record, [ms * MS for ms in times]


def kept(state: Path) -> Ledger:
    return Ledger(Settings(state=state).ledger)


@pytest.mark.usefixtures("farm")
def test_a_mended_parser_corrects_what_is_kept(farm: Run, tmp_path: Path, seed: int) -> None:
    random, state, truth = Random(seed), tmp_path / ".farm", dict[str, list[int]]()
    before = dict[str, Record]()
    with kept(state) as ledger:
        jobs = [
            Job(experiment_id="own-1", cell=CELL, block=block, candidates=("A",), conditions=Conditions(),
                sampling=SAMPLING, measure=Measure())
            for block in range(random.randint(2, 6))
        ]  # fmt: skip
        ledger.submit("own-1", make.experiment(name="own", workload=WORKLOAD, sampling=SAMPLING, engine=SETTINGS), jobs)
        ledger.submit("other-1", make.many(1, name="other"), [make.job("other-1")])
        for job in jobs:
            begun = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
            assert begun is not None
            before[job.job_id], truth[job.job_id] = measured(job, begun.token, random)
            ledger.keep(before[job.job_id])
        counts = _counted(ledger)
    code, out, _ = farm("ledger", "recompute", "--dry-run", "--json")
    would = json.loads(out)
    assert code == 0 and {each["job"] for each in would["readings"]} == set(truth) and would["experiments"] == 2
    assert json.loads(farm("ledger", "recompute", "--engine", "pocketfarm", "--json")[1])["readings"] == []
    with kept(state) as ledger:
        assert {each.job_id: each for each in ledger.records("own-1")} == before and ledger.audit.count() == 0
    code, out, _ = farm("ledger", "recompute", "own-1", "--engine", "command", "--json")
    assert code == 0 and json.loads(out)["readings"] == would["readings"]
    code, out, _ = farm("ledger", "recompute")
    assert code == 0 and "otherwise" not in out, "it reads the same again"
    with kept(state) as ledger:
        for record in ledger.records("own-1"):
            was, (reading,) = before[record.job_id], record.readings
            assert [each.duration_ns for each in record.samples] == truth[record.job_id]
            assert (reading.samples, reading.outcome, reading.cause) == (was.samples, was.outcome, was.cause)
            assert (record.outcome, record.cause, record.lines) == (Outcome.OK, "", was.lines)
        assert {row.outcome for row in ledger.jobs("own-1")} == {"ok"} and _counted(ledger) == counts
        least = {each.job_id: each.times.min_ms * MS for each in ledger.figures("own-1") if each.times}
        assert least == {job: pytest.approx(min(times)) for job, times in truth.items()}
        (row,) = ledger.audit.newest(9)
        assert (row.act, row.target) == ("reread", "own-1") and f"{len(truth)} record" in row.said
    assert farm("ledger", "check")[0] == 0


def _counted(ledger: Ledger) -> list[Any]:
    """Return what the farm did, as metrics count it."""
    with ledger._database.read() as connection:
        return [counted.count(connection, what) for what in ("attempts", "records")]
