"""Chart of energy per inference by phone, with one panel for each source."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from orchestrator.analysis.statistics import EnergyPerInference, Figure, Interval, Summary
from orchestrator.report import wording
from orchestrator.report.colours import Colours
from orchestrator.report.drawing import MUTED, PAGE, Chart, new_figure, style
from orchestrator.report.heading import put_heading
from orchestrator.report.wording import EnergyRow

from . import rows as layout

UNITS = ((1.0, "J"), (1e3, "mJ"), (1e6, "µJ"))


def energy(summaries: Sequence[Summary]) -> list[Chart]:
    """One figure for each source, scope and kind of record."""
    names, colours = wording.naming(summaries), Colours.of(summaries)
    return [
        _panel(title, rows[: layout.MAX_ROWS], names, colours, f"energy{index}")
        for index, (title, rows) in enumerate(wording.energy_groups(summaries).items())
        if any(_is_told(row.use.reported) for row in rows)
    ]


def _is_told(reported: EnergyPerInference | None) -> bool:
    return reported is not None and reported.figure_j.value is not None


def _panel(title: str, found: Sequence[EnergyRow], names: wording.Naming, colours: Colours, name: str) -> Chart:
    known = [(row, reported.figure_j) for row in found if _is_told(reported := row.use.reported) and reported]
    largest = max(figure.value or 0.0 for _, figure in known)
    scale, unit = next(((s, unit) for s, unit in UNITS if largest * s >= 1), UNITS[-1])
    rows = layout.rows_of([row.summary for row, _ in known], names)
    with style():
        figure_ = new_figure(layout.WIDTH_PX, rows.height_px)
        axes = figure_.subplots()
        for (row, figure), y in zip(known, rows.positions, strict=True):
            _draw(axes, row, figure, y, scale, colours[row.summary])
        layout.label_rows(axes, rows)
        shown = [scale * v for _, f in known for v in (f.value, f.total and f.total.low, f.total and f.total.high) if v]
        zoomed = layout.zoom_axis(axes, [*shown, *(scale * v for row, _ in known for v in row.use.net_blocks_j)])
        bases = " or ".join(sorted({row.use.reported.basis for row, _ in known if row.use.reported}, reverse=True))
        sample = wording.sample(row.summary for row, _ in known)
        axes.set_xlabel(f"{bases} energy of one {sample}, {unit}{' (the axis does not begin at zero)' * zoomed}")
        put_heading(figure_, title, _keys(known, colours))
        return Chart(figure_, name, f"Energy of one {sample}: {title}")


def _draw(axes: Axes, row: EnergyRow, figure: Figure, y: float, scale: float, colour: str) -> None:
    for interval, width in ((figure.total, 1.0), (figure.within, 3.0)):
        assert interval is not None, "what is not told is left out"
        ends = [scale * interval.low, scale * interval.high]
        axes.plot(ends, [y, y], color=colour, linewidth=width, solid_capstyle="butt")
    points = [scale * value for value in row.use.net_blocks_j]
    axes.plot(points, [y] * len(points), "|", color=colour, alpha=0.6, markersize=8, markeredgewidth=1)
    assert figure.value is not None
    axes.plot(
        [scale * figure.value], [y], "o" if row.use.per_inference_j else "s", color=colour, markersize=6,
        markerfacecolor=colour if row.use.absolute else PAGE, markeredgewidth=1.5,
    )  # fmt: skip
    axes.annotate(
        wording.energy(row.use.reported)[0], (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
        textcoords="offset points", va="center", fontsize=8.5,
    )  # fmt: skip


def _interval_words(found: Sequence[Interval | None]) -> str:
    """Return words for the intervals' levels: 0 is that of one block, of which nobody knows how others differ."""
    least, most = (f(round(100 * each.level) for each in found if each) for f in (min, max))
    levels = f"{most}" if least == most else f"{least} to {most}"
    return f"{levels} % or more, on this device" if most else "of the one block"


def _keys(known: Sequence[tuple[EnergyRow, Figure]], colours: Colours) -> list[Line2D]:
    uses = [row.use for row, _ in known]
    shown = {colours.name(row.summary): colours[row.summary] for row, _ in known}
    keys = [Line2D([], [], marker="o", linestyle="", color=colour, label=name) for name, colour in shown.items()]
    if any(not use.absolute for use in uses):
        word = "hollow: gain not known, compare on this device only"
        keys.append(Line2D([], [], marker="o", linestyle="", color=MUTED, markerfacecolor=PAGE, label=word))
    if any(use.per_inference_j is None for use in uses):
        keys.append(Line2D([], [], marker="s", linestyle="", color=MUTED, label="square: gross, no block rested"))
    if any(use.net_blocks_j for use in uses):
        keys.append(Line2D([], [], marker="|", linestyle="", color=MUTED, markersize=8, label="one block"))
    keys.append(Line2D([], [], color=MUTED, linewidth=3, label=_interval_words([f.within for _, f in known])))
    keys.append(Line2D([], [], color=MUTED, linewidth=1, label="with the gain"))
    return keys
