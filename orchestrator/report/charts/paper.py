"""One figure of an experiment for a paper or a notebook: a dot for each result, with its whole interval."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orchestrator.model.errors import SetupError, UnknownName, Unsupported
from orchestrator.report.colours import BACKENDS, FOREIGN
from orchestrator.report.drawing import FOREGROUND, GRID, MUTED, STYLE, logarithmic
from orchestrator.report.wording import short_name

FORMATS = ("pdf", "svg", "png")
INK = {FOREGROUND: "#000000", MUTED: "#333333", GRID: "#cccccc"}
"""The colours on paper of a page's placeholders."""
WIDE_IN, HEAD_IN, ROW_IN, BESIDE = 6.5, 1.0, 0.3, 0.16
"""Inches: the width of a page's text, above and below the rows, a row; beside each other, backends are so far apart."""
LOG_FROM = 20.0
LONGEST = 34
DPI = 300

Row = Mapping[str, Any]
"""A result as the notebook's table has it."""


class Quantity(NamedTuple):
    """A column of results as a figure shows it."""

    column: str
    title: str
    unit: str
    scale: float = 1.0
    ends: tuple[str, str] | None = None


QUANTITIES = {
    "latency": Quantity("median_ms", "latency of one inference, median", "ms", ends=("low_ms", "high_ms")),
    "p90": Quantity("p90_ms", "latency of one inference, 90th percentile", "ms"),
    "energy": Quantity("energy_j", "energy of one inference", "mJ", 1e3, ("low_j", "high_j")),
    "memory": Quantity("device_peak_bytes", "peak memory of the device", "MiB", 2.0**-20),
    "setup": Quantity("setup_ms", "set-up until the first inference", "ms"),
    "throughput": Quantity("frames_per_s", "throughput", "frames/s"),
}
"""Quantities by the name that a person gives them."""
NOT_A_CELL = {"device", "source", "model", "backend", "energy_basis", "blocks", "doubts"} | {
    name for each in QUANTITIES.values() for name in (each.column, *(each.ends or ()))
}


class Drawn(NamedTuple):
    """`caption` says what is seen, for the file's metadata."""

    figure: Figure
    caption: str


def draw(rows: Sequence[Row], metric: str, title: str = "") -> Drawn:
    """Group rows by device and configuration, and colour backends. Raises UnknownName where no row has the metric."""
    known = [name for name, each in QUANTITIES.items() if any(_is_number(row.get(each.column)) for row in rows)]
    found = next((QUANTITIES[n] for n in known if metric in (n, QUANTITIES[n].column)), None)
    if found is None:
        raise UnknownName(f"no result has a {metric}", remedy=f"there are: {', '.join(known) or 'none'}")
    shown = [row for row in rows if _is_number(row.get(found.column))]
    lines = _names(shown)
    places = list(dict.fromkeys(lines))
    backends = list(dict.fromkeys(str(row["backend"]) for row in shown))
    foreign = (each for each in backends if each not in BACKENDS)
    colours = BACKENDS | {name: FOREIGN[number % len(FOREIGN)] for number, name in enumerate(foreign)}
    with mpl.rc_context(_style()):
        figure = Figure(figsize=(WIDE_IN, HEAD_IN + ROW_IN * len(places) * max(1.0, 0.55 * len(backends))))
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for number, row in enumerate(shown):
            aside = (backends.index(str(row["backend"])) - (len(backends) - 1) / 2) * BESIDE
            _draw(axes, found, row, places.index(lines[number]) + aside, colours[str(row["backend"])])
        _finish(axes, found, shown, places)
        handles = [Line2D([], [], marker="o", color=colours[each], label=each) for each in backends]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(backends))
        if title:
            axes.set_title(title)
    return Drawn(figure, _caption(found, shown, title))


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


def _draw(axes: Axes, of: Quantity, row: Row, y: float, colour: str) -> None:
    value = of.scale * row[of.column]
    low, high = _ends(of, row)
    axes.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    hollow = str(row.get("precision", "")).startswith("fp16")
    axes.plot([value], [y], "o", color=colour, markerfacecolor="white" if hollow else colour, markersize=4.5)


def _ends(of: Quantity, row: Row) -> tuple[float, float]:
    found = [row[name] for name in of.ends or () if _is_number(row.get(name))]
    low, high = found if len(found) == 2 else (row[of.column], row[of.column])
    return of.scale * low, of.scale * high


def _finish(axes: Axes, of: Quantity, rows: Sequence[Row], places: Sequence[str]) -> None:
    """Every interval is seen as a whole: below zero, too."""
    lows, highs = zip(*(_ends(of, row) for row in rows), strict=True)
    if min(lows) > 0 and max(highs) / min(lows) > LOG_FROM:
        logarithmic(axes.xaxis)
    else:
        left, right = min(0.0, *lows), max(0.0, *highs) or 1.0
        margin = 0.03 * (right - left)
        axes.set_xlim(left - margin if left < 0 else 0.0, right + margin)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(length=0)
    axes.set_xlabel(_axis(of, rows))


def _axis(of: Quantity, rows: Sequence[Row]) -> str:
    bases = {row["energy_basis"] for row in rows} if of.column == "energy_j" and "energy_basis" in rows[0] else set()
    basis = f"{bases.pop()} " if len(bases) == 1 else ""
    return f"{basis}{of.title}, {of.unit}"


def _names(rows: Sequence[Row]) -> list[str]:
    """Return each row's device, with what differs between configurations; a device is its model if that is enough."""
    models: dict[str, set[str]] = {}
    for row in rows:
        models.setdefault(_model(row), set()).add(str(row["device"]))
    varied = [name for name in rows[0] if name not in NOT_A_CELL and len({str(row.get(name)) for row in rows}) > 1]
    found = []
    for row in rows:
        model, device = _model(row), str(row["device"])
        named = model if len(models[model]) == 1 else f"{model} {device[-6:]}"
        virtual = "" if row.get("source") in ("phone", None) else f" ({row['source']})"
        cell = ", ".join(_value(row, name) for name in varied if _value(row, name))
        found.append(f"{named}{virtual}" + (f"\n{cell}" if cell else ""))
    return found


def _model(row: Row) -> str:
    name = short_name(str(row.get("model") or row["device"]))
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _value(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None or value != value:
        return ""
    return str(value) if name in ("network", "precision") else f"{name}={value}"


def _caption(of: Quantity, rows: Sequence[Row], title: str) -> str:
    sources = ", ".join(sorted({str(row.get("source", "phone")) for row in rows}))
    blocks = sorted({int(row["blocks"]) for row in rows if _is_number(row.get("blocks"))})
    counted = f" of {blocks[0]}" + (f" to {blocks[-1]}" if len(blocks) > 1 else "") + " blocks" if blocks else ""
    lines = "; a line is its interval as `farm results` tells it" if of.ends else ""
    hollow = "; hollow: fp16" if any(str(row.get("precision", "")).startswith("fp16") for row in rows) else ""
    head = f"{title}: {_axis(of, rows)}" if title else _axis(of, rows)
    return f"{head}. A dot is the figure{counted} on one device{lines}{hollow}. Measured on: {sources}."


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")
