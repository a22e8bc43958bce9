"""The report as one HTML file that asks nobody for anything: styles and charts inside, no script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.model.record import Outcome, Record
from orchestrator.statistics import MIN_BLOCKS, RESAMPLES, Summary

from . import charts, predictions, wording
from .content import Content
from .sections import sections

FOLDER = Path(__file__).parent
MAX_LAYER_CHARTS = 24
MAX_MEMORY_CHARTS = 24


def render(content: Content) -> str:
    """The page. Every name in it that came from outside is escaped by the template engine or by the SVG writer."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(w=wording, resamples=RESAMPLES, min_blocks=MIN_BLOCKS)
    environment.filters["utc"] = _utc
    return environment.get_template("report.html.j2").render(
        c=content,
        css=Markup((FOLDER / "report.css").read_text()),  # noqa: S704  (our own file)
        charts=_charts(content),
        layers=_charts_by_device(content.summaries, charts.layers, "layers", MAX_LAYER_CHARTS),
        exclusions=wording.group_exclusions(content.exclusions, {summary.serial for summary in content.summaries}),
        facts=_headline(content),
        names=wording.naming(content.summaries),
        provenance=_provenance(content.records),
        spec=json.dumps(content.experiment.model_dump(mode="json", exclude_defaults=True), indent=2),
        sections=sections(content),
        agreement_note=predictions.NOTE,
        memory=_charts_by_device(content.summaries, charts.memory, "memory", MAX_MEMORY_CHARTS),
        with_energy=any(summary.energy for summary in content.summaries),
        energy_basis=wording.energy_basis(summary.energy_per_inference for summary in content.summaries),
        slowest=max((s.latency.median_ms for s in content.summaries if s.latency), default=1.0),
    )


def _utc(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _charts(content: Content) -> dict[str, Markup]:
    drawn = {
        "latency": charts.latency(content.summaries, content.records),
        "distribution": charts.distribution(content.summaries, content.records),
        "drift": charts.drift(content.records),
        "throttling": charts.throttling(content.summaries),
        "setup": charts.setup(content.summaries),
        "power": charts.power(content.summaries, content.records),
        "energy": "".join(f"<figure>{svg}</figure>" for svg in charts.energy(content.summaries)),
        "margins": "".join(f"<figure>{svg}</figure>" for svg in charts.margins(content.agreements)),
    }
    return {name: Markup(svg or "") for name, svg in drawn.items()}  # noqa: S704  (our SVG writer escapes)


def _charts_by_device(
    summaries: Iterable[Summary], draw: Callable[[Summary, str], str | None], name: str, limit: int
) -> dict[str, list[Markup]]:
    """Charts of single results by device, of the first few that have one."""
    found: dict[str, list[Markup]] = {}
    for index, summary in enumerate(summaries):
        if sum(map(len, found.values())) < limit and (svg := draw(summary, f"{name}{index}")):
            found.setdefault(summary.serial, []).append(Markup(svg))  # noqa: S704
    return found


def _headline(content: Content) -> list[tuple[str, str]]:
    """The figures at the head of the page."""
    inferences = sum(
        sample.inferences for record in content.records if record.outcome is Outcome.OK and record.role == "work"
        for sample in record.samples if sample.phase == "timed"
    )  # fmt: skip
    started = min((record.started_at for record in content.records), default=0.0)
    ended = max((record.ended_at for record in content.records), default=0.0)
    return [
        ("devices", str(len({summary.serial for summary in content.summaries}))),
        ("results", str(len(content.summaries))),
        ("blocks", str(sum(summary.blocks for summary in content.summaries))),
        ("timed inferences", str(inferences)),
        ("from first to last", _duration(ended - started)),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _provenance(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What exactly ran, one row per device and driver."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for record in records:
        facts = record.runs_on.facts if record.runs_on else None
        row = {
            "device": record.device.serial,
            "api": f"{facts.api} {facts.version}" if facts else "",
            "driver": f"{facts.device_name} · {facts.driver}" if facts else "",
            "library": facts.library if facts else "",
            "fingerprint": record.provenance.fingerprint or record.device.fingerprint,
            "agent": f"{record.provenance.agent_version} {record.provenance.agent_sha256[:12]}".strip(),
            "farm": record.provenance.farm_version,
        }
        known = rows.setdefault(tuple(row.values()), {**row, "plans": {}, "models": {}})
        known["plans"][record.provenance.plan_hash] = None
        known["models"][record.provenance.model_sha256[:12]] = None
    return list(rows.values())
