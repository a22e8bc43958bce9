"""Reports: the same content as page, table and JSON; nothing foreign runs or is fetched."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from io import StringIO
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from rich.console import Console

from orchestrator.analysis.statistics import Interval
from orchestrator.model.device import Api, Precision, Source
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.record import Outcome, Record
from orchestrator.report import console, export, wording
from orchestrator.report.html import render

from .records import Whole, built, cell, experiment, record

EVIL = "<script>alert('x')</script>$\\frac{1}{2}$ & \"q\""


def content(records: list[Record] | None = None, description: str = "") -> Whole:
    cells = [cell(), cell(Api.VULKAN, Precision.FP16), cell(Api.CPU)]
    found = records if records is not None else [
        record(c, [3.0 + i, 3.5 + i, 9.0], block=block, serial=serial, token=10 * block + i)
        for i, c in enumerate(cells)
        for block in range(3)
        for serial in ("127.0.0.1:5555", "127.0.0.1:5556")
    ]  # fmt: skip
    return built(
        "e-1",
        experiment(description=description),
        cells={c.cell_id: c for c in cells},
        records=found,
        outcomes={"ok": len(found)},
        exclusions=[
            excluded("127.0.0.1:5555", "lenet cpu fp16", "cpu has no fp16"),
            Exclusion("", "x", "no sense"),
        ],
        now=1e9,
    )


class Page(HTMLParser):
    """Tags and attributes of a page, and whether it is well formed."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page() -> str:
    whole = content()
    return render(whole, whole.records)


def test_page_is_well_formed_and_has_every_part(page: str) -> None:
    parsed = Page(page)
    assert parsed.open == []
    for heading in (
        "Results",
        "Latency",
        "Distribution",
        "Over the time of the run",
        "Set-up",
        "Layers",
        "Power",
        "Excluded",
        "Warnings",
    ):
        assert f"<h2>{heading}</h2>" in page
    assert parsed.tags.count("svg") >= 4


def test_page_asks_nobody_for_anything(page: str) -> None:
    parsed = Page(page)
    assert not {"script", "link", "iframe", "img", "object", "base"} & set(parsed.tags)
    assert not re.search(r"(https?:)?//[a-z0-9]", page)
    assert not re.search(r"@import|url\((?!#)", page)
    addresses = [value for name, value in parsed.attributes if name in ("href", "src", "action", "data")]
    assert all(value and value.startswith("#") for value in addresses)


def test_a_report_leads_to_the_pages_of_its_farm() -> None:
    """Experiment, devices and the middle block of each result; nothing else than the links is another."""
    times = {0: [3.0], 1: [5.0], 2: [4.0]}
    whole = content([record(cell(), samples, block=block, serial=EVIL) for block, samples in times.items()])
    linked, plain = render(whole, (), "http://127.0.0.1:8420/"), render(whole, ())
    addresses = [value or "" for name, value in Page(linked).attributes if name == "href"]
    away = {each.removeprefix("http://127.0.0.1:8420/") for each in addresses if not each.startswith("#")}
    middle = next(block for block in whole.blocks if block.block == 2)
    linked_to = {f"devices/{quote(EVIL, safe='')}", f"jobs/{quote(middle.job_id, safe='')}"}
    assert away == {"experiments/e-1", "glossary", *linked_to}
    without = re.sub(r'<a class="to-farm"[^>]*>(.*?)</a>', r"\1", linked)
    assert without.partition("<footer>")[0] == plain.partition("<footer>")[0]


def test_ids_are_unique_and_references_lead_to_them(page: str) -> None:
    parsed = Page(page)
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r"url\(#([^)]+)\)", page)) | {v[1:] for n, v in parsed.attributes if n == "href" and v}
    assert references <= set(ids)


def test_virtual_results_are_said_to_be_so(page: str) -> None:
    assert "VIRTUAL RESULTS" in page.replace("</b>", "")
    real = render(content([record(cell(), [1.0], source=Source.PHONE)]))
    assert "RESULTS." not in real


def test_foreign_names_are_escaped() -> None:
    found = [
        record(cell(), [1.0, 2.0], block=block, serial=EVIL, model=EVIL, driver=EVIL, detail=EVIL, reasons=(EVIL,))
        for block in range(3)
    ]
    page = render(content(found, description=EVIL))
    assert "script" not in Page(page).tags
    assert "<script" not in page.lower()
    assert "&lt;script&gt;" in page


def test_a_report_of_nothing_is_a_report() -> None:
    page = render(content([]))
    assert Page(page).open == []
    assert "<svg" not in page


def test_a_cell_that_failed_is_shown_with_its_reason() -> None:
    failed = [record(cell(), [], outcome=Outcome.FAILED, reasons=("the program does not build",))]
    page = render(content(failed))
    assert "no block went well" in page
    assert "the program does not build" in page


def test_console_says_what_the_page_says() -> None:
    text = printed(content())
    for word in ("127.0.0.1:5556", "VIRTUAL", "opencl fp32", "vulkan fp16", "PoCL 3.1 · pthread-x", "3/3"):
        assert word in text
    assert "cpu has no fp16" in text
    assert "every device" in text
    assert "run on a real phone before you publish" in text


def test_devices_with_jobs_and_no_result_are_named() -> None:
    found = [record(cell(), [3.0], serial="A")]
    jobs = {"A": {"ok": 1}, "B": {"cancelled": 2}}
    of = built("e", experiment(), cells={cell().cell_id: cell()}, records=found, outcomes={}, jobs=jobs, now=1e9)
    assert of.silent == {"B": {"cancelled": 2}}
    for text in (printed(of), render(of)):
        assert "No result" in text and "2 cancelled" in text


def test_what_holds_for_every_result_is_said_once_above() -> None:
    text = printed(content(), 80)
    above, table = text.split("median ms")
    assert "warnings of every result: 1 gauge_assumed" in above and "5 virtual_device" in above
    assert "ran on opencl: PoCL 3.1" in above
    assert "warnings" not in table.partition("Warnings")[0]


def test_console_shows_brackets_as_they_are() -> None:
    text = printed(content([record(cell(), [1.0], serial="[bold]x[/]")]))
    assert "[bold]x[/]" in text


def printed(of: Whole, width: int = 200) -> str:
    buffer = StringIO()
    Console(file=buffer, width=width).print(console.render(of))
    return buffer.getvalue()


def test_export_is_json_and_has_the_records_that_it_is_given() -> None:
    of = content()
    lost = record(cell(), [], outcome=Outcome.LOST, token=9)
    short, full = (json.loads(json.dumps(export.as_data(of, records))) for records in (None, [*of.records, lost]))
    assert short["experiment"] == "e-1"
    assert len(short["summaries"]) == 6
    assert "records" not in short
    assert [Record.model_validate(each) for each in full["records"]] == [*of.records, lost]


@pytest.mark.parametrize("width", [90, 100, 120, 160])
def test_columns_stand_below_their_headings_at_every_width(width: int) -> None:
    buffer = StringIO()
    Console(file=buffer, width=width).print(console.render(content()))
    lines = buffer.getvalue().splitlines()
    header = next(line for line in lines if "median ms" in line)
    row = next(line for line in lines if line.startswith("  opencl fp32"))
    end = header.index("median ms") + len("median ms")
    assert row[:end].endswith("3.50") and row[end : end + 1] in ("", " ")
    assert "blocks" in header


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Portable Computing Language 3.1+debian", "PoCL 3.1"),
        ("pthread-skylake-avx512-Intel(R) Xeon(R) Processor @ 2.50GHz", "Intel Xeon"),
        ("pocketfarm-agent 0.1.0 avx512f", "agent avx512f"),
        ("QUALCOMM Adreno(TM)", "QUALCOMM Adreno"),
        ("Mali-G710 r0p0", "Mali-G710 r0p0"),
    ],
)
def test_names_of_drivers_are_short_and_still_names(name: str, short: str) -> None:
    assert wording.short_name(name) == short


def excluded(serial: str, label: str, reason: str) -> Exclusion:
    """Return an exclusion of a network that is called like its file: with spaces."""
    return Exclusion(serial, label.replace("lenet", "my net ü"), reason, workload="my net ü")


def test_excluded_cells_are_grouped() -> None:
    found = [excluded(serial, f"lenet {api} fp16", "no fp16") for serial in "ABCDEF" for api in ("cpu", "opencl")]
    found += [
        excluded("A", "lenet vulkan fp32", "no vulkan"),
        excluded("", "lenet x", "twice"),
    ]
    assert wording.group_exclusions(found) == [
        ("cpu fp16; opencl fp16", "every device", "no fp16"),
        ("vulkan fp32", "A", "no vulkan"),
        ("x", "every device", "twice"),
    ]
    assert wording.group_exclusions(found, "ABCDEFG")[0][1] == "A, B, C, D and 2 more"


def test_a_drawing_of_the_table_fetches_nothing_and_says_virtual() -> None:
    svg = console.as_svg(content(), "farm results first")
    ElementTree.fromstring(svg)
    assert "VIRTUAL" in svg
    assert "farm results first" in unescape(svg).replace("\xa0", " ")
    assert not re.search(r"url\((?!#)|@import|href=\"(?!#)|<script|<image", svg)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00042, "0.000420"), (1.2e-6, "0.000001"), (0.0155, "0.0155"), (0.5, "0.500"), (4.561, "4.56"), (78.94, "78.9"),
     (9.994, "9.99"), (9.997, "10.0"), (99.96, "100"), (0.9996, "1.00"), (1234.5, "1234"), (0.0, "0")],
)  # fmt: skip
def test_milliseconds_have_three_digits_down_to_the_nanosecond(value: float, text: str) -> None:
    assert wording.ms(value) == text


def swept(count: int, **shared: str | bool) -> Whole:
    """Cells that differ in one option and share others, with names that no terminal has room for."""
    axes = [{"algorithm": "an_algorithm_with_a_long_name", "product": f"blocked {n}x8", **shared} for n in range(count)]
    cells = [cell().model_copy(update={"options": options}) for options in axes]
    found = [record(c, [3.0], block=b, token=b + 1) for c in cells for b in range(3)]
    return built("e", experiment(), cells={c.cell_id: c for c in cells}, records=found, outcomes={}, now=1e9)


def test_what_all_cells_share_is_said_once() -> None:
    found = swept(2, pin_threads=False)
    text = printed(found)
    assert "every configuration: algorithm=an_algorithm_with_a_long_name pin_threads=False" in text
    assert text.count("pin_threads=False") == 1 and text.count("product=blocked 1x8") >= 1
    assert "Every configuration has algorithm=an_algorithm_with_a_long_name, pin_threads=False." in render(found)
    assert "every configuration" not in printed(swept(1, pin_threads=False))


def test_a_long_name_is_folded_and_no_figure_is_cut() -> None:
    cells = [cell(api).model_copy(update={"options": {"algorithm": "a" * 30, f"option_{api}": "b" * 30}})
             for api in (Api.OPENCL, Api.CPU)]  # fmt: skip
    found = [record(c, [3.0 + b / 10], block=b, token=b + 1) for c in cells for b in range(3)]
    page = built("e", experiment(), cells={c.cell_id: c for c in cells}, records=found, outcomes={}, now=1e9)
    lines = printed(page, 120).splitlines()
    assert max(map(len, lines)) <= 120
    assert all(word in "\n".join(lines) for word in ("3.1", "[2.", "3/3", "1.0 MiB", "b" * 30))


def test_many_excluded_cells_with_one_reason_are_counted() -> None:
    labels = [f"lenet cpu fp32 algorithm=direct frames=10 threads={t} tile=8 x {u}" for t in (1, 2) for u in (1, 2, 3)]
    found = [excluded("", label, "no sense") for label in labels]
    found.append(excluded("", "lenet vulkan fp32 frames=10", "no vulkan"))
    assert wording.group_exclusions(found) == [
        ("6 configurations with cpu fp32 algorithm=direct", "every device", "no sense"),
        ("vulkan fp32", "every device", "no vulkan"),
    ]
    alike = [excluded("", f"lenet {api} fp32 threads=4", "threads: means nothing") for api in ("opencl", "vulkan")]
    assert wording.group_exclusions(alike)[0].cells == "opencl fp32 threads=4; vulkan fp32 threads=4"


def test_an_interval_of_energy_has_the_unit_of_its_figure() -> None:
    wide = Interval(low=38e-6, high=1.61e-3)
    assert wording.ends(wide, 1.2e-3, "J") == "[0.04, 1.61] mJ"
    assert wording.ends(wide, 50.3e-6, "J") == "[40, 1610] µJ"


def test_why_a_cell_was_not_measured_has_room_in_a_terminal() -> None:
    reason = "the network needs 18182496 bytes of device memory at least, 7182496 more than the budget"
    text = printed(content([record(cell(), [], outcome=Outcome.FAILED, reasons=(reason,))]))
    assert "Not measured" in text and "1 failed" in text and reason in text
