"""One figure of an experiment for a paper or a notebook: a dot for each result, with its whole interval."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orchestrator.model.doubts import DoubtCode
from orchestrator.model.errors import NoData, SetupError, UnknownName, Unsupported
from orchestrator.model.foreign import cleaned
from orchestrator.report.colours import BACKENDS, FOREIGN
from orchestrator.report.drawing import FOREGROUND, GRID, MUTED, STYLE, boxes, logarithmic
from orchestrator.report.wording import counted, short_name

FORMATS = ("pdf", "svg", "png")
INK = {FOREGROUND: "#000000", MUTED: "#333333", GRID: "#cccccc"}
"""The colours on paper of a page's placeholders."""
WIDE_IN, HEAD_IN, ROW_IN, BESIDE = 6.5, 1.0, 0.3, 0.16
"""Inches: the width of a page's text, above and below the rows, a row; beside each other, backends are so far apart."""
LOG_FROM = 20.0
LONGEST = 34
DPI = 300

Result = Mapping[str, Any]
"""A result as `farm results --json` has it under `summaries`."""
P90 = "p90"
TITLES = {
    "latency": "latency, median",
    P90: "latency, 90th percentile",
    "energy": "energy of one SAMPLE",
    "memory": "peak memory",
    "setup": "set-up until the first SAMPLE",
}
"""Words of the axis, where SAMPLE stands for what is timed; another quantity has its name there."""
SCALES = {"J": ("mJ", 1e3), "B": ("MiB", 2.0**-20)}
"""Units as a figure shows them."""


class Dot(NamedTuple):
    """One figure of a result, in the unit of the axis; without an interval its ends are the value."""

    of: Result
    value: float
    low: float
    high: float
    basis: str
    unit: str


class Drawn(NamedTuple):
    """`caption` says what is seen, for the file's metadata."""

    figure: Figure
    caption: str


def draw(results: Sequence[Result], metric: str, title: str = "") -> Drawn:
    """Group results by device and configuration, and colour backends.

    `metric`: a quantity as results tell it (`generated tokens`), also with its basis (`memory process`), or `p90`.
    Raises UnknownName where no result has it, NoData where none tells it.
    """
    name = metric.replace("_", " ").strip()
    shown = [dot for each in results if (dot := _dot(each, name)) is not None]
    untold = [each["not_resolved"] for one in results for each in _untold(one) if _told(each, name)]
    if not shown:
        known = dict.fromkeys(each["metric"] for one in results for each in _figures(one))
        there = f"there are: {', '.join(known) or 'none'}"
        if untold:
            raise NoData(f"no result tells {metric!r}: {'; '.join(dict.fromkeys(untold))}", remedy=there)
        raise UnknownName(f"no result has the figure {metric!r}", remedy=there)
    title, lines = cleaned(title), [cleaned(each) for each in _names([dot.of for dot in shown])]
    places = list(dict.fromkeys(lines))
    backends = list(dict.fromkeys(str(dot.of["backend"]) for dot in shown))
    foreign = (each for each in backends if each not in BACKENDS)
    colours = BACKENDS | {name: FOREIGN[number % len(FOREIGN)] for number, name in enumerate(foreign)}
    axis = _axis(name, shown)
    with mpl.rc_context(_style()):
        figure = Figure(figsize=(WIDE_IN, HEAD_IN + ROW_IN * len(places) * max(1.0, 0.55 * len(backends))))
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for dot, line in zip(shown, lines, strict=True):
            backend = str(dot.of["backend"])
            aside = (backends.index(backend) - (len(backends) - 1) / 2) * BESIDE
            _draw(axes, dot, places.index(line) + aside, colours[backend])
        _finish(axes, shown, places)
        axes.set_xlabel(axis)
        handles = [Line2D([], [], marker="o", color=colours[each], label=each) for each in backends]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(backends))
        if title:
            axes.set_title(title)
    caption = _caption(f"{title}: {axis}" if title else axis, shown, len(untold))
    return Drawn(figure, f"{caption}{boxes([title, *places])}")


def _figures(of: Result) -> Iterator[dict[str, Any]]:
    """Every figure that is told and resolved; where an energy has two bases, first the one that results tell."""
    basis = str((of.get("energy_per_inference") or {}).get("basis", ""))
    told = sorted(of["quantities"], key=lambda each: not each["basis"].startswith(basis))
    yield from (each for each in told if each["value"] is not None)
    if (latency := of.get("latency")) and latency["p90_ms"] is not None:
        yield {"metric": P90, "basis": "", "unit": "ms", "value": latency["p90_ms"], "interval": None}


def _untold(of: Result) -> Iterator[dict[str, Any]]:
    """Every figure that is not told, with the words that tables have in its place or as a warning."""
    yield from (each for each in of["quantities"] if each["value"] is None)
    if (latency := of.get("latency")) and latency["p90_ms"] is None:
        own = next((each["not_resolved"] for each in of["quantities"] if each["metric"] == "latency"), None)
        why = own or f"{DoubtCode.MEAN_OF_RUNS}: {DoubtCode.MEAN_OF_RUNS.remedy}"
        yield {"metric": P90, "basis": "", "not_resolved": why}


def _dot(of: Result, name: str) -> Dot | None:
    for each in _figures(of):
        if _told(each, name):
            unit, scale = SCALES.get(each["unit"], (each["unit"], 1.0))
            ends = each["interval"] or {"low": each["value"], "high": each["value"]}
            return Dot(of, scale * each["value"], scale * ends["low"], scale * ends["high"], each["basis"], unit)
    return None


def save(drawn: Drawn, path: str | Path) -> Path:
    """Write the figure in the format that the file's ending names. Raises Unsupported, SetupError."""
    file = Path(path)
    kind = file.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise Unsupported(
            f"{file}: a figure is written as {', '.join(FORMATS)}", remedy=f"e.g. {file.stem or 'fig'}.pdf"
        )
    try:
        file.write_bytes(saved(drawn, kind))
    except OSError as e:
        raise SetupError(f"{file}: cannot be written: {e.strerror}", remedy="give another file with -o") from e
    return file


def saved(drawn: Drawn, kind: str) -> bytes:
    """The figure as a file of one of `FORMATS`, its caption in the metadata."""
    title, _, _ = drawn.caption.partition(". ")
    told = "Subject" if kind == "pdf" else "Description"
    made = io.BytesIO()
    with mpl.rc_context(_style()):
        drawn.figure.savefig(made, format=kind, dpi=DPI, metadata={"Title": title, told: drawn.caption})
    return made.getvalue()


def _style() -> dict[str, Any]:
    look = {name: INK.get(value, value) if isinstance(value, str) else value for name, value in STYLE.items()}
    return {**look, "pdf.fonttype": 42, "savefig.facecolor": "white"}


def _told(told: Mapping[str, Any], name: str) -> bool:
    return name.startswith(told["metric"]) and f"{told['metric']} {told['basis']} ".startswith(f"{name} ")


def _draw(axes: Axes, dot: Dot, y: float, colour: str) -> None:
    axes.plot([dot.low, dot.high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    hollow = str(dot.of["precision"]).startswith("fp16")
    axes.plot([dot.value], [y], "o", color=colour, markerfacecolor="white" if hollow else colour, markersize=4.5)


def _finish(axes: Axes, dots: Sequence[Dot], places: Sequence[str]) -> None:
    """Every interval is seen as a whole: below zero, too."""
    low, high = min(dot.low for dot in dots), max(dot.high for dot in dots)
    if low > 0 and high / low > LOG_FROM:
        logarithmic(axes.xaxis)
    else:
        left, right = min(0.0, low), max(0.0, high) or 1.0
        margin = 0.03 * (right - left)
        axes.set_xlim(left - margin if left < 0 else 0.0, right + margin)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(length=0)


def _axis(name: str, dots: Sequence[Dot]) -> str:
    """Return what is seen, with the basis that figures have in common, and the unit."""
    metric = next((each for each in sorted(TITLES, key=len, reverse=True) if name.startswith(each)), name)
    bases = {dot.basis.partition(" ")[0] for dot in dots}
    basis = bases.pop() if len(bases) == 1 else ""
    sample = " or ".join(dict.fromkeys(str(dot.of.get("sample", "inference")) for dot in dots))
    title = TITLES.get(metric, name).replace("SAMPLE", sample)
    words = [title, f"({basis})" if basis and basis not in title.split() else ""]
    unit = dots[0].unit and (" per s" if dots[0].unit == "1/s" else f", {dots[0].unit}")
    return " ".join(filter(None, words)) + unit


def _names(results: Sequence[Result]) -> list[str]:
    """Return each one's device, with what differs between configurations; a device is its model if that is enough."""
    models: dict[str, set[str]] = {}
    for each in results:
        models.setdefault(_model(each), set()).add(str(each["serial"]))
    cells = [_cell(each) for each in results]
    varied = [name for name in dict.fromkeys(chain(*cells)) if len({str(each.get(name)) for each in cells}) > 1]
    found = []
    for each, cell in zip(results, cells, strict=True):
        model, device = _model(each), str(each["serial"])
        named = model if len(models[model]) == 1 else f"{model} {device[-6:]}"
        virtual = "" if each["source"] == "phone" else f" ({each['source']})"
        words = ", ".join(_value(name, cell[name]) for name in varied if cell.get(name) is not None)
        found.append(f"{named}{virtual}" + (f"\n{words}" if words else ""))
    return found


def _cell(of: Result) -> dict[str, Any]:
    """Return what makes a configuration, but for its backend, which is a colour."""
    return {"network": of["workload"], "engine": of["engine"], "precision": of["precision"], **of["options"]}


def _model(of: Result) -> str:
    name = short_name(str(of["model"] or of["serial"]))
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _value(name: str, value: object) -> str:
    text = str(value) if name in ("network", "engine", "precision") else f"{name}={value}"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _caption(head: str, dots: Sequence[Dot], missing: int) -> str:
    sources = ", ".join(sorted({str(dot.of["source"]) for dot in dots}))
    blocks = sorted({int(dot.of["outcomes"].get("ok", 0)) for dot in dots})
    of = f" of {f'{blocks[0]} to ' if len(blocks) > 1 else ''}{counted(blocks[-1], 'block')}"
    lines = "; a line is its interval as `farm results` tells it" if any(dot.low < dot.high for dot in dots) else ""
    hollow = "; hollow: fp16" if any(str(dot.of["precision"]).startswith("fp16") for dot in dots) else ""
    left_out = f"; {missing} without a figure are left out" if missing else ""
    return f"{head}. A dot is the figure{of} on one device{lines}{hollow}{left_out}. Measured on: {sources}."
