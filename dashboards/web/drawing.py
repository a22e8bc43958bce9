"""A chart of a panel's lines, with the marks of what happened meanwhile."""

from __future__ import annotations

from orchestrator.report.charts.over_time import NARROW_PX, WIDTH_PX, Line, over_time
from orchestrator.report.charts.states_over_time import states_over_time

from .charts import Panel
from .marks import Span


def draw(of: Panel, lines: list[Line], span: Span | None = None, *, narrow: bool = False) -> str:
    """A whole SVG file. `span`: the time that is shown, with what happened in it; None: that of the lines."""
    events = [(mark.at, mark.number) for mark in span.marks] if span else []
    shown = (span.start, span.end) if span else None
    width_px, name = NARROW_PX if narrow else WIDTH_PX, f"chart{of.number}"
    if of.kind == "state-timeline":
        return states_over_time(name, of.title, lines, of.words, events, shown, width_px)
    return over_time(name, of.title, of.unit, lines, of.limits, events, shown, width_px, (of.least, of.most))
