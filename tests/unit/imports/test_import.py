"""Foreign samples become an experiment like any other; one bad row, and nothing is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import create_engine

from orchestrator.figures import timed_ms
from orchestrator.ledger import Ledger
from orchestrator.metrics.results import Results
from orchestrator.model.device import Source
from orchestrator.model.job import ANY_JOB, Cell, ForeignJob, Job
from orchestrator.model.record import DoubtCode
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .conftest import Farm

pytestmark = pytest.mark.unit

HEADER = "device,network,layer,backend,precision,granularity,sample_ms"
ROWS = [
    "Galaxy S7,squeezenet,,renderscript,imprecise,4,200.5",
    "Galaxy S7,squeezenet,,renderscript,imprecise,4,210",
    "Galaxy S7,squeezenet,conv1,renderscript,imprecise,4,57",
    "Galaxy S7,squeezenet,conv1,renderscript,imprecise,4,59",
    "Galaxy S7,squeezenet,fire2,renderscript,imprecise,8,6",
    "Nexus 5,squeezenet,,cpu,precise,,43932.73",
]


def write(path: Path, rows: list[str], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def imported(farm: Farm, *arguments: object) -> dict[str, object]:
    code, out, err = farm("import", "samples", *arguments, "--json")
    assert code == 0, err
    return dict(json.loads(out))


def test_foreign_words_and_axes_are_kept(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    found = imported(farm, write(tmp_path / "logs.csv", ROWS), "--name", "study-s")
    assert (found["created"], found["rows"], found["samples"], found["layers"]) == (True, 6, 3, 3)
    assert (found["blocks"], found["devices"], found["axes"]) == (3, ["Galaxy S7", "Nexus 5"], ["granularity"])
    row = ledger.experiment(str(found["experiment"]))
    assert (row.experiment.name, row.finished, dict(row.counts)) == ("study-s", True, {"ok": 3})
    first, second, third = ledger.jobs(row.id)
    assert isinstance(first.job, ForeignJob)
    assert first.job.cell.label == "squeezenet renderscript imprecise granularity=4"
    assert (second.job.cell.options, third.job.cell.options) == ({"granularity": 8}, {})
    records = {record.job_id: record for record in ledger.records(row.id)}
    assert timed_ms(records[first.job_id]) == [200.5, 210.0]
    assert [(layer.layer, layer.repeat, layer.duration_ns) for layer in records[first.job_id].layers] == [
        ("conv1", 0, 57_000_000), ("conv1", 1, 59_000_000),
    ]  # fmt: skip
    assert {record.source for record in records.values()} == {Source.IMPORT}


def test_the_same_content_is_the_same_experiment(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    first = imported(farm, write(tmp_path / "a.csv", ROWS))
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.csv").read_bytes().replace(b"\n", b"\r\n"))
    again = imported(farm, tmp_path / "b.csv")
    assert (again["experiment"], again["created"]) == (first["experiment"], False)
    code, out, _ = farm("import", "samples", tmp_path / "a.csv")
    assert (code, "already" in out) == (0, True)
    assert len(ledger.experiments()) == 1
    assert len(list(ledger.records(str(first["experiment"])))) == 3
    other = imported(farm, write(tmp_path / "a.csv", ROWS[:-1]))
    named = imported(farm, tmp_path / "a.csv", "--name", "other")
    assert len({first["experiment"], other["experiment"], named["experiment"]}) == 3


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (["4", "8"], [4, 8]),
        (["4", "0.5"], [4.0, 0.5]),
        (["true", "False"], [True, False]),
        (["4", "auto"], ["4", "auto"]),
    ],
)
def test_values_of_an_axis_have_one_type(
    farm: Farm, ledger: Ledger, tmp_path: Path, values: list[str], kept: list[object]
) -> None:
    rows = [f"d,n,,b,p,{value},1" for value in values]
    found = imported(farm, write(tmp_path / "a.csv", rows))
    options = [job.job.cell.options["granularity"] for job in ledger.jobs(str(found["experiment"]))]
    assert [(type(value), value) for value in options] == [(type(value), value) for value in kept]


@pytest.mark.parametrize(
    ("header", "row", "told"),
    [
        (HEADER, "d,n,,b,p,4,fast", ["line 3", "'sample_ms'", "'fast'", "a number"]),
        (HEADER, "d,n,,b,p,4,-1", ["line 3", "'sample_ms'", "'-1'", "0 to"]),
        (HEADER, "d,n,,b,p,4,", ["line 3", "'sample_ms'", "0 to"]),
        (HEADER, "d,n,,b,p,4,inf", ["line 3", "'sample_ms'", "finite"]),
        (HEADER, ",n,,b,p,4,1", ["line 3", "'device'", "nothing"]),
        (HEADER, "d,n,,b,,4,1", ["line 3", "'precision'", "nothing"]),
        (HEADER, "d,n,,b,p,4,1,9", ["line 3", "8 cells", "7"]),
        (HEADER + ",block", "d,n,,b,p,4,1,x", ["line 3", "'block'", "'x'", "whole number"]),
        (HEADER + ",phase", "d,n,,b,p,4,1,hot", ["line 3", "'phase'", "'hot'", "timed, warmup"]),
        (HEADER + ",outcome", "d,n,,b,p,4,1,lost", ["line 3", "'outcome'", "'lost'", "'ok'"]),
        (HEADER.replace("sample_ms", "ms"), "d,n,,b,p,4,1", ["line 1", "`sample_ms`", "granularity"]),
        (HEADER + ",device", "d,n,,b,p,4,1,d", ["line 1", "'device'", "two columns"]),
        (HEADER + ",a b", "d,n,,b,p,4,1,2", ["line 1", "'a b'", "letters"]),
    ],
)
def test_one_bad_row_and_nothing_is_stored(
    farm: Farm, ledger: Ledger, tmp_path: Path, header: str, row: str, told: list[str]
) -> None:
    good = "d,n,,b,p,4,1"
    code, out, _ = farm("import", "samples", write(tmp_path / "a.csv", [good, row], header), "--json")
    assert code == 1
    message = json.loads(out)["error"]["message"]
    assert [word for word in ["a.csv", *told] if word not in message] == [], message
    assert ledger.experiments() == []


def test_a_name_that_cannot_be_is_refused(farm: Farm, tmp_path: Path) -> None:
    code, _, err = farm("import", "samples", write(tmp_path / "a.csv", ROWS), "--name", "a b")
    assert (code, "letters" in err) == (2, True)
    code, _, err = farm("import", "samples", tmp_path / "a.csv", "--name", "latest")
    assert (code, "newest of all" in err) == (2, True)
    assert imported(farm, write(tmp_path / "latest.csv", ROWS))["experiment"].startswith("import-latest-")


def test_blocks_roles_and_outcomes_are_told_by_columns(farm: Farm, ledger: Ledger, tmp_path: Path) -> None:
    header = HEADER + ",block,attempt,role,phase,outcome,cause,source"
    rows = [
        "d,n,,b,p,4,9,0,1,work,warmup,lost,cable,virtual",
        "d,n,,b,p,4,5,0,2,work,warmup,ok,,virtual",
        "d,n,,b,p,4,3,0,2,work,timed,ok,,virtual",
        "d,n,,b,p,4,4,1,1,work,timed,ok,,virtual",
        "d,n,,b,p,4,8,0,1,canary,timed,ok,,virtual",
    ]
    found = imported(farm, write(tmp_path / "a.csv", rows, header))
    records = list(ledger.records(str(found["experiment"])))
    assert [(r.role, r.block, r.attempt, r.outcome.value, timed_ms(r)) for r in records] == [
        ("work", 0, 1, "lost", []), ("work", 0, 2, "ok", [3.0]), ("work", 1, 1, "ok", [4.0]),
        ("canary", 0, 1, "ok", [8.0]),
    ]  # fmt: skip
    assert all(record.source is Source.IMPORT for record in records)
    assert {doubt.code for record in records for doubt in record.doubts} == {DoubtCode.VIRTUAL_DEVICE}
    code, out, _ = farm("results", "latest", "--json")
    (summary,) = json.loads(out)["summaries"]
    assert (code, summary["source"], summary["latency"]["blocks"], summary["latency"]["median_ms"]) == (
        0,
        "import",
        2,
        3.5,
    )


def test_every_reading_command_takes_an_import(farm: Farm, tmp_path: Path) -> None:
    name = imported(farm, write(tmp_path / "a.csv", ROWS))["experiment"]
    code, out, _ = farm("status", name)
    assert (code, "3 ok" in out) == (0, True)
    code, out, _ = farm("results", name)
    assert (code, "IMPORT" in out, "layers only" in out, "squeezenet" in out or "renderscript" in out) == (
        0,
        *[True] * 3,
    )
    code, _, err = farm("report", name, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert (code, "IMPORT RESULTS" in page, "layers only" in page) == (0, True, True), err
    assert "VIRTUAL" not in page


def test_the_exporter_takes_an_import(farm: Farm, tmp_path: Path) -> None:
    imported(farm, write(tmp_path / "a.csv", ROWS))
    found = Results()
    with create_engine(Settings().ledger).connect() as connection:
        found.update(connection)
        while found.due:
            found.update(connection)
    latency = next(family for family in found.families() if family.name == "farm_results_latency_seconds")
    told = {(s.labels["serial"], s.labels["backend"], s.labels["source"]) for s in latency.samples}
    assert told == {("Galaxy S7", "renderscript", "import"), ("Nexus 5", "cpu", "import")}


def test_a_foreign_job_is_never_an_ordinary_one() -> None:
    ordinary = make.job()
    assert type(ANY_JOB.validate_json(ordinary.model_dump_json())) is Job
    data = json.loads(ordinary.model_dump_json())
    data["cell"] |= {"foreign": True, "backend": "renderscript", "precision": "imprecise"}
    foreign = ANY_JOB.validate_json(json.dumps(data))
    assert type(foreign) is ForeignJob and foreign.cell.backend == "renderscript"
    with pytest.raises(ValidationError):
        Job.model_validate_json(foreign.model_dump_json())
    with pytest.raises(ValidationError):
        Cell.model_validate({"workload": {"network": "n"}, "backend": "renderscript"})
