"""A table of one time column and one of power, or of current and voltage: what meters' and plain files share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from orchestrator.exchange.delimited_table import Table, cell
from orchestrator.model import telemetry
from orchestrator.model.errors import TableError

from .blocks import NotPlain, blocks, without_units
from .dates import ALLOWED, DateForm, all_seconds, form_of, over_midnight, seconds
from .points import GPU_W, PHONE_W, Points, Series
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode, recorded
from .time_base import time_unit
from .units import QUANTITIES, parse_title, quantity_of, with_units

_SCALAR = re.compile(r"^np\.\w+\((.*)\)$")
_SEEMS_DATE = re.compile(r":|\d[-/.]\d+[-/.]\d")
_BEHIND = re.compile(r"^[-+]?[\d.,]+(?:[eE][-+]?\d+)?\s*([a-zA-Zµμ]+)$")


NO_READING = re.compile(
    r"(?i)[-+[(<\s]*(nan|[+-]?inf|infinity|n/?a|not .*|null|none|unknown.*|overload|ol|err.*)?[])>.\s-]*"
)
"""The texts that instruments' programs write where they have no reading."""
ENDS = np.array(sorted(telemetry.MARKS), dtype=np.float64)
FEWEST = 2
MOST_SEEN = 100_000
"""Rows of an odd table of which the figures are kept, to see marks of thousands."""
MOSTLY, FAR_APART = 0.6, 30.0
"""Share of fractions that have a third place; how much larger whole figures are, where a mark is one of thousands."""


@dataclass(frozen=True)
class Column:
    """A column by its place, with the factor to s, W, A or V."""

    index: int
    title: str
    factor: float
    found: str = ""
    """The unit of times that was found by the figures."""
    dates: DateForm | None = None
    """The form of times that are no numbers."""
    behind: str = ""
    """The unit that stands behind each figure."""

    @property
    def read_as(self) -> str:
        """The title of times, with the unit."""
        if self.dates is not None:
            return f"{self.title}, {self.dates.named}"
        unit = next(unit for unit, factor in QUANTITIES["time"].items() if factor == self.factor)
        return f"{self.title}, in {unit}"


def time_column(table: Table, line: int, index: int, title: str, told: Told) -> Column:
    """The column of times: dates, or numbers in the unit that is told, titled or found. Raises TableError."""
    first = _first_below(table, line, index)
    dates = form_of(first)
    if dates is None and _SEEMS_DATE.search(first):
        raise table.error(line, title, f"found {first!r}, allowed: {ALLOWED}")
    if dates is not None and told.time_unit is not None:
        raise table.error(line, title, f"its times are {dates.named}, which have no unit", "leave out --time-unit")
    if dates is not None:
        return Column(index, title, 1.0, dates=dates)
    unit, found = time_unit(table, line, index, parse_title(title), told.time_unit)
    return Column(index, title, QUANTITIES["time"][unit], unit if found else "")


@dataclass(frozen=True)
class Layout:
    """The layout of the figures: `parts` is one column of power, or current and voltage, or current at known volts."""

    header_line: int
    time: Column
    parts: tuple[Column, ...]
    volts: Callable[[Series], Series] | float | None = None
    """The factor of the only part, a current: at the times of the file, in s."""
    volts_named: str = ""
    also: tuple[Column, ...] = ()
    """Current and voltage, where the table has them beside the power."""

    @property
    def named(self) -> str:
        return " x ".join([*(part.title for part in self.parts), *([self.volts_named] if self.volts_named else [])])


def titles_at(table: Table, line: int, cells: list[str]) -> tuple[int, list[str]]:
    """The last line of the titles that begin here, and the titles, with the units that the row below may hold."""
    below = next(((at, row) for at, row in table.head() if at > line and any(row)), None)
    both = with_units(cells, below[1]) if below else None
    return (line, cells) if both is None or below is None else (below[0], both)


def unit_behind(table: Table, line: int, index: int) -> str:
    """The unit behind the first figure of a column, as in `65.2 W`; empty where it has none."""
    match = _BEHIND.match(_first_below(table, line, index))
    return match[1] if match else ""


def _first_below(table: Table, line: int, index: int) -> str:
    """The first cell of a column that is not empty; else nothing."""
    cells = (cell(cells, index) for at, cells in table.head() if at > line and any(cells) and not is_comment(cells))
    return next(filter(None, cells), "")


def read_columns(table: Table, layout: Layout, kind: str) -> Recording:
    """All rows below the titles. Rows without any figure are passed over. Raises TableError."""
    most_w = GPU_W if kind == "nvidia-smi" else PHONE_W
    try:
        points = _by_blocks(table, layout, most_w)
    except NotPlain:
        points = _by_rows(table, layout, most_w)
    recording = recorded(table.path, kind, layout.named, points, layout.time.read_as)
    if not layout.time.found:
        return recording
    detail = f"column {layout.time.title!r} names no unit: its times were read in {layout.time.found}"
    return recording.doubted(TraceDoubt(code=TraceDoubtCode.TIME_UNIT_FOUND, detail=detail, file=str(table.path)))


def _by_blocks(table: Table, layout: Layout, most_w: float = PHONE_W) -> Points:
    points = Points(most_w)
    wanted = (layout.time, *layout.parts)
    texts = {column.index: partial(all_seconds, form=column.dates) for column in wanted if column.dates}
    texts |= {each.index: partial(without_units, unit=each.behind, table=table) for each in wanted if each.behind}
    for figures in blocks(table, layout.header_line, [column.index for column in wanted], texts):
        t_s, *parts = (values * column.factor for values, column in zip(figures, wanted, strict=True))
        _check_marks(table, layout, parts)
        t_s = _going_on(layout.time, t_s, points)
        if len(t_s) and (t_s[0] < points.last_s or bool((np.diff(t_s) < 0).any())):
            raise NotPlain
        points.extend(t_s, _power(layout, t_s, parts))
    return points


def _by_rows(table: Table, layout: Layout, most_w: float = PHONE_W) -> Points:
    """Rows of no reading, by what the instrument's program writes then, are passed over and told; so are titles that
    come again, and a last row that was cut. Any other is an error."""
    points = Points(most_w)
    wanted = (layout.time, *layout.parts)
    titles, width = dict(table.head()).get(layout.header_line), table.width(layout.header_line)
    first: TableError | None = None
    odd: TableError | None = None
    cut = (0, "")
    seen: list[list[float]] = [[] for _ in layout.parts]
    for line, cells in table.rows():
        if line <= layout.header_line or not any(cells):
            continue
        if in_words(cells) == titles:
            points.skip(line, "the titles again")
            continue
        if is_comment(cells) and not is_title(in_words(cells)):
            continue
        if odd is not None:
            raise odd  # only the last row may be cut
        try:
            table.check_width(line, cells, width)
            t_s, *parts = (number(table, line, cells, column) for column in wanted)
        except TableError as e:
            first = first or e
            none = next(filter(NO_READING.fullmatch, (cell(cells, each.index) for each in wanted)), None)
            if none is None:
                odd, cut = _with_unit(table, line, cells, layout) or e, (line, ",".join(cells))
            else:
                points.skip(line, none)
            continue
        (t_s,) = _going_on(layout.time, np.array([t_s]), points).tolist()
        if t_s < points.last_s and layout.time.dates is not None:
            found, before = (layout.time.dates.text(each) for each in (t_s, points.last_s))
            remedy = "was the clock set back, as in autumn? write the offset into each row, or record in UTC"
            what = f"found {found} after {before}, allowed: times that do not fall"
            raise table.error(line, layout.time.title, what, remedy)
        if t_s < points.last_s:
            raise table.falling(line, layout.time.title, t_s / layout.time.factor, points.last_s / layout.time.factor)
        (power_w,) = _power(layout, np.array([t_s]), [np.array([part]) for part in parts])
        points.add(t_s, power_w)
        for own, part in zip(seen, parts if len(points) < MOST_SEEN else (), strict=False):
            own.append(part)
    if first is not None and len(points) < FEWEST:
        raise first
    if odd is not None:
        points.skip(*cut)
    _check_marks(table, layout, list(map(np.array, seen)))
    return points


def _check_marks(table: Table, layout: Layout, parts: Sequence[Series]) -> None:
    """Raise TableError where a mark of thousands was taken for that of a fraction: `1,446` follows `996`.

    Whole figures end below a thousand then, and those with a fraction have three places, and seem far smaller.
    """
    for part, column in zip(parts, layout.parts, strict=True):
        figures = np.round(np.abs(part / column.factor), 9)
        whole = figures == np.round(figures)
        small, large = figures[~whole], figures[whole & (figures > 0)]
        if not len(small) or not len(large) or max(small.max(), large.max()) >= 1000 or small.min() < 1:
            continue
        places = np.round(small * 1000, 5)
        in_three = (places == np.round(places)).all() and (places % 10 != 0).mean() >= MOSTLY
        if in_three and np.median(large) >= FAR_APART * np.median(small):
            what = f"figures from 1000 on seem to have a mark of thousands: {small[0]:.3f} beside {large[0]:g}"
            remedy = "export it without marks of thousands"
            raise table.error(layout.header_line, column.title, what, remedy)


def in_words(cells: Sequence[str]) -> list[str]:
    """A row without the mark of a comment."""
    first = cells[0].lstrip("# ")
    return [*([first] if first else []), *cells[1:]]


def is_title(cells: Sequence[str]) -> bool:
    """Return whether a row names a time, and a power or a current."""
    found = {quantity_of(parse_title(text)) for text in cells}
    return "time" in found and bool(found & {"power", "current"})


def _with_unit(table: Table, line: int, cells: Sequence[str], layout: Layout) -> TableError | None:
    """Return the error of a row that may change units, which nobody is to remove: words alone, or another unit."""
    own = f"save the rows from line {line} on as a file of their own, with its titles"
    if not any(re.match(r"[-+.,]?\d", text) for text in cells):
        return table.error(line, "", f"other titles or units begin: {', '.join(cells)}", own)
    for column in layout.parts:
        match = _BEHIND.match(text := cell(cells, column.index))
        if match and match[1] != column.behind:
            before = f"{column.behind!r}, as in the first row" if column.behind else "a number alone"
            return table.error(line, column.title, f"found {text!r}, allowed: {before}", "write all rows in one unit")
    return None


def _going_on(time: Column, t_s: Series, points: Points) -> Series:
    """Times of day over midnight; others as they are."""
    if time.dates is None or time.dates.day or not len(t_s):
        return t_s
    return over_midnight(t_s, points.last_s if len(points) else None)


def _power(layout: Layout, t_s: Series, parts: Sequence[Series]) -> Series:
    power = parts[0] * parts[1] if len(parts) == 2 else parts[0]
    if len(parts) == 2:  # a current flows at no voltage
        power = np.where((parts[1] <= 0) & (parts[0] != 0), np.nan, power)
    for part, column in zip(parts, layout.parts, strict=True):
        power = np.where(np.isin(np.round(part / column.factor, 6), ENDS), np.nan, power)
    if layout.volts is None:
        return power
    return power * (layout.volts if isinstance(layout.volts, float) else layout.volts(t_s))


def is_end(value: float) -> bool:
    """Return whether a figure is the end of an integer, which is no reading."""
    return bool(np.isin(value, ENDS))


def is_comment(cells: Sequence[str]) -> bool:
    return cells[0].startswith("#")


def number(table: Table, line: int, cells: Sequence[str], column: Column) -> float:
    """A figure in SI units; `np.float64(1.5)`, which PyMonsoon writes with newer NumPy versions, is 1.5."""
    text = cell(cells, column.index)
    if not text:
        raise table.error(line, column.title, "found nothing, allowed: a number")
    if column.dates is not None:
        at_s = seconds(text, column.dates)
        if at_s is None:
            what = f"found {text!r}, allowed: {column.dates.named} that exist, as in the first row"
            raise table.error(line, column.title, what)
        return at_s
    if column.behind:
        text = text.removesuffix(column.behind).rstrip()
    match = _SCALAR.match(text)
    return table.number(match[1] if match else text, line, column.title) * column.factor
