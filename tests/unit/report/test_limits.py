"""A search for limits in the report: the answer of each device, what stopped it, and the chart."""

from __future__ import annotations

import random
from io import StringIO

from rich.console import Console

from orchestrator.model.device import Api, Source
from orchestrator.model.experiment import Experiment
from orchestrator.model.experiment.published import Published
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome, Record
from orchestrator.model.stopped import Stopped
from orchestrator.report import console
from orchestrator.report.export import as_data
from orchestrator.report.html import render
from orchestrator.report.sections import sections

from .records import Whole, built, record

ASKED = Experiment.model_validate(
    {
        "name": "limits",
        "workload": {"network": "autoencoder_784", "parameters": {"hidden": [64, 250, 10]}},
        "matrix": {"backend": "cpu"},
        "strategy": {"limit_search": {"dimension": "hidden.0", "tolerance": "30 %", "most": 128}},
        "published": {
            "study": {
                "source": "study A",
                "devices": {"mGPU1": []},
                "cells": [{"table": "III", "title": "limit", "columns": {"N": ""}, "rows": {"mGPU1": [160]}}],
            },
            "tables": [{"table": "III", "metric": "limit", "columns": {"N": {}}}],
        },
    }
)
FIRST = Cell(workload=ASKED.workload, backend=Api.CPU)
LMKD = "the phone's log: lowmemorykiller: Kill 'pocketfarm-agent' (7), uid 2000"


def probe(serial: str, n: int, outcome: Outcome = Outcome.OK, cause: str = "", why: str = "", block: int = 0) -> Record:
    reasons = (why,) if why else ()
    made = record(FIRST.at("hidden.0", n), [n / 10] if outcome is Outcome.OK else [], serial=serial, outcome=outcome,
                  reasons=reasons, token=2 * n + block, block=block)  # fmt: skip
    return made.model_copy(update={"cause": cause})


def content() -> Whole:
    records = [
        *(probe("A", n) for n in (64, 80)),
        *(probe("A", 96, Outcome.KILLED, "killed", LMKD, block) for block in (0, 1)),
        *(probe("A", 128, Outcome.KILLED, block=block) for block in (0, 1)),
        *(probe("B", n) for n in (64, 128)),
        probe("C", 64, Outcome.FAILED, "out_of_memory", "pool `weights`: cannot allocate 7 bytes"), probe("C", 32),
        *(probe("D", 64, Outcome.KILLED, block=block) for block in (0, 1)), probe("D", 80), probe("D", 32),
        probe("D", 48), probe("E", 64), probe("E", 128, Outcome.FAILED, "model_file", "x.onnx: truncated"),
        probe("F", 64), probe("F", 128, Outcome.KILLED),
    ]  # fmt: skip
    cells = {cell.cell_id: cell for n in (32, 48, 64, 80, 96, 128) for cell in [FIRST.at("hidden.0", n)]}
    return built("limits-1", ASKED, cells=cells, records=records, outcomes={"ok": len(records)}, now=1.8e9,
                 stopped=[Stopped(why="the search ended: model_file", remedy="mend it", devices=("E",))])  # fmt: skip


def test_each_device_has_its_answer_with_what_stopped_it() -> None:
    found = content()
    (section,) = [each for each in sections(found) if each.name == "limits"]
    rows = {row[0].split()[0]: row[1:] for row in section.rows}
    assert rows["A"][:6] == ("autoencoder_784 cpu fp32", "hidden.0", "80", "8.00", "85,560", "96")
    assert rows["A"][6] == f"killed: {LMKD}" and rows["A"][7] == "6"
    assert rows["B"][2] == "128" and rows["B"][5:7] == ("-", "nothing, up to the most that is tried")
    assert rows["C"][6] == "still searching; refused (out_of_memory): pool `weights`: cannot allocate 7 bytes"
    assert rows["D"][2] == "48" and "a larger value ran" in rows["D"][6]
    assert rows["E"][2:7] == ("64", "6.40", rows["E"][4], "-", "ended without an answer")
    assert rows["F"][5:7] == ("-", "still searching"), "one kill alone does not decide"
    assert section.bad == {2, 3, 4, 5}
    data = {each["serial"]: each for each in as_data(found)["limits"]}
    assert data["A"]["largest"]["value"] == 80 and data["A"]["largest"]["weights"] == 785 * 80 + 81 * 250 + 251 * 10
    assert [each["ended"] for each in data["A"]["probes"]] == ["ran", "ran", *["killed"] * 4]
    assert (data["C"]["over"], data["D"]["consistent"]) == (False, False)


def test_a_published_limit_stands_beside_ours() -> None:
    found = content().reproduction
    assert found is not None
    ours = {each.serial: (each.published, each.ours, each.ratio, each.verdict) for each in found.beside}
    assert ours["A"] == (160, 80, 0.5, "modelled") and ours["B"][1] == 128
    assert ours["C"][1] is None, "it still searches"


def test_terminal_and_page_show_it_with_a_chart() -> None:
    found = content()
    buffer = StringIO()
    Console(file=buffer, width=200).print(console.render(found))
    page = render(found, found.records)
    assert "Limits of the devices" in buffer.getvalue() and "lowmemorykiller" in buffer.getvalue()
    assert 'id="limits"' in page and "Time over hidden.0, and where devices gave up" in page
    for shown in (buffer.getvalue(), page):
        assert "Ended early" in shown and "the search ended: model_file" in shown and "mend it" in shown
    assert as_data(found)["stopped"][0]["devices"] == ["E"]
    for words in ("ms of one inference", ">killed<", ">refused<", "A autoencoder_784 cpu fp32"):
        assert words in page, words


def test_limits_are_set_beside_those_of_devices_of_the_same_kind(seed: int) -> None:
    """The memory of virtual phones comes from their profiles: it says nothing of phones, however they are mixed."""
    chance = random.Random(seed)
    finding = {"text": "more memory, more units", "metric": "limit", "expect": "by_memory"}
    published = ASKED.published.model_dump() | {"findings": [finding]} if ASKED.published else {}
    asked = ASKED.model_copy(update={"published": Published.model_validate(published)})
    records, sizes = [], [20, 30, 45, 67]
    for source, order in ((Source.PHONE, sizes), (Source.VIRTUAL, sizes[::-1])):
        for gigabytes, n in enumerate(order, start=1):
            serial, more = f"{source}{gigabytes}", n * 5 // 4
            for made in (probe(serial, n), *(probe(serial, more, Outcome.KILLED, block=block) for block in (0, 1))):
                own = made.model_dump() | {"source": source}
                own["device"]["source"], own["runs_on"]["facts"]["global_bytes"] = source, gigabytes * 10**9
                records.append(Record.model_validate(own))
    chance.shuffle(records)
    cells = {cell.cell_id: cell for n in sizes for cell in (FIRST.at("hidden.0", n), FIRST.at("hidden.0", n * 5 // 4))}
    found = built("limits-1", asked, cells=cells, records=records, outcomes={}, now=1.8e9).reproduction
    assert found is not None
    verdicts = {one.serial: one.verdict for one in found.beside if one.row == finding["text"]}
    assert {verdicts[f"{Source.PHONE}{n}"] for n in range(1, 5)} == {"reproduced"}
    assert {verdicts[f"{Source.VIRTUAL}{n}"] for n in range(1, 5)} == {"modelled"}
