"""Print rows on a terminal of any width: in columns where there is room, else cell below cell.

No line is longer than the terminal is wide, no figure is cut, and a word is broken only where it is longer than a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import StyleType
from rich.text import Text

from .section import Section, TwoLines

GAP, INDENT = 2, 2
SHOWN_ROWS = 40
DEVICE = "device"
"""Name of the first column of a part whose rows are grouped by it in a narrow terminal."""
MANY = 1000
"""The rows beyond which those that need no wrapping are put together as plain strings: rich takes 0.5 ms for one."""
Cell: TypeAlias = Text | str
"""A string is markup of rich."""


class Plain(NamedTuple):
    """A row of strings without markup, in one style: of many such rows rich is asked nothing."""

    cells: Sequence[str]
    style: StyleType = ""

    def texts(self) -> list[Text]:
        return [Text(cell, style=self.style) for cell in self.cells]


Row: TypeAlias = Sequence[Cell] | Text | Plain
"""A cell for each column; or a heading over the rows that follow."""
_Row: TypeAlias = list[Text] | Text | Plain
"""Plain ones only of printable characters: without tabs, ends of lines, or what would steer a terminal."""


class Head(NamedTuple):
    """A column's name. Figures stand to the right, and are never wrapped."""

    name: str
    figure: bool = False


class Listing:
    """Columns without a content are left out. Without `header` the first column names what stands in the others."""

    def __init__(
        self,
        columns: Sequence[Head | str],
        rows: Sequence[Row],
        *,
        header: bool = True,
        header_style: str = "bold",
        indent: int = 0,
        by_first: bool = False,
    ) -> None:
        """`indent`: of the rows, in columns of the terminal. `by_first`: where there is no room for all columns, the
        first becomes a heading over the rows in which it is the same."""
        heads = [Head(each) if isinstance(each, str) else each for each in columns]
        cells = list(map(_row, rows))
        used = [i for i in range(len(heads)) if any(_strings(row)[i] for row in cells if not isinstance(row, Text))]
        self._heads = [heads[i] for i in used]
        self._rows = cells if len(used) == len(heads) else [_columns(row, used) for row in cells]
        self._header = header and any(head.name for head in self._heads)
        self._header_style, self._indent = header_style, indent
        self._by_first = by_first and 0 in used

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        widths = self._widths(room)
        if len(self._rows) > MANY and widths and (flat := self._flat(console, widths)):
            yield from flat
            return
        listed = [row.texts() if isinstance(row, Plain) else row for row in self._rows]
        if widths is None and self._by_first:
            yield self._grouped(listed)
        elif listed:
            lines = self._table(console, listed, widths, room) if widths else self._records(console, listed, room)
            yield Text("\n").join(lines)

    def _grouped(self, listed: Iterable[Text | list[Text]]) -> Listing:
        """The same without the first column."""
        plain = [row for row in listed if not isinstance(row, Text)]
        rows: list[Row] = []
        for title, own in groupby(plain, key=lambda row: row[0].plain):
            rows += [Text(title, style="bold"), *(row[1:] for row in own)]
        style = self._header_style
        return Listing(self._heads[1:], rows, header=self._header, header_style=style, indent=self._indent + INDENT)

    def has_room(self, room: int) -> bool:
        """Return whether each row has one line."""
        natural = list(map(_widest, self._texts()))
        return self._indent + sum(natural) + GAP * (len(natural) - 1) <= room

    def _texts(self) -> list[tuple[str, ...]]:
        """Return the texts of each column, with its name."""
        table = [_strings(row) for row in self._rows if not isinstance(row, Text)]
        if self._header or not table:
            table.append([head.name * self._header for head in self._heads])
        return list(zip(*table, strict=True))

    def _widths(self, room: int) -> list[int] | None:
        """The width of each column; None where not every word would be whole."""
        columns = self._texts()
        natural = list(map(_widest, columns))
        if self._indent + sum(natural) + GAP * (len(natural) - 1) <= room:
            return natural
        least = [
            wide if head.figure else max((_wide(word) for cell in own for word in cell.split()), default=0)
            for own, wide, head in zip(columns, natural, self._heads, strict=True)
        ]
        left = room - self._indent - sum(least) - GAP * (len(least) - 1)
        if left < 0:
            return None
        widths = list(least)
        while left > 0 and (short := [i for i in range(len(widths)) if widths[i] < natural[i]]):
            widths[max(short, key=lambda i: natural[i] / widths[i])] += 1
            left -= 1
        return widths

    def _flat(self, console: Console, widths: list[int]) -> list[Segment]:
        """The lines of a table in which each cell has one line, and each row one style; none of another table."""
        heads: list[_Row] = [[Text(head.name, style=self._header_style) for head in self._heads]]
        found: list[Segment] = []
        for row in (heads if self._header else []) + self._rows:
            plain = _plain(row)
            if plain is None:
                return []
            pieces = []
            for cell, width, head in zip(plain.cells, widths, self._heads, strict=True):
                text = cell.rstrip()
                more = width - _wide(text)
                if more < 0:
                    return []
                pieces.append(" " * more + text if head.figure else text + " " * more)
            line = " " * self._indent + (" " * GAP).join(pieces).rstrip()
            found += [Segment(line, console.get_style(plain.style)), Segment.line()]
        return found

    def _table(
        self, console: Console, listed: Iterable[Text | list[Text]], widths: list[int], room: int
    ) -> Iterator[Text]:
        if self._header:
            names = [Text(head.name, style=self._header_style) for head in self._heads]
            yield from self._lines(console, names, widths)
        for row in listed:
            if isinstance(row, Text):
                yield from _hanging(console, row, room)
            else:
                yield from self._lines(console, row, widths)

    def _lines(self, console: Console, row: Sequence[Text], widths: list[int]) -> Iterator[Text]:
        wrapped = [cell.wrap(console, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(len(lines) for lines in wrapped)):
            line = Text(" " * self._indent)
            for lines, width, head in zip(wrapped, widths, self._heads, strict=True):
                piece = lines[number] if number < len(lines) else Text()
                piece.rstrip()
                blank = " " * (width - cell_len(piece.plain))
                line = line.append(blank).append_text(piece) if head.figure else line.append_text(piece).append(blank)
                line.append(" " * GAP)
            line.rstrip()
            yield line

    def _records(self, console: Console, listed: Iterable[Text | list[Text]], room: int) -> Iterator[Text]:
        """A line for the first column, and one for each other that has something to say."""
        for row in listed:
            if isinstance(row, Text):
                yield from _hanging(console, row, room)
                continue
            named = 2 if self._heads[0].figure else 1  # a number alone names nothing
            title = Text(" ").join(row[:named])
            title.stylize("bold")
            yield from _hanging(console, _indented(title, self._indent), room)
            for head, cell in list(zip(self._heads, row, strict=True))[named:]:
                if cell.plain:
                    name = Text(f"{head.name}: " if self._header and head.name else "", style="dim")
                    yield from self._named(console, name, cell, room)

    def _named(self, console: Console, name: Text, cell: Text, room: int) -> Iterator[Text]:
        """Yield name and cell on one line; or the name, and the cell below it."""
        indent = self._indent + INDENT
        line = _indented(Text().append_text(name).append_text(cell), indent)
        if cell_len(line.plain) <= room and "\n" not in line.plain:
            yield line
            return
        if name.plain:
            name.rstrip()
            yield _indented(name, indent)
        yield from _hanging(console, _indented(cell, indent + (INDENT if name.plain else 0)), room)


class Either:
    """Columns where each row has one line; else rows of two lines below titles. Words without room follow, by number.
    Of a name that is too long the middle is left out."""

    def __init__(self, columns: Listing, groups: Iterable[tuple[str, Iterable[TwoLines]]]) -> None:
        self._columns, self._groups = columns, groups

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room, below = options.max_width, dict[str, int]()
        if self._columns.has_room(room):
            yield self._columns
            return
        for title, rows in self._groups:
            yield from _hanging(console, Text(title, style="bold"), room)
            for row in rows:
                style = "yellow" if row.bad else ""
                yield Text(" " * INDENT + _shortened(row.name, room - INDENT), style=style)
                told = [row.figures, row.words]
                line = " " * 2 * INDENT + (" " * GAP).join(filter(None, told))
                if cell_len(line) > room:
                    told[1] = f"({below.setdefault(row.words, len(below) + 1)})"
                    line = " " * 2 * INDENT + (" " * GAP).join(filter(None, told))
                yield from _hanging(console, Text(line, style=style), room)
        for words, number in below.items():
            yield from _hanging(console, Text(f"({number}) {words}", style="dim"), room)


def _shortened(text: str, room: int) -> str:
    if _wide(text) <= room:
        return text
    head = (room - 1) // 2
    return f"{set_cell_size(text, head)}…{set_cell_size(text[::-1], room - 1 - head)[::-1]}"


def part(
    section: Section, most: int = SHOWN_ROWS, narrow: Iterable[tuple[str, Iterable[TwoLines]]] = ()
) -> RenderableType:
    """A part of the report; on a terminal long ones are cut. `narrow`: the same where a row has no room in a line."""
    shown = [index for index, column in enumerate(section.columns) if not column.page_only]
    heads = [Head(section.columns[index].name, section.columns[index].number) for index in shown]
    rows = [
        Plain([row[index] for index in shown], "yellow" if number in section.bad else "")
        for number, row in enumerate(section.rows[:most])
    ]
    parts: list[RenderableType] = [Text(section.title, style="italic")]
    if section.terminal_note:
        parts.append(Text(section.terminal_note, style="dim"))
    listing = Listing(heads, rows, header_style="dim", by_first=section.columns[0].name == DEVICE)
    parts.append(Either(listing, narrow) if narrow else listing)
    if len(section.rows) > most:
        parts.append(Text(f"... {len(section.rows) - most} more: farm report shows all"))
    return Group(*parts)


def _indented(text: Text, indent: int) -> Text:
    return Text(" " * indent).append_text(text)


def _hanging(console: Console, line: Text, room: int) -> Iterator[Text]:
    """A line whose continuations stand where its words begin."""
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    for each in line[indent:].wrap(console, max(1, room - indent)):
        each.rstrip()
        yield Text(" " * indent).append_text(each)


def _wide(text: str) -> int:
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def _widest(cells: Sequence[str]) -> int:
    joined = "".join(cells)
    if joined.isascii() and joined.isprintable():
        return max(map(len, cells))
    return max(_wide(line) for cell in cells for line in cell.split("\n"))


def _needs_rich(cell: Text) -> bool:
    return bool(cell.spans) or "\n" in cell.plain or "\t" in cell.plain


def _row(row: Row) -> _Row:
    if isinstance(row, Text):
        return row
    if isinstance(row, Plain):
        return row if all(map(str.isprintable, row.cells)) else row.texts()
    return list(map(_text, row))


def _strings(row: list[Text] | Plain) -> Sequence[str]:
    return row.cells if isinstance(row, Plain) else [cell.plain for cell in row]


def _columns(row: _Row, used: Sequence[int]) -> _Row:
    if isinstance(row, Plain):
        return Plain([row.cells[i] for i in used], row.style)
    return row if isinstance(row, Text) else [row[i] for i in used]


def _plain(row: _Row) -> Plain | None:
    """None of a row that needs rich."""
    if isinstance(row, Plain):
        return row
    if isinstance(row, Text) or any(map(_needs_rich, row)) or len({str(cell.style) for cell in row}) > 1:
        return None
    return Plain(_strings(row), row[0].style if row else "")


def _text(cell: Cell) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text.from_markup(cell)
