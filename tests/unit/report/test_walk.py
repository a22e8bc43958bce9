"""The walk: every quantity of every result through every output is one number under one name, none below zero."""

from __future__ import annotations

import json
import re
from io import StringIO
from random import Random
from typing import Any

import pytest
from rich.console import Console

from farm.api.experiment import row_of
from orchestrator.analysis.comparison import Compared, compare, rows_of, sides_of
from orchestrator.analysis.statistics import QUANTITIES, Summary, Told, brief_of, told_of
from orchestrator.metrics.result_families import ResultLabels, result_families
from orchestrator.model.device import Api, Source
from orchestrator.model.event import Memory
from orchestrator.model.record import Record
from orchestrator.report import console, export, wording
from orchestrator.report.html import render

from .records import Whole, built, cell, experiment, powered, record, steps_of

SERIALS = ("phone-1", "phone-2", "phone-3")
CELLS = {api: cell(api) for api in (Api.OPENCL, Api.VULKAN)}
COLUMNS = {
    "latency": "median_ms", "throughput": "frames_per_s", "power load": "load_power_w",
    **{f"setup {state}": f"setup_{state}_ms" for state in ("warm", "cached")},
    **{f"memory {kind}": f"memory_{kind}_bytes" for kind in ("device", "process", "pss")},
}  # fmt: skip


def experiment_of(random: Random) -> Whole:
    """Few blocks or many, even or wide, with gross ones, energies of short loads, power near that at rest."""
    records = [one for serial in SERIALS for one in _of_phone(serial, random)]
    cells = {each.cell_id: each for each in CELLS.values()}
    return built("e-1", experiment(), cells=cells, records=records, outcomes={"ok": len(records)}, now=1e9)


def _of_phone(serial: str, random: Random) -> list[Record]:
    count, spread, gross = random.randrange(1, 9), random.choice((0.002, 0.05, 0.6)), random.random() < 0.3
    load_s = random.choice((0.5, 5.0, 35.0, 35.0))
    idle_w, net_w = random.uniform(0.2, 1.5), random.choice((0.02, 0.5, 3.0))
    return [
        _block(serial, api, block, 2 * block + turn, spread, gross, load_s, idle_w, net_w, random)
        for block in range(count)
        for turn, api in enumerate(CELLS)
    ]


def _block(
    serial: str, api: Api, block: int, at: int, spread: float, gross: bool, load_s: float, idle_w: float, net_w: float,
    random: Random,
) -> Record:  # fmt: skip
    slow = random.lognormvariate(0, spread) * (4.0 if gross and random.random() < 0.2 else 1.0)
    timed = [slow * random.lognormvariate(1 + (api is Api.VULKAN), 0.05) for _ in range(6)]
    plain = record(CELLS[api], timed, block=block, serial=serial, token=at + 1, source=Source.PHONE)
    noise = [random.gauss(0, random.choice((0.01, 0.5))) for _ in range(101)]
    found = powered(plain, idle_w, idle_w + net_w * random.lognormvariate(0, spread), each_s=load_s, noise=noise)
    steps = steps_of({"context": 3.0, "build": random.uniform(20, 60)}, cached=block > 0 and random.random() < 0.7)
    memory = Memory(
        seq=0, t_ns=0, device_bytes=1, device_peak_bytes=random.randrange(1, 10**7), vm_rss_bytes=1,
        vm_hwm_bytes=random.randrange(1, 10**8), pss_bytes=random.randrange(1, 10**8),
    )  # fmt: skip
    started = {"started_at": 1e6 + 100.0 * at, "ended_at": 1e6 + 100.0 * at + 90}
    return found.model_copy(update={"setup": steps, "memory": memory, **started})


def test_a_quantity_is_one_number_in_every_output(seed: int) -> None:
    random = Random(seed)
    for _ in range(12):
        whole = experiment_of(random)
        data = json.loads(json.dumps(export.as_data(whole)))
        text, compared = printed(whole), _compared(whole)
        for summary, told_json in zip(whole.summaries, data["summaries"], strict=True):
            samples, row = exposed(summary), row_of(told_json)
            assert len(told_of(summary)) == len(told_json["quantities"])
            for told, of_json in zip(told_of(summary), told_json["quantities"], strict=True):
                name = f"{told.metric} {told.basis}".strip()
                check_told(told, name)
                assert (of_json["value"], bool(of_json["not_resolved"])) == (told.value, told.value is None), name
                assert of_json["interval"] == (told.interval and _ends(told)), name
                assert samples.get((QUANTITIES[told.metric].family, told.basis)) == told.value, name
                if (column := COLUMNS.get(name)) is not None:
                    assert row[column] == told.value, name
                beside = compared.get((summary.serial, summary.backend, told.metric, told.basis))
                if beside is not None and told.value is not None:
                    assert beside == pytest.approx(told.value, rel=1e-12), name
            in_table(text, summary)
        for each in data["side_by_side"]:
            assert each["speed_up"] == each["over_ms"] / each["ms"]
            assert each["interval"] is None or each["interval"]["low"] <= each["speed_up"] <= each["interval"]["high"]
            medians = {
                s.backend: s.latency.median_ms for s in whole.summaries if s.serial == each["serial"] and s.latency
            }
            assert (medians[each["backend"]], medians[each["over"]]) == (each["ms"], each["over_ms"])
        assert not re.search(r"\[-|-\d[\d.]* (m|µ)?[JW]\b", text), "no bound is below zero"
        assert text.startswith(data["usable"]) and " ".join(text.split()).endswith(" ".join(data["closing"].split()))


def test_the_page_shows_what_the_table_shows(seed: int) -> None:
    whole = experiment_of(Random(seed))
    page = render(whole)
    for summary in whole.summaries:
        for told in told_of(summary):
            if (told.metric, told.basis) == ("latency", ""):
                for words in wording.told(told):
                    assert words in page
        value, interval = wording.energy(summary.energy_per_inference)
        assert f"<b>{value}</b><small>{interval}</small>" in page
        assert wording.setup(summary.setup) in page
    assert not re.search(r"\[-\d|>-\d[\d.]* (m|µ)?[JW]\b", page)


def check_told(told: Told, name: str) -> None:
    assert (told.value is None) == (told.unresolved is not None), name
    if told.value is None:
        assert told.interval is None and re.fullmatch(r"(not resolved|too short) \(.+\)", wording.in_words(told)), name
    elif told.interval is not None:
        assert 0 < told.interval.low <= told.value <= told.interval.high, name


def in_table(text: str, summary: Summary) -> None:
    """The row of the result: below its device's name."""
    own = text[text.index(f"\n{summary.serial} ") :]
    line = next(line for line in own.splitlines() if line.strip().startswith(f"{summary.backend} {summary.precision}"))
    for told in told_of(summary):
        if told.metric == "latency":
            assert all(words in line for words in wording.told(told)), line


def exposed(summary: Summary) -> dict[tuple[str, str], float]:
    """Value in the quantity's unit, by family and basis."""
    base = {each.family: each.base for each in QUANTITIES.values()}
    labels = ResultLabels(summary.serial, summary.workload, summary.backend, summary.precision, "", "phone")
    found = {}
    for family in result_families({labels: (summary, 1.0)}):
        for sample in family.samples:
            assert not sample.name.startswith("farm_results_") or sample.value >= 0
            if sample.labels.get("stat") == "median":
                order = ("state", "kind", "basis", "phase", "power_source", "scope", "meter")
                basis = " ".join(filter(None, (sample.labels.get(name, "") for name in order)))
                found[sample.name, basis] = pytest.approx(sample.value / base[sample.name], rel=1e-12)
    return found


def _compared(whole: Whole) -> dict[tuple[str, str, str, str], float]:
    """Of each device, backend, metric and basis what `farm compare --sides backend=...` says."""
    rows = rows_of(map(brief_of, whole.blocks), {each.cell_id: each for each in CELLS.values()})
    sides = tuple(map(str, CELLS))
    found: dict[tuple[str, str, str, str], float] = {}
    for row in compare(*sides_of(rows, "backend", *sides)):
        assert row.ratio is None or row.a is None or row.b is None or row.ratio == pytest.approx(row.b / row.a)
        found |= {(row.device, side, row.metric, row.basis): at for side, at in zip(sides, _of(row), strict=True) if at}
    return found


def _of(row: Compared) -> tuple[float | None, float | None]:
    return row.a, row.b


def _ends(told: Told) -> dict[str, Any]:
    assert told.interval is not None
    return {"low": told.interval.low, "high": told.interval.high, "level": told.interval.level}


def printed(content: Whole) -> str:
    buffer = StringIO()
    Console(file=buffer, width=220).print(console.render(content))
    return buffer.getvalue()
