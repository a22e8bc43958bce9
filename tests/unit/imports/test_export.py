"""Exports hold every figure once, in every form; what they write can be imported again."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from orchestrator.exchange import long_rows, row_files
from orchestrator.exchange.power_traces import read_trace
from orchestrator.figures import timed_ms
from orchestrator.ledger import Ledger
from orchestrator.model.experiment import Workload
from orchestrator.model.power import GaugeCalibration, PowerSeries, PowerSource, Scope
from orchestrator.model.record import Outcome
from tests.unit.report import records as made

from .conftest import Farm
from .test_import import ROWS, imported, write

pytestmark = pytest.mark.unit


def export(farm: Farm, path: Path, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = farm("export", "latest", "-o", path, *arguments, "--json")
    assert code == 0, err
    told = json.loads(out)
    if path.suffix == ".parquet":
        rows = parquet.read_table(path).to_pylist()
    elif path.suffix == ".json":
        rows = json.loads(path.read_text())
    else:
        rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert told["rows"] == len(rows)
    return rows


def test_all_forms_say_the_same(farm: Farm, tmp_path: Path) -> None:
    imported(farm, write(tmp_path / "a.csv", ROWS))
    typed = export(farm, tmp_path / "e.parquet", "--format", "parquet")
    assert typed == export(farm, tmp_path / "e.json", "--format", "json")
    text = export(farm, tmp_path / "e.csv")  # as the name ends
    assert [{key: "" if value is None else str(value) for key, value in row.items()} for row in typed] == text
    first, _, last = typed
    assert (first["device"], first["source"], first["granularity"]) == ("Galaxy S7", "import", 4)
    assert (first["backend"], first["phase"], first["sample_ms"], first["outcome"]) == (
        "renderscript",
        "timed",
        200.5,
        "ok",
    )
    assert (last["granularity"], last["sample_ms"]) == (None, 43932.73)
    layers = export(farm, tmp_path / "l.parquet", "--format", "parquet", "--what", "layers")
    assert [(row["layer"], row["repeat"], row["sample_ms"]) for row in layers] == [
        ("conv1", 0, 57.0), ("conv1", 1, 59.0), ("fire2", 0, 6.0),
    ]  # fmt: skip


def test_without_whole_inferences_the_layers_are_written(farm: Farm, tmp_path: Path) -> None:
    table = tmp_path / "layers.csv"
    table.write_text("device,network,layer,backend,precision,sample_ms\nS7,squeezenet,conv1,cpu,fp32,57\n")
    assert farm("import", "samples", table)[0] == 0
    (row,) = export(farm, tmp_path / "e.json", "--format", "json")
    assert (row["layer"], row["sample_ms"]) == ("conv1", 57.0)


@pytest.mark.parametrize("what", ["samples", "layers"])
def test_what_was_exported_can_be_imported(farm: Farm, ledger: Ledger, tmp_path: Path, what: str) -> None:
    header = "device,network,layer,backend,precision,g,mode,block,attempt,phase,outcome,start_ns,sample_ms"
    mode = {4: "true", 8: ""}
    rows = [
        f"{device},n,{layer},b,p,{g},{mode[g]},{block},{attempt},{phase},{outcome},{block * 7},{ms / 7}"
        for ms, (device, layer, g, block, attempt, phase, outcome) in enumerate(
            (device, layer, g, block, attempt, phase, "ok" if attempt == 2 else "lost")
            for device in "de"
            for layer in ("", "c1", "c2")
            for g in (4, 8)
            for block in (0, 1)
            for attempt in (1, 2)
            for phase in (("warmup", "timed", "timed") if not layer else ("timed", "timed"))
        )
    ]
    first = str(imported(farm, write(tmp_path / "a.csv", rows, header))["experiment"])
    export(farm, tmp_path / "e.csv", "--format", "csv", "--what", what)
    second = str(imported(farm, tmp_path / "e.csv")["experiment"])
    assert first != second

    def content(name: str) -> list[object]:
        cells = {job.job_id: job.job.cell for job in ledger.jobs(name)}
        return [
            (
                record.device.serial, cells[record.job_id].label, record.block, record.attempt, record.outcome,
                [(s.phase, s.index, s.start_ns, s.duration_ns) for s in record.samples] if what == "samples" else
                [(layer.layer, layer.index, layer.repeat, layer.duration_ns) for layer in record.layers],
            )
            for record in ledger.records(name)
        ]  # fmt: skip

    assert content(first) == content(second)
    assert len(content(first)) == 16


def test_power_is_calibrated_and_told_with_its_source_and_phase() -> None:
    cell = made.cell()
    gauge = GaugeCalibration(ampere_per_unit=1e-3, discharging_sign=1, method="load steps")
    series = PowerSeries(source=PowerSource.METER, scope=Scope.DEVICE, name="m", t_ns=(5,), power_w=(1.25,))
    record = made.record(cell, [1.0]).model_copy(update={"gauge": gauge, "series": (series,)})
    record = record.model_copy(update={"power": (record.power[0].model_copy(update={"current_ua": 500, "t_ns": 3}),)})
    rows = list(long_rows.rows("power", [record], {cell.cell_id: cell}))
    assert [(row["power_source"], row["power_w"], row["t_ns"]) for row in rows] == [
        ("gauge", 2.0, 3),
        ("meter", 1.25, 5),
    ]
    assert (rows[0]["current_a"], rows[0]["current_raw"], rows[0]["voltage_v"]) == (0.5, 500, 4.0)
    assert set(rows[0]) <= set(long_rows.columns("power", [cell]))


def test_exported_power_is_a_trace_that_others_may_have_recorded(tmp_path: Path) -> None:
    cell = made.cell("opencl")
    record, path = made.powered(made.record(cell, [1.0]), 0.5, 2.5), tmp_path / "power.csv"
    with path.open("wb") as file:
        row_files.write(
            "csv", long_rows.columns("power", [cell]), long_rows.rows("power", [record], {cell.cell_id: cell}), file
        )
    (found,) = read_trace(path)
    assert (found.column, len(found.power_w)) == ("power_w", len(record.power))
    assert found.duration_s == pytest.approx(90.0) and set(found.power_w.round(6)) == {0.5, 2.5}
    assert [doubt.code for doubt in found.doubts] == []


def test_rejected_records_are_exported_too() -> None:
    cell = made.cell()
    records = [made.record(cell, [1.0]), made.record(cell, [2.0], block=1, outcome=Outcome.INVALID)]
    rows = list(long_rows.rows("samples", records, {cell.cell_id: cell}))
    assert [row["outcome"] for row in rows if row["phase"] == "timed"] == ["ok", "invalid"]
    assert sum(len(timed_ms(record)) for record in records) == 2


def test_an_epoch_is_exported_with_its_stage() -> None:
    """The results count a training's last stage."""
    plain, training = made.cell(), {"dataset": {"named": "digits"}, "epochs": 2}
    trains = Workload.model_validate({"network": "classifier_784", "training": training})
    cell = plain.model_copy(update={"workload": trains})
    record = made.record(cell, [9.0, 8.0, 3.0, 4.0])
    stages = ("pretrain:dense1", "pretrain:dense1", "train", "train")
    timed = [sample for sample in record.samples if sample.phase == "timed"]
    samples = tuple(s.model_copy(update={"stage": stage}) for s, stage in zip(timed, stages, strict=True))
    record = record.model_copy(update={"samples": samples})
    rows = list(long_rows.rows("samples", [record], {cell.cell_id: cell}))
    assert [row["sample_ms"] for row in rows if row["stage"] == rows[-1]["stage"]] == timed_ms(record) == [3.0, 4.0]
    assert set(rows[0]) == set(long_rows.columns("samples", [cell]))
    assert "stage" not in long_rows.columns("samples", [plain]) | long_rows.columns("power", [cell])


def test_an_axis_of_several_kinds_is_text() -> None:
    cells = [made.cell().model_copy(update={"options": {"algorithm": value}}) for value in (1, "auto")]
    assert long_rows.columns("samples", cells)["algorithm"] == "text"
    file = io.BytesIO()
    columns = long_rows.columns("samples", cells)
    row_files.write("parquet", columns, [{"algorithm": 1}, {"algorithm": "auto"}, {}], file)
    assert parquet.read_table(io.BytesIO(file.getvalue()))["algorithm"].to_pylist() == ["1", "auto", None]


MILLION = """
import resource, sys
from orchestrator.exchange import row_files, long_rows
from tests.unit.report import records as made

cell = made.cell()
record = made.record(cell, [1.0] * 1000)
def many():
    for block in range(int(sys.argv[2])):
        yield record.model_copy(update={"block": block})
with open(sys.argv[3], "wb") as file:
    rows = long_rows.rows("samples", many(), {cell.cell_id: cell})
    count = row_files.write(sys.argv[1], long_rows.columns("samples", [cell]), rows, file)
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_ten_times_the_rows_need_no_more_memory(tmp_path: Path) -> None:
    def peak_kib(blocks: int) -> int:
        arguments = [sys.executable, "-c", MILLION, "parquet", str(blocks), str(tmp_path / "f")]
        out = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
        assert int(out[0]) == 1001 * blocks
        return int(out[1])

    assert peak_kib(300) < peak_kib(30) + 40_000


def test_where_it_cannot_be_written_nothing_is_left(farm: Farm, tmp_path: Path) -> None:
    imported(farm, write(tmp_path / "a.csv", ROWS))
    code, _, err = farm("export", "latest", "-o", tmp_path / "none" / "e.csv", "--format", "csv")
    assert (code, "mkdir" in err) == (1, True)
    code, _, err = farm("export", "latest", "-o", "-", "--json")
    assert (code, "no --json beside" in err) == (2, True)
    assert list(tmp_path.glob("*.new")) == []
