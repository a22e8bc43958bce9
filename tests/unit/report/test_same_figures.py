"""A figure is the same wherever it is told: page, table, chart, JSON and export."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from statistics import fmean, median

import pytest

from orchestrator.energy import calibration
from orchestrator.energy.gauge_readings import gauge_readings
from orchestrator.exchange import long_rows
from orchestrator.model.device import Api
from orchestrator.model.event import Setup
from orchestrator.model.job import Cell
from orchestrator.model.record import Record
from orchestrator.report import export, wording
from orchestrator.report.html import render
from orchestrator.report.sections import sections
from tests.unit.energy.scenarios import record_of
from virtual_phones.profile import load_profile
from virtual_phones.simulation import Course, simulate

from .records import Whole, built, cell, experiment, powered, record, summarised

ONE = cell()


def content(records: list[Record], of: Cell = ONE) -> Whole:
    return built("e", experiment(), cells={of.cell_id: of}, records=records, outcomes={}, now=1e9)


def started(block: int, steps: dict[str, float]) -> Record:
    events = tuple(
        Setup(seq=i, t_ns=0, step=step, start_ns=0, duration_ns=int(ms * 1e6))  # type: ignore[arg-type]
        for i, (step, ms) in enumerate(steps.items())
    )
    return record(ONE, [2.0, 2.1], block=block, token=block + 1).model_copy(update={"setup": events})


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5])
def test_set_up_is_the_median_of_the_blocks_totals_everywhere(blocks: int) -> None:
    """The first block alone builds for long and writes a cache; all wait for the engine's slot and read back."""
    usual = {"slot": 7e4, "context": 3.0, "build": 40.0, "upload": 11.0, "readback": 500.0}
    first = {**usual, "build": 8000.0, "cache": 5000.0}
    whole = content([started(i, {**(usual if i else first), "context": 3.0 + i}) for i in range(blocks)])
    raw = json.loads(json.dumps(export.as_data(whole, whole.records)))
    totals = [
        sum(step["duration_ns"] for step in each["setup"] if step["step"] not in ("slot", "readback")) / 1e6
        for each in raw["records"]
    ]
    expected = median(totals)
    (told,) = raw["summaries"]
    (use,) = told["setup"]
    assert use["total_ms"] == pytest.approx(expected)
    assert sum(use["steps_ms"].values()) == pytest.approx(expected), "the chart stacks these"
    cells = re.findall(r'<td class="n">([^<]*)</td>', render(whole))
    assert cells[1] == f"{wording.ms(expected)} warm", "the cell behind median, p90 and min"


def test_a_cold_start_takes_as_long_in_both_tables() -> None:
    cold = [started(i, {"slot": 9.0, "build": 40.0 + i, "readback": 5.0}) for i in range(3)]
    cold = [each.model_copy(update={"samples": each.samples[1:2]}) for each in cold]  # such a block has no warm-up
    (summary,) = summarised(cold, {ONE.cell_id: ONE}, mode="cold")
    assert summary.cold and summary.cold.setup_ms == summary.setup[0].total_ms == 41.0
    assert summary.cold.total_ms == summary.setup[0].first_result_ms == 41.0 + 2.0 + 5.0


def test_the_time_on_the_device_is_that_of_a_whole_pass() -> None:
    """Another layer is slow in each pass: the medians of the layers say nothing of a pass."""
    plain = record(ONE, [2.0])
    layers = tuple(
        plain.layers[0].model_copy(
            update={"index": i, "layer": f"l{i}", "repeat": n, "duration_ns": 10**6 * (1 + 8 * (i == n))}
        )
        for n in range(3) for i in range(3)
    )  # fmt: skip
    (summary,) = content([plain.model_copy(update={"layers": layers})]).summaries
    assert summary.device_ms == 11.0 and sum(layer.median_ms for layer in summary.layers) == 3.0
    assert "11.0 ms on the device" in render(content([plain.model_copy(update={"layers": layers})]))


@pytest.mark.parametrize("calibrated", [False, True], ids=["assumed", "enrolled"])
@pytest.mark.parametrize("name", ["nexus_5", "galaxy_s7", "galaxy_s24"])
def test_exported_power_is_that_of_the_report(name: str, calibrated: bool) -> None:
    """The gauge of a Nexus 5 prints what leaves the battery as positive, a Galaxy S24's in mA."""
    profile = load_profile(name)
    simulated = simulate(profile, Course(idle_s=30, load_s=60), 5)
    made = record_of(simulated, profile, calibrated=calibrated, cell_id=ONE.cell_id)
    rows = list(long_rows.rows("power", [made], {ONE.cell_id: ONE}))
    by_phase = defaultdict(list)
    for row in rows:
        by_phase[row["phase"]].append(row["power_w"])
    gauge = calibration(made)
    seen = gauge_readings(made.power, gauge)
    power_w = seen.raw * gauge.discharge_a_per_unit * seen.volts
    assert [row["power_w"] for row in rows] == pytest.approx(list(power_w))
    (use,) = summarised([made], {ONE.cell_id: ONE})[0].energy
    assert use.idle_power_w is not None
    assert fmean(by_phase["load"]) == pytest.approx(use.load_power_w.value, rel=0.03)
    assert fmean(by_phase["idle_before"]) == pytest.approx(use.idle_power_w.value, rel=0.1)


def unrested(block: int, of: Cell = ONE) -> Record:
    made = powered(record(of, [5.0] * 4, block=block, token=block + 1), 1.0, 3.0)
    return made.model_copy(update={"phases": made.phases[1:2]})


def test_gross_energy_is_shown_and_called_so() -> None:
    """There is no net figure without rests: the gross one stands in every table, with its name."""
    whole = content([unrested(i) for i in range(3)])
    told = whole.summaries[0].energy_per_inference
    assert told and told.basis == "gross" and told.figure_j.value == pytest.approx(3.0 * 30 / 4, rel=0.02)
    words, interval = wording.energy(told)
    assert words.endswith("J gross") and interval.endswith("J 75 %")
    (energy,) = [section for section in sections(whole) if section.name.startswith("energy")]
    assert words in energy.rows[0] and interval in energy.rows[0]
    assert "Gross:" in energy.note and "is subtracted" not in energy.note
    assert not {"gross", "idle power"} & {column.name for column in energy.columns}, "empty columns"
    page = render(whole)
    assert page.count(words) >= 2 and "is subtracted" not in page
    assert export.as_data(whole)["summaries"][0]["energy_per_inference"]["basis"] == "gross"


def test_net_and_gross_beside_each_other_are_told_apart() -> None:
    other = cell(Api.VULKAN)
    rested = [powered(record(other, [5.0] * 4, block=i, token=9 + i), 1.0, 3.0) for i in range(3)]
    known = {each.cell_id: each for each in (ONE, other)}
    whole = built(
        "e", experiment(), cells=known, records=[*rested, *map(unrested, range(3))], outcomes={}, now=1e9
    )  # fmt: skip
    (energy,) = [section for section in sections(whole) if section.name.startswith("energy")]
    assert sorted(row[2].split()[-1] for row in energy.rows) == ["gross", "net"]
    assert "do not compare" in energy.note
