"""Charts of queueing experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from orchestrator.queueing.capacity import Point
from orchestrator.queueing.measures import Figure as Measure
from orchestrator.queueing.measures import Measured
from orchestrator.queueing.requests import Requests, Run
from orchestrator.queueing.spec import QueueingSpec
from orchestrator.queueing.theory import Theory
from orchestrator.report.charts.rows import WIDTH_PX
from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import MUTED, Chart, bare, logarithmic, new_figure, style
from orchestrator.report.heading import put_heading

MS_PER_S = 1000.0
HEIGHT_PX = 330.0
STEPS = 400
MOST_SERVERS = 12
"""Temperatures of so many servers are drawn; of more, their lowest, middle and highest."""
PARTS = ("mean", "p50", "p99")


def load_curve(points: Sequence[tuple[Point, list[Theory]]]) -> Chart:
    """Sojourn against offered load; theory's mean as crosses where it has one."""
    with style():
        figure = new_figure(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        loads = [point.load for point, _ in points]
        for part, colour in zip(PARTS, PALETTE, strict=False):
            figures = [getattr(point.figures.sojourn_s, part) for point, _ in points]
            _with_interval(axes, loads, figures, colour, part)
        told = [(point.load, line.sojourn_s) for point, lines in points for line in lines if line.part == "all"]
        if told:
            axes.plot(*zip(*((x, MS_PER_S * y) for x, y in told), strict=True), "x", color=MUTED, label="theory, mean")
        logarithmic(axes.yaxis)
        axes.set_xlabel("offered load, share of what all servers can serve")
        axes.set_ylabel("sojourn, ms")
        bare(axes, grid="y")
        put_heading(figure, keys=_keys(axes))
        return Chart(figure, "load", "Sojourn against offered load")


def _with_interval(axes: Axes, x: Sequence[float], figures: Sequence[Measure], colour: str, label: str) -> None:
    found = [(at, each) for at, each in zip(x, figures, strict=True) if each.value is not None]
    axes.plot([at for at, _ in found], [MS_PER_S * (each.value or 0) for _, each in found], "o-", ms=4, color=colour,
              label=label)  # fmt: skip
    for at, each in found:
        if each.low is not None and each.high is not None:
            low, high = max(each.low, 1e-9), each.high
            axes.plot([at, at], [MS_PER_S * low, MS_PER_S * high], color=colour, linewidth=2.5, alpha=0.5)


def tail(spec: QueueingSpec, requests: Requests) -> Chart:
    """The share of requests that took longer, on a log scale: a straight line is an exponential tail."""
    with style():
        figure = new_figure(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        for kind, (of, colour) in enumerate(zip(spec.classes, PALETTE * 10, strict=False)):
            done = requests.of(requests.column("kind") == kind).done
            if not len(done):
                continue
            for values, line, what in ((done.sojourn_s, "-", "sojourn"), (done.column("served_s"), ":", "service")):
                longer = np.unique(np.geomspace(1 / len(values), 1, STEPS))
                axes.plot(MS_PER_S * np.quantile(values, 1 - longer), longer, line, color=colour,
                          label=f"{of.name}, {what}")  # fmt: skip
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        logarithmic(axes.xaxis)
        axes.set_xlabel("ms")
        axes.set_ylabel("share that took longer")
        bare(axes, grid="y")
        put_heading(figure, keys=_keys(axes))
        return Chart(figure, "tail", "Share of requests that took longer")


def timeline(run: Run) -> Chart:
    """Queue, busy servers and temperatures over the time of a run."""
    course = run.course
    at = np.array(course.at)
    temps = _temperatures(run)
    with style():
        figure = new_figure(WIDTH_PX, 150.0 * (2 + bool(len(temps))) + 40)
        panels = np.atleast_1d(figure.subplots(2 + bool(len(temps)), 1, sharex=True))
        panels[0].plot(at, course.waiting, color=PALETTE[0], linewidth=1)
        panels[0].set_ylabel("waiting")
        panels[0].set_ylim(0, max(1.0, 1.05 * max(course.waiting, default=0)))
        busy = np.diff(np.array(course.busy_s), axis=0, prepend=0.0).sum(axis=1) / np.diff(at, prepend=0.0)
        width = max(1, len(at) // 100)
        smooth = np.convolve(busy, np.ones(width) / width, mode="valid")
        panels[1].plot(at[len(at) - len(smooth) :], smooth, color=PALETTE[2], linewidth=1)
        panels[1].set_ylabel("busy servers")
        for values, colour in zip(temps, PALETTE * 2, strict=False):
            panels[2].plot(at, values, color=colour, linewidth=1)
            panels[2].set_ylabel("°C")
        for axes in panels:
            bare(axes, grid="y")
        panels[-1].set_xlabel("time of the run, s")
        return Chart(figure, "timeline", "Queue, busy servers and temperature over time")


def _temperatures(run: Run) -> Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """A row for each server that tells its temperature."""
    if not run.course.temp_c:
        return []
    found = np.array([[np.nan if each is None else each for each in point] for point in run.course.temp_c]).T
    told = [row for row in found if np.isfinite(row).any()]
    if len(told) <= MOST_SERVERS:
        return told
    return [np.nanmin(told, axis=0), np.nanmedian(told, axis=0), np.nanmax(told, axis=0)]


def pareto(policies: Sequence[tuple[str, Measured]]) -> Chart | None:
    """Energy of a request against p99 of the sojourn: who is below and left of another is better in both."""
    points = [
        (name, each.total.sojourn_s.p99, each.total.energy_with_idle_j_per_request)
        for name, each in policies
        if each.total.sojourn_s.p99.value and each.total.energy_with_idle_j_per_request.value
    ]
    if not points:
        return None
    with style():
        figure = new_figure(WIDTH_PX, HEIGHT_PX)
        axes = figure.subplots()
        for (name, p99, energy), colour in zip(points, PALETTE * 3, strict=False):
            x, y = MS_PER_S * (p99.value or 0), energy.value or 0
            axes.plot([x], [y], "o", color=colour, label=name)
            if p99.low is not None and p99.high is not None:
                axes.plot([MS_PER_S * p99.low, MS_PER_S * p99.high], [y, y], color=colour, alpha=0.5, linewidth=2.5)
            if energy.low is not None and energy.high is not None:
                axes.plot([x, x], [energy.low, energy.high], color=colour, alpha=0.5, linewidth=2.5)
        logarithmic(axes.xaxis)
        axes.set_xlabel("p99 of the sojourn, ms")
        axes.set_ylabel("energy of a request, with idle servers, J")
        bare(axes, grid="y")
        put_heading(figure, keys=_keys(axes))
        return Chart(figure, "pareto", "Energy of a request against p99 of the sojourn, by policy")


def _keys(axes: Axes) -> list[Line2D]:
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
