"""The pictures of the documentation show what the farm shows now; `make pictures` draws them again."""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from orchestrator.report.parts.results import COLUMNS
from orchestrator.report.sections import sections
from scripts.pictures import HEADINGS
from tests.servers import required
from tests.source_tree import ROOT
from tests.unit.report import everything

DOCS = ROOT / "docs"
STALE = "it is no longer what the farm shows: run `make pictures`"
TABLES = ("demo.svg", "mine.svg")
PROBE = """<script>addEventListener("load", () => {
  const inside = (t, r) => t.left >= r.left && t.right <= r.right && t.top >= r.top && t.bottom <= r.bottom;
  const boxes = [...document.querySelectorAll("svg rect")].map(r => r.getBoundingClientRect()).slice(1);
  const out = [...document.querySelectorAll("svg text")].filter(
    t => !boxes.some(r => inside(t.getBoundingClientRect(), r))).map(t => t.textContent);
  document.body.dataset.seen = `drawn ${boxes.length}, outside: ${out.join("; ")}`;
})</script>"""


def lines_of(svg: str) -> list[str]:
    """A drawn terminal's lines, as words between single spaces."""
    rows: dict[str, list[str]] = {}
    for height, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        rows.setdefault(height, []).append(html.unescape(text).replace("\xa0", " "))
    return [" ".join(" ".join(parts).split()) for parts in rows.values()]


def head_of(svg: str) -> str:
    """The first line of the table of results."""
    return next(line for line in lines_of(svg) if "median" in line)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_columns_of_now(name: str) -> None:
    now = " ".join(head.name for head in COLUMNS).split()
    shown = head_of((DOCS / name).read_text()).split()
    assert shown == now[: len(shown)], f"docs/{name}: {STALE}"


def test_the_report_has_the_headings_of_now() -> None:
    with Image.open(DOCS / "report.png") as picture:
        shown = str(picture.info[HEADINGS]).splitlines()
    template = (ROOT / "orchestrator" / "report" / "report.html.j2").read_text()
    now = {*(section.title for section in sections(everything.content())), *re.findall(r'"([^"]+)"\) }}', template)}
    assert shown and set(shown) <= now, f"docs/report.png: {STALE}"


def test_pictures_ask_the_network_for_nothing() -> None:
    for path in DOCS.rglob("*.svg"):
        assert not re.search(r"(?:href|src|url)\W{1,3}https?:", path.read_text()), path.name


def test_no_text_of_the_architecture_leaves_its_box(tmp_path: Path, headless: Callable[[Path], list[str]]) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><body>{(DOCS / 'architecture' / 'architecture.svg').read_text()}{PROBE}</body>")
    done = subprocess.run(
        [*headless(tmp_path), "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=90
    )
    seen = re.search(r'data-seen="drawn (\d+), outside: ([^"]*)"', done.stdout)
    assert seen and int(seen[1]) > 5, done.stdout[:1000] + done.stderr[-1000:]
    assert seen[2] == ""


@pytest.fixture
def headless() -> Callable[[Path], list[str]]:
    """A browser's command line with a profile in a folder."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage")
    return lambda folder: [
        required("chromium"),
        *options,
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1100,700",
    ]
