"""The page of an experiment that is over: whether its results may be used, the results, warnings once, downloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from random import Random

import pytest
from starlette.requests import Request

from dashboards.web.access import ANYBODY, Access
from dashboards.web.app import PAGES
from dashboards.web.contents import Contents
from dashboards.web.documents import Documents
from dashboards.web.look import Watch
from dashboards.web.own_figures import OwnFigures
from dashboards.web.renderer import Renderer
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.errors import UnknownName
from orchestrator.report.charts import drawn_devices
from orchestrator.report.content import Content
from orchestrator.report.parts import answer, results
from orchestrator.report.sections import SETUP, sections
from tests.unit.orchestrator import make
from tests.unit.report import everything
from tests.unit.report.test_walk import experiment_of

from .test_nights import no_farm


class Drawn(Contents):
    """The results that were drawn, of whatever experiment."""

    content: Content

    def of(self, row: ExperimentRow, *, layers: bool = False) -> Content:
        return self.content


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with one experiment that is over, and one that is not."""
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as opened:
        for name in ("e-1", "open-1"):
            opened.submit(name, make.many(1, name=name), [make.job(name)])
        opened.cancel("e-1")
        yield opened


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub("</?b>", "", html))).split())


def test_it_says_what_the_terminal_says(ledger: Ledger, tmp_path: Path, seed: int) -> None:
    """Any results: the first line, each row's texts in their order, each section, every warning in one row."""
    random, drawn = Random(seed), Drawn(lambda: ledger, tmp_path)
    figures = OwnFigures(lambda: ledger, str)
    pages = Renderer(lambda: ledger, Watch(lambda: ledger, no_farm), Access("t"), PAGES, drawn, figures)
    for _ in range(8):
        drawn.content = found = experiment_of(random)
        page, html = pages.main("/experiments/e-1", {}, ANYBODY)
        text, usable = words(html), answer.usable(found)
        assert not page.live and 'style="' not in html
        first = text.index(f"{usable[0].upper()}{usable[1:]}." if ":" in usable else f"{usable.capitalize()}.")
        assert first < text.index("Results") and answer.closing(found) in text
        for group in results.groups(found):
            own = text[text.index(f"{group.device.serial} ", first) :]
            for row in group.rows:
                told = " ".join(" ".join([*row.texts, *map(str, row.warnings)]).split())
                assert told in own, told
        for section in sections(found):
            assert (f'<h3 id="{section.name}">' in html) == (section.name != SETUP)
        assert [html.count(f'<tr id="warning{n}">') for n in range(len(found.doubts) + 2)] == [
            0, *(1 for _ in found.doubts), 0
        ]  # fmt: skip
        assert set(re.findall(r'href="#warning(\d+)"', html)) <= {str(n + 1) for n in range(len(found.doubts))}
        for form in ("csv", "json", "parquet"):
            assert f'href="/experiments/e-1/samples.{form}"' in html
    assert 'id="results"' not in pages.main("/experiments/open-1", {}, ANYBODY)[1]


def test_a_sustained_load_is_drawn(ledger: Ledger, tmp_path: Path) -> None:
    """Each device's chart is a file of its own, for a wide and for a narrow screen; there are as many as devices."""
    drawn = Drawn(lambda: ledger, tmp_path)
    figures = OwnFigures(lambda: ledger, str)
    pages = Renderer(lambda: ledger, Watch(lambda: ledger, no_farm), Access("t"), PAGES, drawn, figures)
    drawn.content = found = everything.content(blocks=1, mode="sustained")
    way = Documents(lambda: ledger, drawn, figures).ways()["/experiments/{id}/sustained{number:int}.svg"].make
    html, devices = pages.main("/experiments/e-1", {}, ANYBODY)[1], drawn_devices(found.summaries)
    assert devices and html.count("<picture>") == len(devices)

    def asked(number: int, query: bytes = b"") -> str:
        path = {"id": "e-1", "number": number}
        return bytes(way(Request({"type": "http", "path_params": path, "query_string": query})).body).decode()

    for number, device in enumerate(devices):
        assert f'src="/experiments/e-1/sustained{number}.svg" alt="A sustained load: {device}"' in html
        wide, narrow = (float(re.findall(r'width="([\d.]+)pt"', asked(number, q))[0]) for q in (b"", b"narrow=1"))
        assert device in unescape(asked(number)) and narrow < wide
    with pytest.raises(UnknownName, match=f"has {len(devices)} charts"):
        asked(len(devices))


def test_every_page_leads_to_the_glossary(ledger: Ledger, tmp_path: Path) -> None:
    figures = OwnFigures(lambda: ledger, str)
    contents = Contents(lambda: ledger, tmp_path)
    pages = Renderer(lambda: ledger, Watch(lambda: ledger, no_farm), Access("t"), PAGES, contents, figures)
    page, html = pages.main("/glossary", {}, ANYBODY)
    assert page.title == "Glossary" and 'id="set-up"' in html and "farm explain WORD" in html
    assert "hat happens in a run before its first inference" in html
