"""Published figures beside ours: cell by cell, with the shape judged and no absolute figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.analysis.reproduction import Beside
from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Layer
from orchestrator.model.experiment import Published, Workload
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode, Record
from orchestrator.report import charts, export
from orchestrator.report.drawing import to_svg
from orchestrator.report.html import render

from .records import MS, Whole, built, experiment, powered, record
from .test_comparisons import part, printed

NOISE = (1.0, 1.01, 0.99, 1.02, 0.98)
Times = Sequence[tuple[Cell, Sequence[float]]]
S7 = "SM-G930F"


def cell(backend: str = "opencl", network: str = "lenet", precision: str = "fp32", **options: Any) -> Cell:
    return Cell(
        workload=Workload(network=network), backend=Api(backend), precision=Precision(precision), options=options
    )


def times(ms: float, blocks: int = 5) -> list[float]:
    return [ms * factor for factor in NOISE[:blocks]]


def measured(published: dict[str, Any], found: Times, model: str = "PC") -> Whole:
    """Rounds in which each cell ran once, one after another."""
    cells = [one for one, _ in found]
    records = [
        record(one, [own[block]] * 3, block=block, token=block * len(cells) + turn + 1, model=model)
        for block in range(max((len(own) for _, own in found), default=0))
        for turn, (one, own) in enumerate(found)
    ]
    return reported(published, cells, records)


def reported(published: dict[str, Any], cells: Sequence[Cell], records: Sequence[Record]) -> Whole:
    table = Published.model_validate({"source": "Somebody, 2016", **published})
    asked = experiment().model_copy(update={"published": table})
    return built("e", asked, cells={one.cell_id: one for one in cells}, records=records, outcomes={}, now=1e9)


def beside(content: Whole) -> list[Beside]:
    assert content.reproduction is not None
    return list(content.reproduction.beside)


MODES = {
    "title": "whole",
    "unit": "s",
    "columns": [
        {"name": "sequential", "at": {"backend": "cpu", "algorithm": "sequential"}},
        {"name": "precise", "at": {"backend": "opencl", "precision": "fp32"}},
        {"name": "imprecise", "at": {"backend": "opencl", "precision": "relaxed"}},
    ],
    "rows": [
        {"name": "S7", "at": {"device": "Galaxy S7"}, "values": [12.0, 0.4, 0.2]},
        {"name": "N5", "at": {"device": "Nexus 5"}, "values": [40.0, 0.5, None]},
    ],
}
SEQUENTIAL, PRECISE = cell("cpu", algorithm="sequential"), cell(granularity=8)
SLOWER_G, IMPRECISE = cell(granularity=64), cell(precision="relaxed")


@pytest.mark.parametrize(
    ("ours_ms", "verdicts"),
    [
        ((900, 40, 20), ["reproduced", "reproduced", "reproduced"]),
        ((60, 40, 20), ["different", "reproduced", "reproduced"]),  # 60 times there, 3 times here: another order
        ((900, 20, 40), ["reproduced", "different", "different"]),  # 22 times: of the order of 60
        ((900, 20, 20), ["reproduced", "within noise", "within noise"]),
    ],
)
def test_a_line_is_judged_by_who_wins_and_by_the_order_of_ratios(ours_ms: Any, verdicts: list[str]) -> None:
    sequential, precise, imprecise = ours_ms
    restless = [value * 1.03**sign for value, sign in zip(times(imprecise), (1, -1, 1, -1, 1), strict=True)]
    ours = [
        (SEQUENTIAL, times(sequential)),
        (PRECISE, times(precise)),
        (SLOWER_G, times(10 * precise)),
        (IMPRECISE, restless),
    ]
    found = beside(measured({"devices": {"Galaxy S7": ["SM-G930*"]}, "tables": [MODES]}, ours, model=S7))
    assert [one.verdict for one in found] == verdicts
    assert {one.published_on for one in found} == {"Galaxy S7"} and all(one.same_model for one in found)
    assert found[1].cell == "lenet opencl fp32 granularity=8"  # the better one of the two that the keys fit
    assert found[0].ours == pytest.approx(sequential / 1000, rel=0.02) and found[0].source == "virtual"
    assert found[0].ratio == pytest.approx(sequential / 12000, rel=0.02)


def test_a_sum_of_some_layers_is_no_time_of_the_network() -> None:
    doubt = Doubt(code=DoubtCode.LAYERS_MISSING, detail="without ip1")
    whole, parts = (record(one, [30.0] * 3) for one in (SEQUENTIAL, PRECISE))
    parts = parts.model_copy(update={"doubts": (doubt,)})
    rows = [{**row, "values": [0.01, 0.002]} for row in MODES["rows"][:1]]
    layer = {**MODES, "columns": [{**each, "at": {**each["at"], "layer": "conv1"}} for each in MODES["columns"][:2]]}
    found = beside(reported({"tables": [MODES, {**layer, "rows": rows}]}, [SEQUENTIAL, PRECISE], [whole, parts]))
    of = {(one.column, one.published): (one.ours, one.why) for one in found}
    assert of["precise", 0.4] == (None, "without ip1") and of["sequential", 12.0][0] is not None
    assert of["precise", 0.002][0] == pytest.approx(0.003), "of the layers that were recorded"


def test_ours_is_written_as_a_person_would_write_it() -> None:
    """No power of ten: 3800 ms, not 3.8e+03."""
    table = {**MODES, "unit": "ms", "rows": [{"name": "S7", "values": [12331.82, 436.71, 207.1]}]}
    content = measured({"tables": [table]}, [(SEQUENTIAL, times(3800)), (PRECISE, times(349))])
    assert [row[4] for row in part(content, "published-0").rows] == ["3800 ms", "349 ms", ""]


def test_a_device_of_no_published_model_stands_beside_all_and_gaps_say_why() -> None:
    found = beside(measured({"tables": [MODES]}, [(PRECISE, times(40)), (IMPRECISE, times(20))]))
    verdicts = {(one.published_on, one.column): (one.verdict, one.why) for one in found}
    assert verdicts["Galaxy S7", "sequential"] == ("not comparable", "no configuration of this experiment is that")
    assert verdicts["Galaxy S7", "precise"][0] == "reproduced"
    assert (
        verdicts["Nexus 5", "precise"][0] == "not comparable" and "no other figure" in verdicts["Nexus 5", "precise"][1]
    )
    assert ("Nexus 5", "imprecise") not in verdicts  # nothing was published


def test_one_block_tells_nothing_apart() -> None:
    found = beside(measured({"tables": [MODES]}, [(PRECISE, times(40, 1)), (IMPRECISE, times(20, 1))]))
    assert {one.verdict for one in found if one.published_on == "Galaxy S7" and one.ours} == {
        "reproduced",
        "within noise",
    }
    assert any("too few blocks" in one.why for one in found)


BEST = {
    "title": "best g", "metric": "best", "axis": "granularity", "compare": "cells", "at": {"layer": "conv1"},
    "columns": [{"name": "conv1"}], "rows": [{"name": "S7", "values": [8]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("layer_ms", "verdict"),
    [
        ({4: 9.0, 8: 5.0, 16: 7.0}, "reproduced"),
        ({4: 5.0, 8: 7.0, 16: 7.0}, "different"),
        ({4: 5.0, 8: 5.001, 16: 7.0}, "within noise"),
        ({4: 5.0, 16: 7.0}, "not comparable"),
    ],
)
def test_an_optimum_is_equal_within_noise_or_different(layer_ms: dict[int, float], verdict: str) -> None:
    cells = {g: cell(granularity=g) for g in layer_ms}
    records = []
    for block, noise in enumerate(NOISE):
        for turn, (g, ms) in enumerate(layer_ms.items()):
            of = record(cells[g], [20.0] * 3, block=block, token=block * len(cells) + turn + 1)
            other = NOISE[(block + turn) % 5]
            took = round(ms * noise * other * MS)
            layer = Layer(seq=0, t_ns=0, index=0, layer="conv1", program="p", duration_ns=took)
            records.append(of.model_copy(update={"layers": (layer,)}))
    (found,) = beside(reported({"tables": [BEST]}, list(cells.values()), records))
    assert found.verdict == verdict
    assert found.ours == (
        None if verdict == "not comparable" and 8 in layer_ms else min(layer_ms, key=layer_ms.__getitem__)
    )


@pytest.mark.parametrize(("two_ms", "verdict"), [(6.0, "reproduced"), (14.0, "different"), (1.0, "different")])
def test_a_speed_up_is_judged_by_its_side_of_one_and_its_order(two_ms: float, verdict: str) -> None:
    table = {
        "title": "over one thread", "metric": "speed_up", "unit": "x", "compare": "cells", "over": {"threads": 1},
        "at": {"backend": "cpu"}, "columns": [{"name": "LeNet"}],
        "rows": [{"name": "PC", "at": {"threads": 2}, "values": [1.6]}],
    }  # fmt: skip
    ours = [(cell("cpu", threads=1), times(10.0)), (cell("cpu", threads=2), times(two_ms))]
    (found,) = beside(measured({"tables": [table]}, ours))
    assert (found.verdict, found.ours) == (verdict, pytest.approx(10 / two_ms, rel=1e-6))


def test_networks_are_added_up() -> None:
    table = {
        "title": "shapes", "metric": "speed_up", "unit": "x", "compare": "cells", "over": {"algorithm": "direct"},
        "at": {"network": "conv3x3_*"}, "columns": [{"name": "all"}],
        "rows": [{"name": "Winograd", "at": {"algorithm": "winograd"}, "values": [4.0]}],
    }  # fmt: skip
    ours = [
        (cell(network=f"conv3x3_{n}", algorithm=algorithm), times(ms))
        for n, fast, slow in ((8, 1.0, 2.0), (16, 1.0, 6.0))
        for algorithm, ms in (("winograd", fast), ("direct", slow))
    ]
    (found,) = beside(measured({"tables": [table]}, ours))
    assert (found.verdict, found.ours) == ("reproduced", pytest.approx(4.0, rel=1e-6))
    (found,) = beside(measured({"tables": [table]}, ours[:-1]))
    assert found.verdict == "not comparable" and "conv3x3_16" in found.why


def test_power_and_energy_stand_in_the_published_units() -> None:
    table = {
        "title": "power", "metric": "load_power", "unit": "mW",
        "columns": [{"name": "baseline", "metric": "idle_power"}, {"name": "load"}],
        "rows": [{"name": "S7", "values": [173.18, 1552.51]}],
    }  # fmt: skip
    one = cell()
    records = [powered(record(one, [100.0] * 10, block=b, token=b + 1), 0.5, 2.0 + b / 100) for b in range(5)]
    idle, load = beside(reported({"tables": [table]}, [one], records))
    assert (idle.ours, load.ours) == (pytest.approx(500, rel=0.02), pytest.approx(2020, rel=0.02))
    assert (idle.verdict, load.verdict) == ("reproduced", "reproduced")


def test_findings_in_words_are_judged_where_something_shows_them() -> None:
    of, over = {"backend": "opencl"}, {"backend": "cpu"}
    findings = [
        {"text": "pays", "of": of, "expect": "crosses", "over": over, "operation": "matmul"},
        {"text": "wins", "of": {**of, "network": "matmul_256"}, "expect": "less", "over": over},
        {"text": "loses", "of": {**of, "network": "matmul_256"}, "expect": "more", "over": over},
        {"text": "alike", "of": {**of, "network": "matmul_64"}, "expect": "alike", "over": {"network": "matmul_16"}},
        {"text": "said"},
    ]  # fmt: skip
    ms = {"opencl": {16: 4.0, 64: 4.4, 256: 6.0}, "cpu": {16: 0.1, 64: 10.0, 256: 60.0}}
    ours = [(cell(api, f"matmul_{n}"), times(each)) for api, sizes in ms.items() for n, each in sizes.items()]
    found = {one.row: one for one in beside(measured({"findings": findings}, ours))}
    assert {name: one.verdict for name, one in found.items()} == {
        "pays": "reproduced", "wins": "reproduced", "loses": "different", "alike": "reproduced",
        "said": "not comparable",
    }  # fmt: skip
    assert found["pays"].why == "ahead from 64, not yet at 16"


def test_the_report_counts_them_by_device_and_says_where_ours_is_from() -> None:
    content = measured({"tables": [MODES]}, [(PRECISE, times(40)), (IMPRECISE, times(20)), (SEQUENTIAL, times(1600))])
    counts, table = part(content, "published"), part(content, "published-0")
    assert [column.name for column in counts.columns] == [
        "device", "reproduced", "within noise", "different", "not comparable",
    ]  # fmt: skip
    assert counts.rows == (("phone-1 VIRTUAL", "5", "0", "0", "0"),)
    assert table.rows[0][:7] == ("phone-1 VIRTUAL", "S7", "sequential", "12 s", "1.6 s", "0.133", "reproduced")
    data = export.as_data(content)["reproduction"]
    assert data["beside"][0]["published"] == 12.0 and data["counts"] == {"phone-1 virtual": {"reproduced": 5}}
    page = render(content)
    assert "Published, not measured here: Somebody, 2016" in page and "Published and ours: whole" in page
    assert "no result yet" in printed(measured({"tables": [MODES]}, [], model=S7))


def test_a_published_curve_lies_in_the_chart_over_its_axis() -> None:
    theirs = ((4, 400), (8, 300), (16, 350))
    table = {
        "title": "over g", "unit": "ms", "compare": "rows", "columns": [{"name": "S7"}],
        "rows": [{"name": str(g), "at": {"granularity": g}, "values": [ms]} for g, ms in theirs],
    }  # fmt: skip
    ours = [(cell(granularity=g), times(ms)) for g, ms in ((4, 40.0), (8, 30.0), (16, 35.0))]
    content = measured({"tables": [table]}, ours)
    (chart,) = charts.over_axis(content.summaries, content.experiment.published)
    drawn = to_svg(chart)
    assert "Time over granularity: phone-1" in drawn and "published: S7" in drawn
    assert "mathdefault" not in drawn, "a formula is shown as it was typed"
    assert charts.over_axis(measured({"tables": [table]}, ours[:2]).summaries) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": {"granularty": 4}}, "neither an axis nor one of"),
        ({"at": {"backend": "cuda"}}, "backend"),
        ({"unit": "mW"}, "latency has no unit 'mW'"),
        ({"metric": "best", "unit": ""}, "`best` needs `axis`"),
        ({"metric": "speed_up", "unit": "x"}, "`speed_up` needs `over`"),
        ({"rows": [{"name": "S7", "values": [1.0]}]}, "row 1 has 1 figures for 3 columns"),
    ],
)
def test_a_table_that_cannot_be_set_beside_ours_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Published.model_validate({"source": "s", "tables": [{**MODES, **change}]})


def test_sizes_are_written_as_in_a_matrix() -> None:
    table = {**MODES, "at": {"workspace": "16 MB", "precision": "relaxed"}}
    (found,) = Published.model_validate({"source": "s", "tables": [table]}).tables
    assert found.at == {"workspace": 16_000_000, "precision": "relaxed"}
