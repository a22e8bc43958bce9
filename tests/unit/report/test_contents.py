"""Reports of comparisons, nights and queueing: a list of contents, and links to the pages of their farm."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from starlette.routing import compile_path

from dashboards.web.app import PAGES
from orchestrator.analysis.comparison import compare
from orchestrator.analysis.history import Night as Column
from orchestrator.analysis.history import history
from orchestrator.nightly import Wave
from orchestrator.nightly.past import figures_of
from orchestrator.report.compared import Content, as_html
from orchestrator.report.nights import history_page, morning, morning_page
from orchestrator.report.queueing import queueing_page
from tests.unit.comparison.made import measured
from tests.unit.history.made import missing, nights
from tests.unit.report.test_queueing_report import small, told
from tests.unit.report.test_report import EVIL, Page

pytestmark = pytest.mark.unit

FARM = "http://127.0.0.1:8420/"
AWKWARD = "127.0.0.1:5555 / <i>"
NIGHTS = nights(14, lambda number, device, *_: 1.1 if number >= 8 and device == AWKWARD else 1.0, (AWKWARD, "B"))


def comparison(pages: str) -> str:
    quiet, loud = [10.0, 10.01, 9.99, 10.0, 10.02, 9.98], [12.0, 12.02, 12.01, 11.99, 12.0, 12.01]
    a = [*measured(quiet, device=AWKWARD), *measured(quiet, device="Pixel 9")]
    b = [*measured(loud, device=AWKWARD, late=20), *measured(quiet, device="Pixel 9", late=20)]
    many = tuple(f"b-{number}" for number in range(14))
    content = Content("a", EVIL, compare(a, b), experiments=(("a-1",), many), serials=frozenset({AWKWARD}))
    return as_html(content, pages)


def past(pages: str) -> str:
    columns = [Column(id=night.night_id, at=night.due_at) for night in NIGHTS]
    figures = [each for night in NIGHTS for each in figures_of(night)]
    return history_page(history("nightly", columns, figures), pages)


def this_morning(pages: str) -> str:
    wave = Wave(kind="first", part="lenet", experiment_id="lenet-1", number=0, blocks=6)
    last = NIGHTS[-1].model_copy(update={"missing": (missing("D"),), "outcome": "partial", "waves": (wave,)})
    columns = [Column(id=night.night_id, at=night.due_at) for night in NIGHTS]
    figures = [each for night in NIGHTS for each in figures_of(night)]
    return morning_page(morning(last, history("nightly", columns, figures)), pages)


def queueing(pages: str) -> str:
    return queueing_page(told(small(), servers=[("s-1", AWKWARD, "SM-G930F", "phone", "unplugged")]), pages)


def device(serial: str) -> str:
    return f"devices/{quote(serial, safe='')}"


WANTED: dict[Callable[[str], str], set[str]] = {
    comparison: {"experiments/a-1", *(f"experiments/b-{number}" for number in range(12)), device(AWKWARD)},
    past: {"nights/nightly%40008", device(AWKWARD), device("B")},
    this_morning: {"nights/nightly%40013", "experiments/lenet-1", device(AWKWARD), device("B"), device("D")},
    queueing: {device(AWKWARD)},
}
EVERY = pytest.mark.parametrize("make", WANTED)


@EVERY
def test_the_contents_lead_to_every_section(make: Callable[[str], str]) -> None:
    text = make("")
    ids = [value for name, value in Page(text).attributes if name == "id"]
    assert Page(text).open == [] and len(ids) == len(set(ids))
    (contents,) = re.findall(r'<nav id="contents".*?</nav>', text, re.S)
    listed = re.findall(r'href="#([^"]+)"', contents)
    assert set(re.findall(r'<section id="([^"]+)"', text)) <= set(listed) <= set(ids) and len(listed) > 2
    assert text.index("<nav") < text.index("<section") and text.count('href="#contents"') == text.count("<section")


@EVERY
def test_it_leads_to_pages_that_the_farm_has(make: Callable[[str], str]) -> None:
    """Nothing else than the links is another."""
    linked = make(FARM)
    parsed = Page(linked)
    assert parsed.open == [] and not {"i", "script"} & set(parsed.tags)
    addresses = [value or "" for name, value in parsed.attributes if name == "href"]
    away = {each.removeprefix(FARM) for each in addresses if not each.startswith("#")}
    assert away == WANTED[make] | {"glossary"}
    patterns = [compile_path(path)[0] for path in PAGES if path != "/"]
    assert all(any(pattern.match(f"/{each}") for pattern in patterns) for each in away)


@EVERY
def test_without_pages_it_asks_nobody_for_anything(make: Callable[[str], str]) -> None:
    plain = make("")
    addresses = [value or "" for name, value in Page(plain).attributes if name in ("href", "src", "action")]
    assert all(each.startswith("#") for each in addresses) and "default-src 'none'" in plain
    assert not re.search(r"(https?:)?//[a-z0-9]", plain)
