"""`farm agreement`, the report and the export, from a ledger with an experiment that has a set."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.analysis.agreement import proportion
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.model.job import Job
from orchestrator.model.record import Outcome
from orchestrator.report import charts, wording
from orchestrator.report.drawing import to_svg
from orchestrator.report.parts import predictions
from orchestrator.system.config import Settings
from tests.unit.imports.conftest import Farm
from tests.unit.report.test_report import Page

from . import made
from .test_agreement import BASE, BOTH, LABELS, OTHER

pytestmark = pytest.mark.unit

MARGINS = [0.001 * (place + 1) for place in range(25)][::-1]


def submitted(ledger: Ledger, tmp_path: Path, labels: Sequence[int] | None = None) -> tuple[Job, ...]:
    """The experiment on one phone, its labels among the artifacts."""
    kept = None
    if labels is not None:
        (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in labels))
        kept = Artifacts(Settings().state).put(tmp_path / "labels.txt")
    of = made.experiment(labels_sha256=kept)
    jobs = made.expanded(of).jobs
    assert ledger.submit("set-1", of, jobs)
    return jobs


def ran(ledger: Ledger, jobs: Sequence[Job], failing: int = -1) -> None:
    """Every block of these jobs; in half precision one of them fails."""
    for job in jobs:
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 60.0)
        assert begun is not None
        fails = job.block == failing and job.cell.precision == "fp16"
        outcome = Outcome.FAILED if fails else Outcome.OK
        classes = BOTH[job.cell.precision]
        ledger.keep(
            made.record(job, classes, margins=MARGINS, attempt=begun.attempt, token=begun.token, outcome=outcome)
        )


def test_the_table_says_what_agrees_what_is_right_and_what_changed(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    ran(ledger, submitted(ledger, tmp_path, LABELS))
    code, out, err = farm("agreement", "--changed", "2")
    assert code == 0 and err.startswith("what a word means: `farm explain WORD`")
    assert "Agreement of predictions with cpu fp32 on A VIRTUAL" in out
    (row,) = [line.split() for line in out.splitlines() if "[68.7" in line]
    assert " ".join(row) == "cpu fp16 25 88.00 88.00 88.00 [68.78, 97.45] 3 1 : 1"
    assert "2 of 3 changes" in out and "became right" in out and "became wrong" in out
    assert [line.split()[4] for line in out.splitlines() if "became" in line] == ["20", "21"]


def test_missing_examples_are_told_while_it_runs_and_after(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    jobs = submitted(ledger, tmp_path)
    code, out, err = farm("agreement", "set")
    assert code == 0 and "no block has gone well so far" in err and "no device yet" in out
    ran(ledger, [job for job in jobs if job.block < 2], failing=1)
    code, out, err = farm("agreement", "set")
    assert code == 0 and "not over" in err and "top-1" not in out
    (row,) = [line.split() for line in out.splitlines() if "10-24" in line]
    assert " ".join(row) == "A VIRTUAL cpu fp16 15 10 5 10-24"
    ran(ledger, [job for job in jobs if job.block == 2])
    code, out, err = farm("agreement", "set", "--json")
    (found,) = json.loads(out)["agreements"]
    assert (json.loads(out)["finished"], err) == (True, "")
    assert [row["result"]["gaps"] for row in found["rows"]] == [[{"first": 10, "last": 19}], []]
    assert [one["example"] for one in found["rows"][0]["comparison"]["changed"]] == [20, 21, 22]


def test_another_base_and_a_base_that_there_is_not(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    ran(ledger, submitted(ledger, tmp_path))
    assert "with cpu fp16 on A" in farm("agreement", "--base", "fp16")[1]
    code, _, err = farm("agreement", "--base", "vulkan")
    assert code == 1 and "lenet cpu fp32 A" in err


def test_without_a_set_it_says_how_to_give_one(farm: Farm, ledger: Ledger) -> None:
    of = made.make.experiment()
    assert ledger.submit("first-1", of, made.expanded(of, name="first-1").jobs)
    code, _, err = farm("agreement")
    assert code == 1 and "docs/howto/agreement-of-predictions.md" in err


def test_results_and_report_have_it_and_do_without_lost_labels(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    ran(ledger, submitted(ledger, tmp_path, LABELS))
    code, out, err = farm("results", "set")
    assert (
        code == 0
        and "left out" not in err
        and "Agreement of predictions with cpu fp32" in out
        and "[68.78, 97.45]" in out
    )
    assert farm("report", "set", "-o", "report.html")[0] == 0
    page = (tmp_path / "report.html").read_text()
    parsed = Page(page)
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert parsed.open == [] and len(ids) == len(set(ids)) and "agreement-0" in ids
    assert "<h2>Agreement of predictions</h2>" in page and "Margins of lenet" in page
    (found,) = json.loads(farm("results", "set", "--json")[1])["agreements"]
    assert found["rows"][0]["comparison"]["same"]["count"] == 22
    for path in (Settings().state / "artifacts").rglob("*"):
        path.unlink() if path.is_file() else None
    code, out, err = farm("results", "set")
    assert code == 0 and "Agreement of predictions" in out and "top-1" not in out and "left out" in err
    assert farm("agreement", "set")[0] == 1


def test_predictions_are_exported_one_a_row(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    ran(ledger, submitted(ledger, tmp_path, LABELS), failing=1)
    code, out, _ = farm("export", "set", "--what", "predictions", "--format", "csv", "-o", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and len(rows) == 25 + 15
    told = {(row["precision"], int(row["example"])): row for row in rows}
    assert [int(told["fp32", place]["top_1"]) for place in range(25)] == BASE
    last = told["fp16", 22]
    assert (last["device"], last["block"], last["label"], last["top_1"], last["top_5"]) == ("A", "2", "9", "3", "7")
    assert float(last["margin"]) == pytest.approx(MARGINS[22])


def test_a_figure_is_drawn_where_something_changed() -> None:
    of = made.experiment()
    jobs = made.expanded(of).jobs
    changed = made.agreement(of, jobs, [made.record(job, BOTH[job.cell.precision], margins=MARGINS) for job in jobs])
    same = made.agreement(of, jobs, [made.record(job, OTHER) for job in jobs])
    (chart,) = charts.margins([changed, same])
    svg = to_svg(chart)
    ElementTree.fromstring(svg)
    assert "cpu fp16 on A VIRTUAL" in svg
    assert charts.margins([same]) == charts.margins([]) == []


def test_as_many_changes_are_shown_as_are_asked_for(farm: Farm, ledger: Ledger) -> None:
    of = made.experiment(60)
    jobs = made.expanded(of).jobs
    assert ledger.submit("set-1", of, jobs)
    for job in jobs:
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 60.0)
        assert begun is not None
        classes = [place + (job.cell.precision == "fp16") for place in range(60)]
        ledger.keep(made.record(job, classes, attempt=begun.attempt, token=begun.token))
    shown = [farm("agreement", "--changed", str(most))[1].count("A VIRTUAL  cpu fp16") for most in (0, 7, 50, 70)]
    assert shown == [0, 7, 50, 60]


def test_no_change_is_told_with_a_bound_and_no_hundred_is_rounded_up() -> None:
    of = made.experiment(300)
    jobs = made.expanded(of).jobs
    found = made.agreement(of, jobs, [made.record(job, range(300)) for job in jobs])
    assert [predictions._up(100 * 3 / n) for n in (300, 48, 10_000, 2_999)] == ["1", "6.3", "0.03", "0.11"]
    assert "0 (< 1 %)" in next(iter(predictions.sections([found]))).rows[0]
    shares = [proportion(count, 50_000) for count in (50_000, 49_999, 49_000)]
    assert [wording.percent(share) for share in shares if share] == ["100.00", "99.998", "98.00"]
