"""Every part of a report, on an experiment that has something to say in each."""

from __future__ import annotations

import re
from functools import cache
from io import StringIO
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from orchestrator.model.experiment import Sampling
from orchestrator.model.job import labels_of
from orchestrator.model.record import ConditionProof
from orchestrator.report import charts, console, wording
from orchestrator.report.colours import BACKENDS
from orchestrator.report.content import Content
from orchestrator.report.drawing import to_svg
from orchestrator.report.html import render
from orchestrator.report.section import Section
from orchestrator.report.sections import sections
from tests.widths import drawn

from . import everything, test_walk
from .records import Whole, built, figures
from .test_report import Page

MODES = {"steady": "energy-0", "cold": "cold", "sustained": "sustained"}
"""Each with a part of its page."""


@cache
def content_of(mode: str) -> Whole:
    return everything.content(blocks=6 if mode == "steady" else 3, mode=mode)


@cache
def page_of(mode: str) -> str:
    """Drawing takes seconds: once for all that look at it, and of the other modes for one phone."""
    made = content_of(mode) if mode == "steady" else everything.content(3, mode, phones=[*everything.PHONES][:1])
    return render(made, made.records)


@pytest.fixture
def steady() -> Whole:
    return content_of("steady")


@pytest.fixture
def page() -> str:
    return page_of("steady")


def printed(content: Content, width: int = 140) -> str:
    buffer = StringIO()
    Console(file=buffer, width=width).print(console.render(content))
    return buffer.getvalue()


def named(content: Content) -> dict[str, Section]:
    return {section.name: section for section in sections(content)}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_what_is_timed_has_one_noun(mode: str, seed: int) -> None:
    """Whatever it is, every place has the noun of its results, and every column of every part has a name."""
    noun = Random(seed).choice(["answer", "epoch"])
    made = content_of(mode)
    whole = made.model_copy(update={"summaries": [one.model_copy(update={"sample": noun}) for one in made.summaries]})
    text = " ".join((render(whole, whole.records), printed(whole, 300)))
    told = re.findall(r"(?:one|first|timed|energy /|energy/) ?(inf\.|(?:inference|answer|epoch)(?=s?\b))", text)
    assert len(told) > 3 and {each.replace("inf.", "inference") for each in told} == {noun}
    for section in sections(whole):
        assert all(column.name for column in section.columns), section.name


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "part"), MODES.items())
def test_each_mode_makes_a_sound_page(mode: str, part: str) -> None:
    text = page_of(mode)
    parsed = Page(text)
    assert parsed.open == []
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert not re.search(r"(https?:)?//[a-z0-9]", text)
    assert {"script", "img", "link"}.isdisjoint(parsed.tags)
    assert part in ids
    assert ("Throttling" in text) == (mode == "sustained")


def test_the_page_has_every_part(page: str) -> None:
    wanted = (
        "Results", "Not stable", "Sequential sampling", "Latency", "Distribution", "Energy", "Power", "Canaries",
        "Over the time of the run", "Set-up", "Layers", "Memory by layer", "Invalid blocks", "Conditions", "Warnings",
    )  # fmt: skip
    assert [heading for heading in wanted if f"<h2>{heading}</h2>" not in page] == []


def test_every_row_of_the_results_has_the_same_columns(page: str) -> None:
    table = page[page.index("<table>") : page.index("</table>")]
    heads = len(re.findall(r"<th[ >]", table[: table.index("</thead>")]))
    rows = [row for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL) if "<td" in row]
    assert len(rows) == 9 and {len(re.findall(r"<td[ >]", row)) for row in rows} == {heads}
    assert f'colspan="{heads}"' in table


def test_backends_have_the_colours_of_the_charts_in_the_table(page: str) -> None:
    found = set(re.findall(r'style="color:(#\w+)"></span>(?:lenet|squeezenet_v1_0) (\w+)', page))
    assert found == {(BACKENDS[backend], backend) for backend in ("opencl", "vulkan")}


def test_sources_never_stand_in_one_table_or_figure(steady: Content) -> None:
    found = [section for name, section in named(steady).items() if name.startswith("energy")]
    assert [section.title for section in found] == [
        "Energy by external meter, whole device",
        "Energy by battery gauge, whole device",
        "Energy by battery gauge (VIRTUAL: modelled power), whole device",
    ]
    devices = [{row[0] for row in section.rows} for section in found]
    assert devices == [{"HT7A21A00417"}, {"R58M91XKPVJ"}, {"galaxy-s7-1"}]
    figures = [to_svg(chart) for chart in charts.energy(steady.summaries)]
    assert len(figures) == 3
    assert [serial in figure for figure, serial in zip(figures, everything.PHONES, strict=True)] == [False, False, True]


def test_energy_is_told_with_interval_power_and_source(steady: Content, page: str) -> None:
    row = named(steady)["energy-0"].rows[0]
    assert row[0] == "HT7A21A00417" and row[2].endswith(" J net") and re.fullmatch(r"\[[\d.]+, [\d.]+\] J", row[3])
    assert row[6].endswith(" W") and row[7].endswith("mW") and row[8] == "6"
    assert "relative" in named(steady)["energy-1"].rows[0]
    for word in ("gauge, relative", "gauge, MODELLED", "meter"):
        assert f"<small>{word}</small>" in page


def test_the_terminal_says_the_same(steady: Content) -> None:
    text = printed(steady)
    for word in (
        "Energy by battery gauge (VIRTUAL: modelled power)", "charging", "status Charging from 12.1 s on",
        "not proven", "proven, put back", "canary", "stopped at the cap of 6 blocks", "drifting",
    ):  # fmt: skip
        assert word in text


def test_a_phone_whose_canaries_changed_is_marked(steady: Content) -> None:
    section = named(steady)["canaries"]
    assert [row[1] for row in section.rows] == ["changed", "steady", "steady"] and section.bad == {0}


def test_conditions_that_are_not_proven_are_marked(steady: Content) -> None:
    section = named(steady)["conditions"]
    assert {section.rows[i][3] for i in section.bad} == {"R58M91XKPVJ"}


def test_a_condition_of_a_device_stands_in_one_row(steady: Content) -> None:
    """The row tells its least proven cell; a setting that was put back in one of them was put back."""
    proofs = [ConditionProof(name="awake", wanted="awake", proven=True, restored=each) for each in (None, True)]
    proofs.append(ConditionProof(name="awake", wanted="awake", proven=False))
    one = steady.summaries[0]
    for count, words in ((2, "proven, put back"), (3, "not proven")):
        summaries = tuple(one.model_copy(update={"conditions": (proof,)}) for proof in proofs[:count])
        content = steady.model_copy(update={"summaries": summaries})
        assert [row[2] for row in named(content)["conditions"].rows] == [words]


def test_the_first_inference_of_a_cold_start_is_called_so() -> None:
    for mode, head in (("steady", "median ms"), ("cold", "first ms")):
        printed = drawn(console.results(content_of(mode)), 120)
        assert [each for each in ("median ms", "first ms") if each in printed] == [head]


def test_throttling_and_cold_start_have_their_tables() -> None:
    sustained = named(content_of("sustained"))["sustained"]
    told = [(float(row[-2].rstrip("%")), float(row[7]) / float(row[5])) for row in sustained.rows if row[-2]]
    assert all(70 <= left < 79 and left == pytest.approx(100 * beside, abs=1) for left, beside in told)
    assert (len(told), len(sustained.bad)) == (7, 9)
    assert {row[-1] for row in sustained.rows if row[-2]} == {"3 of 3", "2 of 2"}
    cold = named(content_of("cold"))["cold"]
    assert all(float(row[2]) == pytest.approx(float(row[4]) + float(row[5]), rel=0.1) for row in cold.rows)


def test_invalid_blocks_are_drawn_as_such_where_a_device_has_no_others(steady: Whole) -> None:
    only = [record for record in steady.records if record.invalid]
    assert only and "INVALID: charging" in "".join(map(to_svg, charts.power(steady.summaries, only)))
    assert "INVALID" not in "".join(map(to_svg, charts.power(steady.summaries, steady.records)))


@pytest.mark.parametrize(("draw", "raw"), [(charts.distribution, False), (charts.power, True), (charts.drift, True)])
def test_figures_are_sound_svg_and_nothing_makes_none(draw: Any, raw: bool, steady: Whole) -> None:
    for chart in draw(steady.summaries, steady.records if raw else steady.blocks):
        ElementTree.fromstring(to_svg(chart))
    assert draw([], []) == []
    assert charts.latency([], []) is charts.setup([]) is None


def test_a_report_of_a_hundred_thousand_inferences_is_small(steady: Whole) -> None:
    first = steady.records[0]
    times = [sample.start_ns for sample in first.samples]
    samples = tuple(
        sample.model_copy(update={"start_ns": sample.start_ns + (times[-1] - times[0]) * i, "index": i})
        for i in range(100_000 // len(times))
        for sample in first.samples
    )
    many = [first.model_copy(update={"samples": samples})]
    summaries = [s for s in steady.summaries if (s.serial, s.cell_id) == (first.device.serial, first.cell_id)]
    blocks = figures(many, {each.cell_id: each for each in everything.CELLS})
    drawn = [charts.latency(summaries, blocks), *charts.distribution(summaries, blocks)]
    assert all(5_000 < len(to_svg(chart)) < 150_000 for chart in drawn if chart) and len(drawn) == 2
    assert sum(len(to_svg(chart)) for chart in charts.drift(summaries, many)) < 600_000


def test_memory_shows_plan_and_measured_peak(steady: Content) -> None:
    chart = charts.memory(steady.summaries[0], "m")
    assert chart is not None
    svg = to_svg(chart)
    assert "measured peak 1 MiB" in svg and "activations alive" in svg and "most: conv1 2.04 MiB" in svg
    assert charts.memory(steady.summaries[0].model_copy(update={"planned": ()}), "m") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.345, "12.3 J"), (0.5691, "569 mJ"), (0.00123, "1.23 mJ"), (4.5e-6, "4.50 µJ"), (0.0, "0.00 J")],
)
def test_joules_have_three_digits(value: float, text: str) -> None:
    assert wording.joules(value) == text


@pytest.mark.parametrize(
    ("size", "words"),
    [(None, ""), (0, "0.0 KiB"), (4096, "4.0 KiB"), (150_000, "146.5 KiB"), (3 << 20, "3.0 MiB")],
)
def test_small_memory_is_told_in_small_units(size: int | None, words: str) -> None:
    assert wording.memory_size(size) == words


def test_blocks_of_a_cell_that_cannot_be_read_have_no_decision(seed: int) -> None:
    """The others have theirs."""
    whole = test_walk.experiment_of(Random(seed))
    cells = {each.cell_id: each for each in test_walk.CELLS.values()}
    sampling = Sampling.model_validate({"target_interval": "5 %", "max_blocks": 60})
    of = whole.experiment.model_copy(update={"sampling": sampling})
    made = {(each.serial, each.cell_id): 3 for each in whole.blocks} | {("phone-1", "of a job that is damaged"): 2}
    found = built("e-1", of, cells=cells, records=whole.records, made=made, outcomes={"ok": 1}, now=1e9)
    assert {each.label for each in found.decisions} == set(labels_of(cells).values())
