"""The ranking on its page and in the terminal: the newest figures of any experiments, the fastest first."""

from __future__ import annotations

import json
import re
from html import unescape
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dashboards.web.access import ANYBODY, Access
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
from dashboards.web.renderer import Renderer
from orchestrator.analysis.ranking import ranking
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, Source
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Doubt, Outcome
from orchestrator.report.parts.ranking import ranked_in
from orchestrator.system.config import Settings
from tests.unit.farm.conftest import Run
from tests.unit.farm.conftest import farm as farm
from tests.unit.orchestrator import make
from tests.unit.report.records import record

from .test_nights import no_farm

HOSTILE = "<b>net</b>"
Key = tuple[str, str, str, str, str]
"""Model, device, engine, version, backend."""


def fill(ledger: Ledger, random: Random) -> dict[Key, tuple[str, float, bool]]:
    """Run random experiments; return what ranks: of each key its newest experiment, its least time, if verified."""
    newest: dict[Key, tuple[float, str, float, bool]] = {}
    least_of, number = random.randint(1, 7), 0
    while (number := number + 1) <= least_of or not newest:
        name, at = f"e-{number}", random.uniform(1e3, 1e6)
        options: list[dict[str, Any]] = random.sample([{}, {"threads": 2}, {"threads": 4}], random.randint(1, 3))
        engine = random.choice(("pocketfarm", "ncnn", "command"))
        network, backend, serial = (
            random.choice(("lenet", "cifar10_quick")),
            random.choice(list(Api)),
            random.choice("AB"),
        )
        version, mode = random.choice("12"), random.choice(("steady", "steady", "cold"))
        own = {} if engine == "pocketfarm" else {"engine": engine}
        workload = Workload(network=network) if engine != "command" else Workload(command=HOSTILE)
        model = workload.label
        cells = [Cell(workload=workload, backend=backend, options={**each, **own}) for each in options]
        jobs = [
            Job(experiment_id=name, cell=cell, block=block, candidates=(serial,), sampling=Sampling(),
                conditions=Conditions(), measure=Measure())
            for cell in cells for block in range(3)
        ]  # fmt: skip
        ledger.submit(name, make.experiment(name=name, workload=workload, sampling=Sampling(mode=mode)), jobs)
        times = {cell.cell_id: random.uniform(1, 9) for cell in cells}
        wide = {cell.cell_id for cell in cells if random.random() < 0.2}
        for job in jobs:
            begun = ledger.begin_attempt(job.job_id, serial, "lab", 15.0)
            assert begun is not None
            ms, outcome = times[job.cell.cell_id], random.choice((Outcome.OK, Outcome.OK, Outcome.KILLED))
            if job.cell.cell_id in wide:  # from three such blocks no median is told
                ms, outcome = inf, Outcome.OK
            plain = record(
                job.cell,
                [5.0**job.block if ms == inf else ms] * 5,
                block=job.block,
                serial=serial,
                token=begun.token,
                outcome=outcome,
            )
            assert plain.runs_on is not None
            facts = plain.runs_on.facts.model_copy(update={"version": f"{engine} {version}"})
            update = {
                "experiment_id": name, "job_id": job.job_id, "started_at": at + job.block, "ended_at": at + 2,
                "runs_on": plain.runs_on.model_copy(update={"facts": facts}),
                "provenance": plain.provenance.model_copy(
                    update={"engine": engine, "agent_version": version, "agent_sha256": ""}
                ),
                "doubts": (Doubt(code="command.unchecked", advice="check"),) if engine == "command" else (),
            }  # fmt: skip
            ledger.keep(plain.model_copy(update=update))
            key: Key = (model, serial, engine, version, str(backend))
            if outcome is Outcome.OK and mode == "steady":
                known = newest.get(key)
                if known is None or (ms < inf, at) > (known[2] < inf, known[0]) or known[1] == name:
                    least = ms if known is None or known[1] != name else min(ms, known[2])
                    newest[key] = (at, name, least, engine != "command")
    return {key: told[1:] for key, told in newest.items()}


def test_the_newest_figure_of_each_counts(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    for turn in range(5):
        with Ledger(f"sqlite:///{tmp_path}/{turn}.sqlite") as ledger:
            wanted = fill(ledger, random)
            found = [each for row in ledger.experiments() for each in ranked_in(ledger, row)]
            told = ranking(random.sample(found, len(found)))
            seen = {
                (row.model, row.device, row.engine, row.version, row.backend): (
                    row.experiment_id, pytest.approx(row.ms), row.verified,
                ) for row in told
            }  # fmt: skip
            assert wanted == seen and len(told) == len(seen)
            assert told == sorted(told, key=lambda row: (row.model, row.ms))
            assert {row.source for row in told} <= {Source.VIRTUAL}
            some = {"engine": "ncnn"}
            assert ranking(found, some) == [row for row in told if row.engine == "ncnn"]


def test_page_and_terminal_tell_the_same(farm: Run, tmp_path: Path, seed: int) -> None:
    """Every row of the page is a row of `--json`, in the same order; names from outside are shown as they are."""
    with Ledger(Settings(state=tmp_path / ".farm").ledger) as ledger:
        fill(ledger, Random(seed))
        contents, figures = Contents(lambda: ledger, tmp_path), OwnFigures(lambda: ledger, str)
        pages = Renderer(lambda: ledger, Watch(lambda: ledger, no_farm), Access("t"), PAGES, contents, figures)
        page, html = pages.main("/ranking", {}, ANYBODY)
        assert pages.main("/ranking", {}, ANYBODY)[1] == html and page.title == "Ranking"
        assert "VIRTUAL results" in html and HOSTILE not in html
        code, out, _ = farm("rank", "--json")
        rows = json.loads(out)
        assert code == 0 and [row["experiment_id"] for row in rows] == re.findall(r'href="/experiments/([^"]+)"', html)
        for row in rows:
            _, own = pages.main("/ranking", {"model": row["model"], "by": "energy"}, ANYBODY)
            alone = [each["experiment_id"] for each in rows if each["model"] == row["model"]]
            assert sorted(re.findall(r'href="/experiments/([^"]+)"', own)) == sorted(alone)
            assert unescape(own).count(f"<h1>{row['model']}</h1>") == 1
        empty = sum(not ranked_in(ledger, row) for row in ledger.experiments())
    assert ("not resolved" in html) is any(row["latency"]["unresolved"] for row in rows)
    code, out, said = farm("rank", "--where", f"engine={rows[0]['engine']}")
    assert code == 0 and rows[0]["device"] in out
    assert sum(map(int, re.findall(r"Left out: (\d+) experiments? [dh]", said))) == empty
    assert farm("rank", "--where", "colour=red")[0] == 2
