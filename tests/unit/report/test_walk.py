"""The walk: every quantity of every result through every output is one number under one name, none below zero; and a
fault in one output alone is found there, and nowhere else."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from redis import Redis
from rich.console import RenderableType
from starlette.requests import Request

from dashboards.web import tables
from dashboards.web.access import ANYBODY, Access
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.documents import Documents
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
from dashboards.web.renderer import Renderer
from farm.api import experiment as notebook
from farm.cli.output import print_rows
from orchestrator.analysis.comparison import Compared, compare, rows_of, sides_of
from orchestrator.analysis.statistics import QUANTITIES, TOO_SHORT, Summary, Told, told_of
from orchestrator.figures import TOKEN_ENERGIES
from orchestrator.figures.brief import brief_of
from orchestrator.ledger import Ledger
from orchestrator.metrics.result_families import ResultLabels, result_families
from orchestrator.model.device import Api, DeviceState, Source
from orchestrator.model.errors import ServiceDown
from orchestrator.model.event import Memory, Sample
from orchestrator.model.experiment import Experiment, Sampling, Workload
from orchestrator.model.record import Record
from orchestrator.report import compared, console, export, listing, wording
from orchestrator.report.compared.content import RANKS, Content, word
from orchestrator.report.html import render
from orchestrator.report.nights.page import MOST_ROWS
from tests.source_tree import ROOT
from tests.unit.history.made import judged, kept
from tests.unit.orchestrator import make
from tests.widths import UNBOUNDED, drawn

from .records import Whole, built, cell, powered, record, steps_of

SERIALS = ("phone-1", "phone-2", "phone-3")
SIDES = (Api.OPENCL, Api.VULKAN)
CELLS = {api: cell(api) for api in SIDES}
COLUMNS = {
    "latency": "median_ms", "throughput": "frames_per_s", "power load": "load_power_w",
    **{n: each.field(n) for n, each in QUANTITIES.items() if each.of is not None},
    **{f"{n} net gauge device battery gauge": QUANTITIES[n].field(n) for n in TOKEN_ENERGIES},
    **{f"setup {state}": f"setup_{state}_ms" for state in ("cold", "warm", "cached")},
    **{f"memory {kind}": f"memory_{kind}_bytes" for kind in ("device", "process", "pss")},
}  # fmt: skip
TITLES = {"tokens": "Tokens of language models", "further": "Further quantities"}
"""Tables that follow from declarations of quantities."""
COUNTS = re.findall(r'^ +\{"(\w+)", ', (ROOT / "device_agent/src/system/counts.cc").read_text(), re.MULTILINE)
"""Names of the agent's own counts."""
Place = tuple[str, str, str]
"""Serial, backend, name of the quantity."""


class Walk(NamedTuple):
    """An experiment with a ledger that has it; its cells differ in their backend."""

    whole: Whole
    ledger: Ledger
    state: Path

    def told(self) -> Iterator[tuple[Summary, Told, str]]:
        for summary in self.whole.summaries:
            for told in told_of(summary):
                yield summary, told, f"{told.metric} {told.basis}".strip()

    def rows(self) -> tuple[Compared, ...]:
        """Return what `farm compare --sides backend=opencl,vulkan` compares."""
        sampling, cells = self.whole.experiment.sampling, {each.cell_id: each for each in CELLS.values()}
        rows = rows_of(map(brief_of, self.whole.blocks), cells, sampling.mode, watched=sampling.is_watched)
        return compare(*sides_of(rows, "backend", *SIDES))

    def sides(self) -> dict[Place, tuple[Told | None, Told | None]]:
        """Return what results tell of both backends, of what can be compared, by its name there."""
        cold = self.whole.experiment.sampling.mode == "cold"
        found: dict[Place, dict[str, Told]] = {}
        for summary, told, name in self.told():
            name = {"latency": "", "first result": "latency cold start"}.get(name, name) if cold else name
            net = summary.energy_per_inference and summary.energy_per_inference.basis
            compares = QUANTITIES[told.metric].margin is not None or told.metric == "first result"
            if name and compares and (told.metric != "energy" or told.labels["basis"] == net):
                found.setdefault((summary.serial, "", name), {})[summary.backend] = told
        return {place: (own.get(SIDES[0]), own.get(SIDES[1])) for place, own in found.items()}


def experiment_of(random: Random) -> Whole:
    """Few blocks or many, even or wide, with gross ones, energies of short loads, power near that at rest."""
    mode = random.choice(("steady", "steady", "cold"))
    target = {"target_interval": "5 %", "max_blocks": 60} if random.random() < 0.3 else {}
    sampling = Sampling.model_validate({"mode": mode, "blocks": 3, **target})
    records = [one for serial in SERIALS for one in _of_phone(serial, random, cold=mode == "cold")]
    cells = {each.cell_id: each for each in CELLS.values()}
    of = Experiment(name="first", workload=Workload(network="lenet"), sampling=sampling)
    return built("e-1", of, cells=cells, records=records, outcomes={"ok": len(records)}, now=1e9)


def _of_phone(serial: str, random: Random, *, cold: bool) -> list[Record]:
    count, spread, gross = random.randrange(1, 9), random.choice((0.002, 0.05, 0.6)), random.random() < 0.3
    load_s = {api: random.choice((0.5, 5.0, 35.0, 35.0)) for api in SIDES}
    idle_w, net_w, stretch = random.uniform(0.2, 1.5), random.choice((0.02, 0.5, 3.0)), random.choice((1, 1000))
    most = {api: random.choice((0, 3, 10**9)) for api in SIDES}
    return [
        _counted(
            _block(
                serial, api, block, 2 * block + turn, spread, gross, load_s[api], idle_w, net_w, random, stretch,
                cold=cold,
            ),
            most[api], random,
        )
        for block in range(count)
        for turn, api in enumerate(CELLS)
    ]  # fmt: skip


def _block(
    serial: str, api: Api, block: int, at: int, spread: float, gross: bool, load_s: float, idle_w: float, net_w: float,
    random: Random, stretch: int, *, cold: bool,
) -> Record:  # fmt: skip
    slow = random.lognormvariate(0, spread) * (4.0 if gross and random.random() < 0.2 else 1.0)
    timed = [slow * random.lognormvariate(1 + (api is Api.VULKAN), 0.05) for _ in range(1 if cold else 6)]
    plain = record(CELLS[api], timed, block=block, serial=serial, token=at + 1, source=Source.PHONE)
    plain = plain.model_copy(update={"samples": plain.samples[1:]}) if cold else plain
    noise = [random.gauss(0, random.choice((0.01, 0.5))) for _ in range(101)]
    found = powered(plain, idle_w, idle_w + net_w * random.lognormvariate(0, spread), each_s=load_s, noise=noise)
    steps = steps_of({"context": 3.0, "build": random.uniform(20, 60)}, cached=block > 0 and random.random() < 0.7)
    memory = Memory(
        seq=0, t_ns=0, device_bytes=1, device_peak_bytes=random.randrange(1, 10**7), vm_rss_bytes=1,
        vm_hwm_bytes=random.randrange(1, 10**8), pss_bytes=random.randrange(1, 10**8),
    )  # fmt: skip
    started = {"started_at": 1e6 + 100.0 * at, "ended_at": 1e6 + 100.0 * at + 90}
    most_ns = int(load_s * 1e9 / len(timed))
    longer = (
        each.model_copy(update={"duration_ns": min(each.duration_ns * stretch, most_ns)}) for each in found.samples
    )
    samples = tuple(_answer(each, random) for each in longer)
    state = DeviceState(health="ready", battery_percent=random.uniform(20, 100))
    power = tuple(each.model_copy(update={"charge_uah": 2_000_000}) for each in found.power)
    model = found.provenance.model_copy(update={"model_bytes": random.randrange(1, 10**9)})
    told = {"setup": steps, "memory": memory, "samples": samples, "power": power, "state_before": state}
    return found.model_copy(update={**told, "provenance": model, **started})


def _counted(of: Record, most: int, random: Random) -> Record:
    """The same with what the system counted of the agent."""
    counts = {name: round(most * random.lognormvariate(0, 0.05)) for name in COUNTS}
    return of.model_copy(update={"phases": tuple(each.model_copy(update={"counts": counts}) for each in of.phases)})


def _answer(sample: Sample, random: Random) -> Sample:
    """The same as two prompts with their answers, side by side."""
    first_ns, count = random.uniform(0.3, 0.4) * sample.duration_ns, 30
    gap_ns = (sample.duration_ns - first_ns) / count
    times = (first_ns + gap_ns * (place + random.uniform(0, 0.5)) for place in range(count))
    told = {"prompt": 200, "sequences": 2, "tokens": (0,) * count * 2}
    return sample.model_copy(update={**told, "token_ns": tuple(sample.start_ns + round(each) for each in times)})


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[list[Walk]]:
    random, state, found = Random(seed), tmp_path_factory.mktemp("walk"), []
    with ExitStack() as stack:
        for number in range(4):
            ledger = stack.enter_context(Ledger(f"sqlite:///{state}/{number}.sqlite"))
            found.append(Walk(experiment_of(random), ledger, state))
            _keep(found[-1])
        yield found


def _keep(walk: Walk) -> None:
    """The records, and the comparison as a night of a suite."""
    whole, cells = walk.whole, {each.cell_id: each for each in CELLS.values()}
    jobs = [
        make.job("e-1", each.block, (each.device.serial,)).model_copy(
            update={"cell": cells[each.cell_id], "sampling": whole.experiment.sampling}
        )
        for each in whole.records
    ]
    assert walk.ledger.submit("e-1", whole.experiment, jobs)
    for job, each in zip(jobs, whole.records, strict=True):
        begun = walk.ledger.begin_attempt(job.job_id, each.device.serial, "lab", 60.0)
        assert begun is not None
        update = {"job_id": job.job_id, "attempt": begun.attempt, "token": begun.token}
        walk.ledger.keep(each.model_copy(update=update))
    kept(walk.ledger, [judged(1, list(walk.rows()), SERIALS)])


# What each output tells


def in_json(walk: Walk) -> None:
    data = json.loads(json.dumps(export.as_data(walk.whole)))
    told_json = [each for summary in data["summaries"] for each in summary["quantities"]]
    for (_, told, name), each in zip(walk.told(), told_json, strict=True):
        assert f"{each['metric']} {each['basis']}".strip() == name
        assert (each["value"], bool(each["not_resolved"])) == (told.value, told.value is None), name
        assert each["interval"] == (told.interval and _ends(told)), name
    medians = {(s.serial, s.backend): _time(s) for s in walk.whole.summaries}
    rows = {row.device: row for row in walk.rows() if row.metric == "latency"}
    for each in data["side_by_side"]:
        row, interval = rows[each["serial"]], each["interval"]
        assert each["speed_up"] == (row.ratio and each["over_ms"] / each["ms"])
        assert each["speed_up"] == (row.ratio and pytest.approx(row.ratio))
        assert each["not_resolved"] == (row.unresolved and str(row.unresolved))
        ends = (row.interval.low, row.interval.high) if row.interval else ()
        assert ends == ((pytest.approx(interval["low"]), pytest.approx(interval["high"])) if interval else ())
        assert (medians[each["serial"], each["backend"]], medians[each["serial"], each["over"]]) == (
            each["ms"], each["over_ms"],
        )  # fmt: skip


def _time(summary: Summary) -> float | None:
    return summary.cold.total_ms if summary.cold else summary.latency and summary.latency.median_ms


def in_pandas(walk: Walk) -> None:
    rows = [notebook.row_of(each) for each in json.loads(json.dumps(export.as_data(walk.whole)))["summaries"]]
    by_place = {(row["device"], row["backend"]): row for row in rows}
    for summary, told, name in walk.told():
        if (column := COLUMNS.get(name)) is not None:
            assert by_place[summary.serial, summary.backend][column] == told.value, name


def in_prometheus(walk: Walk) -> None:
    exposed = {(each.serial, each.backend): _samples(each) for each in walk.whole.summaries}
    for summary, told, name in walk.told():
        family = QUANTITIES[told.metric].family
        assert exposed[summary.serial, summary.backend].get((family, told.basis)) == told.value, name


def in_the_table(walk: Walk) -> None:
    text = drawn(console.render(walk.whole), 320)
    tables = {name: text[text.index(f"\n{of}\n") :].partition("\n\n")[0] for name, of in TITLES.items()}
    for summary in walk.whole.summaries:
        own = text[text.index(f"\n{summary.serial} ") :]
        line = next(each for each in own.splitlines() if each.strip().startswith(f"{summary.backend} "))
        for told in told_of(summary):
            assert told.metric != "latency" or all(words in line for words in wording.told(told)), line
        for told in told_of(summary):
            if (table := tables.get(QUANTITIES[told.metric].table)) is not None:
                pattern = rf"{summary.serial}.* {summary.backend} .*"
                (line,) = re.findall(pattern, table)
                assert wording.told(told)[0] in line, line
    assert not re.search(r"\[-|-\d[\d.]* (m|µ)?[JW]\b", text), "no bound is below zero"


def in_the_page(walk: Walk, page: str = "") -> None:
    page, expected = page or render(walk.whole), []
    for summary in walk.whole.summaries:
        value, interval = next(wording.told(told) for told in told_of(summary) if told.metric == "latency")
        expected += [(value, interval or "too few blocks"), wording.energy(summary.energy_per_inference)]
        assert wording.setup(summary.setup) in page
    shown = re.findall(r'<td class="n"><b>([^<]*)</b>(?:<span[^>]*></span>)?<small>([^<]*)</small>', page)
    assert shown == expected
    assert not re.search(r"\[-\d|>-\d[\d.]* (m|µ)?[JW]\b", page)


def in_a_comparison(walk: Walk) -> None:
    """Each figure that results tell of a side, and no other."""
    rows = {(row.device, "", f"{row.metric} {row.basis}".strip()): row for row in walk.rows()}
    for place, sides in walk.sides().items():
        if (row := rows.pop(place, None)) is None:
            assert place[2].startswith("setup") and None in sides, "a start that the other side had in another way"
            continue
        for told, value, why in zip(sides, (row.a, row.b), (row.unresolved_a, row.unresolved_b), strict=True):
            assert why == (told and told.unresolved), place
            assert value == (told and told.value and pytest.approx(told.value, rel=1e-12)), place
        both = row.a is not None and row.b is not None
        assert row.ratio is None or (both and row.b and row.a and row.ratio == pytest.approx(row.b / row.a)), place
    assert not rows


def in_a_form(read: Callable[[Content], dict[Place, tuple[str, str]]], walk: Walk) -> None:
    """Check what a form of a comparison shows of both sides."""
    shown = read(Content("a", "b", walk.rows()))
    for place, sides in walk.sides().items():
        for told, text in zip(sides, shown.get(place, ()), strict=False):
            assert text.partition(" (")[0] == _figure(told), place
    assert shown, "the form tells something"


def _figure(told: Told | None) -> str:
    if told is None or told.value is None:
        return wording.told(told)[0] if told else ""
    text = wording.number(told.value, told.unit)
    return text if told.unit in wording.WITH_UNIT else f"{text} {told.unit}".rstrip()


def in_json_of_compare(walk: Walk) -> None:
    rows, written = walk.rows(), StringIO()
    with redirect_stdout(written):
        print_rows(rows)
    for row, told in zip(rows, json.loads(written.getvalue()), strict=True):
        assert (told["a"], told["b"], told["ratio"]) == (row.a, row.b, row.ratio)
        for why, of_json in ((row.unresolved_a, told["unresolved_a"]), (row.unresolved_b, told["unresolved_b"])):
            assert of_json == (why and json.loads(why.model_dump_json()))
    table = notebook.table_of(json.loads(written.getvalue()))
    assert [None if each != each else each for each in table["a"]] == [row.a for row in rows]
    assert not {name.partition(".")[0] for name in table if "." in name} & set(table), "a column beside its parts"


def in_html(content: Content) -> dict[Place, tuple[str, str]]:
    rows = re.findall(r"<tr[^>]*>(<td>.*)</tr>", compared.as_html(content))
    return dict(_placed(re.findall(r"<td[^>]*>(.*?)</td>", row)) for row in rows)


def in_markdown(content: Content) -> dict[Place, tuple[str, str]]:
    rows = [line.strip("| ").split(" | ") for line in compared.as_markdown(content).splitlines() if "| lenet" in line]
    return dict(_placed([cell.replace("\\", "") for cell in row]) for row in rows)


def _placed(cells: list[str]) -> tuple[Place, tuple[str, str]]:
    return (cells[0], "", cells[2]), (cells[3].strip(), cells[4].strip())


def in_junit(content: Content) -> dict[Place, tuple[str, str]]:
    found = {}
    for case in ElementTree.fromstring(compared.as_junit(content, RANKS)).iter("testcase"):
        if (failure := case.find("failure")) is None:
            continue  # a comparison that passed tells no figures
        told = (line for line in (failure.text or "").splitlines() if re.match("(A|B|ratio) ", line))
        text = next(told, "")  # other lines tell provenance, of both sides too
        a, b = (re.search(rf"(?:^|, ){side} ((?:\([^)]*\)|[^,\n(])*)", text) for side in "AB")
        name = case.attrib["name"].split(" fp32 ")[1]
        found[case.attrib["classname"], "", name] = (a[1].strip() if a else "", b[1].strip() if b else "")
    return found


def in_lines(width: int, content: Content) -> dict[Place, tuple[str, str]]:
    """Read the rows that both sides have: a wide terminal's, or two lines each at 80 columns."""
    lines, _ = compared.lines_of(content, 0, every=True)
    part: RenderableType = listing.part(
        compared.section(content, lines), len(lines), list(compared.narrow(content, lines))
    )
    shown = drawn(part, width).splitlines()
    if width == UNBOUNDED:
        rows = [re.split(r"\s{2,}", line) for line in shown if "lenet" in line]
        return dict(_placed(row) for row in rows if len(row) > 5)
    found = {}
    for name, told in pairwise(shown):
        if (place := re.fullmatch(r"  (phone-\d)  lenet \S+ fp32  (.+)", name)) and " to " in told:
            a, b = re.split(r"\s{2,}", told.strip())[0].split(" to ")
            found[place[1], "", place[2]] = (a, b)
    return found


def on_the_farms_report(walk: Walk) -> None:
    in_the_page(walk, _sent(walk, "report", "e-1"))


def on_the_morning_page(walk: Walk) -> None:
    page, sides = _sent(walk, "morning", "nightly@001"), walk.sides()
    told = []
    for row in walk.rows():
        a, b = sides[row.device, "", f"{row.metric} {row.basis}".strip()]
        if a and b and word(row) in ("worse", "better", "unknown"):
            told.append(" to ".join(dict.fromkeys((_figure(a), _figure(b)))))
    assert sum(each in page for each in told) >= min(len(told), MOST_ROWS), told


def on_the_pages_of_nights(walk: Walk) -> None:
    """The pages have as many rows of each kind as the command line says."""
    counts, pages = Counter(map(word, walk.rows())), _pages(walk)
    listed = re.search(r'<tr id="l-nightly@001">.*?</tr>', pages.main("/nights", {}, ANYBODY)[1])
    assert listed
    numbers = list(map(int, re.findall(r'<td class="n[^"]*">(\d+)', listed[0])))
    assert numbers == [*(counts[each] for each in ("worse", "better", "unknown", "missing")), 0]
    _, page = pages.main("/nights/nightly@001", {}, ANYBODY)
    tiles = {name: int(count) for count, name in re.findall(r"<b>(\d+)</b><span>([a-z ]+)</span>", page)}
    assert tiles == counts


def on_charts(walk: Walk) -> None:
    """Check what Prometheus has, as a page lists it."""
    for _, told, name in walk.told():
        unit = {"ms": "s", "J": "joule"}.get(told.unit)
        if told.value is not None and unit is not None and told.value < 1e4:
            number, shown_in = tables.written(told.value * QUANTITIES[told.metric].base, unit).split()
            factor = {"m": 1e-3, "µ": 1e-6}.get(shown_in[0], 1.0) if unit == "joule" else 1.0
            assert float(number) * factor == pytest.approx(told.value, rel=0.006, abs=5e-10), name


OUTPUTS: dict[str, Callable[[Walk], None]] = {
    "json": in_json,
    "pandas": in_pandas,
    "prometheus": in_prometheus,
    "table": in_the_table,
    "page": in_the_page,
    "compare": in_a_comparison,
    "compare: JSON": in_json_of_compare,
    "compare: HTML": partial(in_a_form, in_html),
    "compare: Markdown": partial(in_a_form, in_markdown),
    "compare: JUnit": partial(in_a_form, in_junit),
    "compare: wide": partial(in_a_form, partial(in_lines, UNBOUNDED)),
    "compare: narrow": partial(in_a_form, partial(in_lines, 80)),
    "web: report": on_the_farms_report,
    "web: morning": on_the_morning_page,
    "web: nights": on_the_pages_of_nights,
    "web: charts": on_charts,
}
DRAWN = ("page", "web: report")
"""Outputs with charts, which take seconds."""


def test_it_meets_every_quantity_that_a_record_gives(walks: list[Walk]) -> None:
    met = {told.metric for walk in walks for _, told, _ in walk.told()}
    lacking = {name for name, each in QUANTITIES.items() if each.of is not None} - met
    assert not lacking, f"no record from which {lacking} could be read: let `_block` draw what they are read from"


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_quantity_is_one_number_in_every_output(output: str, walks: list[Walk]) -> None:
    for walk in walks[: 1 if output in DRAWN else None]:
        for _, told, name in walk.told():
            check_told(told, name)
        OUTPUTS[output](walk)


def test_what_is_made_of_a_void_energy_is_void(walks: list[Walk]) -> None:
    """Results say of both what would mend it, and no figure; comparisons what results say."""
    made = {name for name, each in QUANTITIES.items() if each.of_energy}
    for walk in walks:
        for summary in walk.whole.summaries:
            short = {each.metric: each.unresolved == TOO_SHORT for each in told_of(summary)}
            assert all(short[name] == short["energy"] for name in made & short.keys())


def check_told(told: Told, name: str) -> None:
    assert (told.value is None) == (told.unresolved is not None), name
    if told.value is None:
        assert told.interval is None and re.fullmatch(r"(not resolved|too short) \(.+\)", wording.in_words(told)), name
    elif told.interval is not None:
        assert 0 < told.interval.low <= told.value <= told.interval.high or told.value == told.interval.high == 0, name


# Faults, each in one output alone


def higher(found: Any) -> Any:
    """Another estimate, whatever holds it."""
    match found:
        case Told(value=float() as value):
            return replace(found, value=1.1 * value)
        case Compared():
            return replace(found, a=found.a and 1.1 * found.a, b=found.b and 1.1 * found.b)
        case Content():
            return found._replace(rows=tuple(map(higher, found.rows)))
        case tuple() | list():
            return type(found)(map(higher, found))
        case dict():
            return {name: higher(each) for name, each in found.items()}
        case float():
            return 1.1 * found
    return found


def of_other_input(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **more: original(*map(higher, given), **more)


def with_other_answer(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **more: higher(original(*given, **more))


FAULTS: dict[str, tuple[str, Callable[[Callable[..., Any]], Callable[..., Any]], str]] = {
    "json": ("orchestrator.report.export.told_of", with_other_answer, "json"),
    "pandas": ("farm.api.experiment._value", with_other_answer, "pandas"),
    "prometheus": ("orchestrator.metrics.result_families.told_of", with_other_answer, "prometheus"),
    "table": ("orchestrator.report.parts.results.told_of", with_other_answer, "table"),
    "table of a declaration": ("orchestrator.report.parts.told.told_of", with_other_answer, "table"),
    "page": ("orchestrator.report.html.told_of", with_other_answer, "page"),
    "another median": ("orchestrator.analysis.comparison.cell_rows.median", lambda _: fmean, "compare"),
    "another rule": (
        "orchestrator.analysis.statistics.resolution.unresolved", lambda _: lambda *_a, **_m: None, "compare",
    ),
    "JSON of compare": ("pydantic_core.to_json", of_other_input, "compare: JSON"),
    "HTML": ("orchestrator.report.compared.html.table", of_other_input, "compare: HTML"),
    "Markdown": ("orchestrator.report.compared.markdown.table", of_other_input, "compare: Markdown"),
    "JUnit": ("orchestrator.report.compared.junit.figures", of_other_input, "compare: JUnit"),
    "wide": ("orchestrator.report.compared.table._texts", of_other_input, "compare: wide"),
    "narrow": ("orchestrator.report.compared.table._two_lines", of_other_input, "compare: narrow"),
    "report": ("orchestrator.report.html.told_of", with_other_answer, "web: report"),
    "morning": ("orchestrator.report.nights.page.figure", of_other_input, "web: morning"),
    "nights": ("dashboards.web.pages.nights.Counter", lambda _: lambda rows: Counter([*rows, "worse"]), "web: nights"),
    "charts": ("orchestrator.report.wording.joules", of_other_input, "web: charts"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_output_is_found(fault: str, walks: list[Walk], monkeypatch: pytest.MonkeyPatch) -> None:
    target, change, output = FAULTS[fault]
    where, _, name = target.rpartition(".")
    module = import_module(where)
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    assert any(_fails(OUTPUTS[output], walk) for walk in walks)


def _fails(output: Callable[[Walk], None], walk: Walk) -> bool:
    try:
        output(walk)
    except AssertionError:
        return True
    return False


# Reading what outputs show


def _samples(summary: Summary) -> dict[tuple[str, str], float]:
    """Value in the quantity's unit, by family and basis."""
    base = {each.family: each.base for each in QUANTITIES.values()}
    labels = ResultLabels(summary.serial, summary.workload, summary.backend, summary.precision, "", "phone", "e")
    found = {}
    for family in result_families({labels: (summary, 1.0)}):
        for sample in family.samples:
            assert not sample.name.startswith("farm_results_") or sample.value >= 0
            if sample.labels.get("stat") == "median":
                order = ("state", "kind", "basis", "phase", "power_source", "scope", "meter")
                basis = " ".join(filter(None, (sample.labels.get(name, "") for name in order)))
                found[sample.name, basis] = pytest.approx(sample.value / base[sample.name], rel=1e-12)
    return found


def _ends(told: Told) -> dict[str, Any]:
    assert told.interval is not None
    return {"low": told.interval.low, "high": told.interval.high, "level": told.interval.level}


def _pages(walk: Walk) -> Renderer:
    def no_farm() -> Redis:
        raise ServiceDown("no farm runs")

    contents, figures = Contents(lambda: walk.ledger, walk.state), OwnFigures(lambda: walk.ledger, lambda: "")
    return Renderer(lambda: walk.ledger, Watch(lambda: walk.ledger, no_farm), Access("t"), PAGES, contents, figures)


def _sent(walk: Walk, what: str, of: str) -> str:
    """A page of the farm that is a document."""
    contents, figures = Contents(lambda: walk.ledger, walk.state), OwnFigures(lambda: walk.ledger, lambda: "")
    documents = Documents(lambda: walk.ledger, contents, figures)
    asked = Request({"type": "http", "method": "GET", "path": "/", "headers": [], "path_params": {"id": of}})
    return bytes(getattr(documents, what)(asked).body).decode()
