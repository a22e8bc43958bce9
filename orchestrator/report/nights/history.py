"""Write a history as one HTML file in the style of the report, with no script and nothing to be fetched."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from orchestrator.analysis.history import Change, History, Trail
from orchestrator.model.device import Source
from orchestrator.report import wording
from orchestrator.report.drawing import to_svg
from orchestrator.report.parts.links import Links
from orchestrator.report.section import Column, Section
from orchestrator.report.templates import environment

from .series import series_chart

FOLDER = Path(__file__).parent
MOST_CHARTS = 40
CHANGES = (
    Column("night"), Column("device"), Column("configuration"), Column("metric"), Column("change", True),
    Column("whose"), Column("because"), Column("what else changed"),
)  # fmt: skip
SERIES = (
    Column("device"), Column("configuration"), Column("metric"), Column("nights", True), Column("noise", True),
    Column("least change told", True), Column("changes", True),
)  # fmt: skip


def history_page(history: History, pages: str = "") -> str:
    """Changes, charts of the series that have one, and the noise floor of every series.

    `pages`: the address of the farm's pages, where it is known: nights and devices lead there.
    """
    links = Links(pages)
    charts = [trail for trail in history.trails if trail.changes][:MOST_CHARTS]
    causes = Counter(change.cause for _, change in history.changes)
    return (
        environment()
        .get_template("history.html.j2")
        .render(
            of=history.of,
            css=css(),
            facts=[
                ("nights", str(len(history.nights))),
                ("series", str(len(history.trails))),
                ("changes", str(len(history.changes))),
                *((cause, str(number)) for cause, number in sorted(causes.items())),
            ],
            links=links,
            sections=[_changes_section(history.changes, links), _series_section(history, links)],
            charts=charts_of(history, charts),
            unreal=sorted({word for trail in history.trails if (word := unreal(trail.source))}),
        )
    )


def css() -> Markup:
    """The report's, and what these pages have beside it."""
    own = (FOLDER / "nights.css").read_text()
    return Markup((FOLDER.parent / "report.css").read_text() + own)  # noqa: S704  (our own files)


def charts_of(history: History, trails: list[Trail]) -> list[Markup]:
    """The charts of series as elements of a page."""
    return [
        Markup(to_svg(series_chart(history, trail, f"series{number}")))  # noqa: S704  (our SVG writer escapes)
        for number, trail in enumerate(trails)
    ]


def _changes_section(changes: list[tuple[Trail, Change]], links: Links) -> Section:
    """Changes as a table, the newest first; what is worse is marked."""
    return Section(
        name="changes",
        title="Changes",
        note="",
        columns=CHANGES,
        rows=tuple(
            (
                links.night(change.night, date(change.at)), links.device(trail.device), trail.cell,
                f"{trail.metric} {trail.basis}".strip(), f"{100 * change.change:+.1f} %",
                change.cause if change.settled else f"{change.cause}, unsettled", change.because,
                "; ".join(f"{name}: {old} → {new}" for name, (old, new) in change.also.items()),
            )
            for trail, change in changes
        ),
        bad=frozenset(number for number, (_, change) in enumerate(changes) if change.worse),
    )  # fmt: skip


def _series_section(history: History, links: Links) -> Section:
    rows = (
        (
            links.device(trail.device), trail.cell, f"{trail.metric} {trail.basis}".strip(),
            str(sum(value is not None for value in trail.a)), f"{100 * trail.noise:.2g} %",
            f"{100 * trail.floor:.2g} %", str(len(trail.changes)),
        )
        for trail in history.trails
    )  # fmt: skip
    return Section("series", "Every series", "", SERIES, tuple(rows))


def date(at: float) -> str:
    """Local time, to the minute."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def unreal(source: str) -> str:
    """`VIRTUAL` or `REPLAY`; empty for what was measured on the device itself."""
    told = wording.source_word(Source(source)) if source else ""
    return told if told.isupper() else ""
