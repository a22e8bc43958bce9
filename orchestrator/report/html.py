"""Write the report as one HTML file with styles and charts inside and no script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from markupsafe import Markup

from orchestrator.analysis.statistics import MIN_BLOCKS, SERIAL_BLOCKS, Summary, told_of
from orchestrator.figures import BlockFigures
from orchestrator.model.record import Outcome, Record

from . import charts, wording
from .colours import Colours
from .content import Content
from .drawing import Chart, to_svg
from .parts import answer, predictions
from .parts.links import Links, typical_jobs
from .sections import sections
from .templates import FOLDER, environment

MAX_LAYER_CHARTS = 24
MAX_MEMORY_CHARTS = 24


def render(content: Content, records: Sequence[Record] = (), pages: str = "") -> str:
    """The page. Every name in it that came from outside is escaped by the template engine or by the SVG writer.

    `records`: the raw ones of the blocks that are drawn over time (`drawn_blocks`). `pages`: address of the farm's
    pages, to which experiment, devices and jobs then lead.
    """
    templates = environment()
    templates.globals.update(w=wording, serial_blocks=SERIAL_BLOCKS, min_blocks=MIN_BLOCKS)
    templates.filters["utc"] = _utc
    return templates.get_template("report.html.j2").render(
        c=content,
        links=Links(pages),
        jobs=typical_jobs(content.blocks) if pages else {},
        css=Markup((FOLDER / "report.css").read_text()),  # noqa: S704  (our own file)
        charts=_charts(content, records),
        colours=Colours.of(content.summaries),
        layers=_charts_by_device(
            content.summaries,
            partial(charts.layers, colours=Colours.of(content.summaries)),
            "layers",
            MAX_LAYER_CHARTS,
        ),
        exclusions=wording.group_exclusions(content.exclusions, {summary.serial for summary in content.summaries}),
        facts=_headline(content),
        usable=answer.usable(content),
        closing=answer.closing(content),
        told=_told,
        names=wording.naming(content.summaries),
        common_doubts=wording.common_doubts(content.doubts, len(content.summaries)),
        provenance=_provenance(content.blocks),
        spec=json.dumps(content.experiment.model_dump(mode="json", exclude_defaults=True), indent=2),
        sections=sections(content),
        agreement_note=predictions.NOTE,
        memory=_charts_by_device(content.summaries, charts.memory, "memory", MAX_MEMORY_CHARTS),
        with_energy=any(summary.energy for summary in content.summaries),
        sample=wording.sample(content.summaries),
        energy_basis=wording.energy_basis(summary.energy_per_inference for summary in content.summaries),
        slowest=max((s.latency.median_ms or 0.0 for s in content.summaries if s.latency), default=1.0) or 1.0,
    )


def _told(summary: Summary) -> dict[str, tuple[str, str]]:
    """The quantities of a result by metric and basis, as texts: a figure and its interval."""
    return {f"{each.metric} {each.basis}".strip(): wording.told(each) for each in told_of(summary)}


def _utc(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _charts(content: Content, records: Sequence[Record]) -> dict[str, list[Markup]]:
    """Draw charts by name; each is drawn and written before the next one, because figures are large."""
    summaries, blocks = content.summaries, content.blocks
    labels = {each.cell_id: each.label for each in summaries}
    timed = wording.sample(summaries)
    draw: dict[str, Callable[[], Sequence[Chart | None]]] = {
        "axis": lambda: charts.over_axis(summaries, content.experiment.published),
        "latency": lambda: [charts.latency(summaries, blocks)],
        "distribution": lambda: charts.distribution(summaries, blocks),
        "drift": lambda: charts.drift(summaries, records),
        "throttling": lambda: charts.throttling(summaries),
        "setup": lambda: [charts.setup(summaries)],
        "power": lambda: charts.power(summaries, records),
        "energy": lambda: charts.energy(summaries),
        "margins": lambda: charts.margins(content.agreements),
        "limits": lambda: [charts.limits(content.limits, timed)],
        "training": lambda: charts.training(blocks, labels),
        "reconstructions": lambda: charts.reconstructions(records, labels),
    }
    return {name: [_markup(chart) for chart in drawn() if chart] for name, drawn in draw.items()}


def _markup(chart: Chart) -> Markup:
    return Markup(to_svg(chart))  # noqa: S704  (our SVG writer escapes)


def _charts_by_device(
    summaries: Iterable[Summary], draw: Callable[[Summary, str], Chart | None], name: str, limit: int
) -> dict[str, list[Markup]]:
    """Charts of single results by device, of the first few that have one."""
    found: dict[str, list[Markup]] = {}
    for index, summary in enumerate(summaries):
        if sum(map(len, found.values())) < limit and (chart := draw(summary, f"{name}{index}")):
            found.setdefault(summary.serial, []).append(_markup(chart))
    return found


def _headline(content: Content) -> list[tuple[str, str]]:
    """The figures at the head of the page."""
    inferences = sum(
        block.inferences for block in content.blocks if block.outcome is Outcome.OK and block.role == "work"
    )
    started = min((block.started_at for block in content.blocks), default=0.0)
    ended = max((block.ended_at for block in content.blocks), default=0.0)
    trains = content.experiment.workload.training is not None
    return [
        ("devices", str(len({summary.serial for summary in content.summaries}))),
        ("results", str(len(content.summaries))),
        ("blocks", str(sum(summary.blocks for summary in content.summaries))),
        (f"{'' if trains else 'timed '}{wording.sample(content.summaries, 's')}", f"{inferences:,}"),
        ("from first to last", _duration(ended - started)),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _provenance(blocks: Iterable[BlockFigures]) -> list[dict[str, Any]]:
    """Return what exactly ran, one row per device and driver."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for block in blocks:
        facts = block.runs_on.facts if block.runs_on else None
        row = {
            "device": block.serial,
            "api": f"{facts.api} {facts.version}" if facts else "",
            "driver": f"{facts.device_name} · {facts.driver}" if facts else "",
            "library": facts.library if facts else "",
            "fingerprint": block.provenance.fingerprint or block.fingerprint,
            "agent": f"{block.provenance.agent_version} {block.provenance.agent_sha256[:12]}".strip(),
            "farm": block.provenance.farm_version,
        }
        known = rows.setdefault(tuple(row.values()), {**row, "plans": {}, "models": {}})
        known["plans"][block.provenance.program_hash] = None
        known["models"][block.provenance.model_sha256[:12]] = None
    return list(rows.values())
