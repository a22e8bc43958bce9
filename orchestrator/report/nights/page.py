"""Write the morning report as one HTML file: no script, nothing to be fetched; a person reads it in a minute."""

from __future__ import annotations

from math import expm1

from orchestrator.analysis.comparison import Compared
from orchestrator.model.axes import axis_value_text
from orchestrator.model.experiment import Side
from orchestrator.nightly import NightRow
from orchestrator.report import wording
from orchestrator.report.compared.table import figure, size, verdict_words
from orchestrator.report.parts.links import Links
from orchestrator.report.section import Column, Section
from orchestrator.report.templates import environment

from .heat import heat_maps, ratio_picture, reach
from .history import charts_of, css, date, unreal
from .morning import Group, Morning, charted, grouped, headline, next_steps, raw_records, row_device, tiles, usable

MOST_ROWS = 30
TITLES = {
    "worse": "What got worse", "not confirmed": "Differed, and did not when repeated", "better": "What got better",
    "missing": "What is missing", "unknown": "What is unknown",
}  # fmt: skip
NOTE = (
    "Candidate over baseline: the change, with its interval, of 95 % for that row alone; repeated: the change that a "
    "second measurement found; then what the blocks of both sides came to (medians)."
)
DRAWN = "Drawn: the change as a dot on its interval, cut at the edge; grey is the margin where sides are the same."
CHANGES = (
    Column("night"), Column("device"), Column("what"), Column("change", True), Column("whose"), Column("because"),
    Column("what else changed"),
)  # fmt: skip
MISSING = (Column("device"), Column("configurations without a good block", True), Column("reason"))


def morning_page(found: Morning, pages: str = "") -> str:
    """The page; the template engine escapes every name in it. `pages`: the address of the farm's pages, where it is
    known: devices and experiments lead there."""
    night, links = found.night, Links(pages)
    told = {name: found.rows[name] for name in TITLES if found.rows[name]}
    scale = reach([row for rows in told.values() for row in rows])
    changes = grouped(found)
    return (
        environment()
        .get_template("morning.html.j2")
        .render(
            title=f"{night.suite.name}, {date(night.due_at)}",
            night=night,
            css=css(),
            usable=usable(found).partition(":"),
            headline=headline(found),
            bad=bool(found.rows["worse"]) or night.outcome != "complete",
            tiles=tiles(found),
            steps=next_steps(found),
            groups=[_group(found, name, rows, scale, links) for name, rows in told.items()],
            ends=f"{100 * expm1(-scale):.0f} % to {100 * expm1(scale):+.0f} %",
            note=f"{NOTE} {DRAWN}",
            links=links,
            missing=_missing(found, links),
            maps=heat_maps(found, links),
            changes=_changes(changes, links) if changes else None,
            charts=charts_of(found.history, charted(found)),
            nights=len(found.history.nights),
            facts=_facts(found, links),
            records=[(name.partition(" (")[0], name, command) for name, command in raw_records(night)],
            unreal=sorted({unreal(row.compared.source) for row in night.rows} - {""}),
        )
    )


def _group(found: Morning, name: str, rows: list[NightRow], scale: float, links: Links) -> dict[str, object]:
    return {
        "name": name.replace(" ", "-"),
        "title": TITLES[name],
        "more": max(0, len(rows) - MOST_ROWS),
        "rows": [
            {
                "device": links.device(row.compared.device, row_device(row)),
                "cell": found.named(row),
                "metric": f"{row.compared.metric} {row.compared.basis}".strip(),
                "picture": row.compared.unresolved or ratio_picture(row, scale),
                "levels": levels(row),
                "words": words(row, len(found.night.rows)),
            }
            for row in rows[:MOST_ROWS]
        ],
    }


def levels(row: NightRow) -> str:
    """`9.03 ms to 9.76 ms`, once where both are told alike; empty where a side lacks it."""
    a, b = figure(row.compared, "A"), figure(row.compared, "B")
    return " to ".join(dict.fromkeys((a, b))) if a and b else ""


def words(row: NightRow, rows: int) -> str:
    """The verdict with its interval, and what the repetition said."""
    found = row.compared
    text = verdict_words(found, rows)
    if found.interval is not None and found.ratio is not None and found.verdict == "different":
        text += f" ({_end(found, found.interval.low)} to {_end(found, found.interval.high)})"
    if row.repeated is not None and (again := size(row.repeated)):
        text += f"; repeated: {again}"
    return text if row.said != "not confirmed" else f"not confirmed; first {text}"


def _end(of: Compared, end: float) -> str:
    return wording.change(end, of.interval).removesuffix(" %")


def _changes(groups: list[Group], links: Links) -> Section:
    rows = (
        (
            date(each.at), _moved(each, links), each.what, each.size,
            each.cause if each.settled else f"{each.cause}, unsettled", each.because, each.also,
        )
        for each in groups
    )  # fmt: skip
    bad = frozenset(number for number, each in enumerate(groups) if each.worse)
    return Section("changes", "Changes of the last two weeks", "", CHANGES, tuple(rows), bad)


def _moved(group: Group, links: Links) -> str:
    return links.device(group.device) if group.device == group.trail.device else group.device


def _missing(found: Morning, links: Links) -> Section | None:
    rows = tuple((links.device(each.device), str(each.cells or ""), each.reason) for each in found.night.missing)
    return Section("devices", "Devices that are missing", "", MISSING, rows) if rows else None


def _facts(found: Morning, links: Links) -> list[tuple[str, str]]:
    night = found.night
    ran = f"{date(night.began_at)} to {date(night.ended_at or night.ends_at)}" if night.began_at else "it did not run"
    return [
        ("night", links.night(night.night_id)),
        ("ran", ran),
        ("outcome", (night.outcome or "under way").replace("not_run", "did not run")),
        ("devices", ", ".join(night.devices) or "none"),
        ("sides", f"baseline {_side(night.suite.sides.baseline)}, candidate {_side(night.suite.sides.candidate)}"),
        ("suite", night.file),
    ]  # fmt: skip


def _side(side: Side) -> str:
    told = {f"{name}={axis_value_text(name, value)}": "" for name, value in side.axes.items()}
    told |= {f"engine {name}": path for name, path in side.engine.items()}
    told |= {name: getattr(side, name) or "" for name in ("onnx", "agent", "driver") if getattr(side, name)}
    return ", ".join(f"{name} {path}".strip() for name, path in told.items()) or "as the experiment says"
