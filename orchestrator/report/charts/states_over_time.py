"""States over time of day, a row for each series, as an SVG file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from matplotlib.patches import Patch

from orchestrator.report.colours import PALETTE
from orchestrator.report.drawing import Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading

from .over_time import MOST_LINES, WIDTH_PX, Line, as_file, day, say_nothing, time_axis

ROW_PX, FRAME_PX = 20, 70
COLOURS = {"green": "#2da44e", "orange": "#e8590c", "red": "#d1453b", "blue": "#2f81f7"}
"""Colours by their names in dashboards' panels."""
GAP = 1.5
"""Steps without a value from which on a row is empty."""


def states_over_time(
    name: str,
    title: str,
    lines: Sequence[Line],
    words: Mapping[float, tuple[str, str]],
    events: Sequence[tuple[float, int]] = (),
    span: tuple[float, float] | None = None,
    width_px: float = WIDTH_PX,
) -> str:
    """`words`: of a value, what it means, and its colour as a panel calls it. `events`, `span`, `name` as in
    `over_time`. Of more rows than can be read the first are drawn, and the title says of how many.
    """
    shown = sorted(lines, key=lambda line: line.name)[:MOST_LINES]
    if len(shown) < len(lines):
        title = f"{title} ({len(shown)} of {len(lines)})"
    with style():
        figure = new_figure(width_px, FRAME_PX + ROW_PX * max(3, len(shown)))
        axes = figure.subplots()
        for row, line in enumerate(shown):
            for value, start, end in _runs(line):
                axes.barh(row, day(end) - day(start), left=day(start), height=0.7, color=_colour(words, value))
        time_axis(axes, events if shown else (), span, width_px)
        axes.set_yticks(range(len(shown)), [line.name for line in shown])
        axes.set_ylim(max(3, len(shown)) - 0.4, -0.6)
        if not shown:
            say_nothing(axes)
        bare(axes, grid="x")
        met = sorted({value for line in shown for value in line.values})
        keys = [Patch(color=_colour(words, value), label=words.get(value, (f"{value:g}",))[0]) for value in met]
        put_heading(figure, title, keys)
        return as_file(Chart(figure, name, title))


def _runs(line: Line) -> Iterator[tuple[float, float, float]]:
    """Value, begin and end of each stretch of one state without a gap. A value holds until the next one is due."""
    step = min((later - at for at, later in pairwise(line.at)), default=0.0)
    ends = [later if later - at <= GAP * step else at + step for at, later in pairwise(line.at)]
    ends += [at + step for at in line.at[-1:]]
    pieces, run = list(zip(line.values, line.at, ends, strict=True)), 0
    numbers = []
    for index, (value, start, _) in enumerate(pieces):
        run += index > 0 and (value != pieces[index - 1][0] or start > pieces[index - 1][2])
        numbers.append(run)
    for _, group in groupby(zip(numbers, pieces, strict=True), key=lambda each: each[0]):
        parts = [piece for _, piece in group]
        yield parts[0][0], parts[0][1], parts[-1][2]


def _colour(words: Mapping[float, tuple[str, str]], value: float) -> str:
    return COLOURS.get(words.get(value, ("", ""))[1], PALETTE[int(value) % len(PALETTE)])
