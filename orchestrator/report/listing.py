"""Print rows on a terminal of any width: in columns where there is room, else cell below cell.

No line is longer than the terminal is wide, no figure is cut, and a word is broken only where it is longer than a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

GAP, INDENT = 2, 2
Cell: TypeAlias = Text | str
"""A string is markup of rich."""
Row: TypeAlias = Sequence[Cell] | Text
"""A cell for each column; or a heading over the rows that follow."""


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
        cells = [row if isinstance(row, Text) else [_text(cell) for cell in row] for row in rows]
        used = [i for i in range(len(heads)) if any(row[i].plain for row in cells if not isinstance(row, Text))]
        self._heads = [heads[i] for i in used]
        self._rows: list[Text | list[Text]] = [
            row if isinstance(row, Text) else [row[i] for i in used] for row in cells
        ]
        self._header = header and any(head.name for head in self._heads)
        self._header_style, self._indent = header_style, indent
        self._by_first = by_first and 0 in used

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        widths = self._widths(room)
        if widths is None and self._by_first:
            yield self._grouped()
        elif self._rows:
            yield Text("\n").join(self._table(console, widths, room) if widths else self._records(console, room))

    def _grouped(self) -> Listing:
        """The same without the first column."""
        plain = [row for row in self._rows if not isinstance(row, Text)]
        rows: list[Row] = []
        for title, own in groupby(plain, key=lambda row: row[0].plain):
            rows += [Text(title, style="bold"), *(row[1:] for row in own)]
        style = self._header_style
        return Listing(self._heads[1:], rows, header=self._header, header_style=style, indent=self._indent + INDENT)

    def _widths(self, room: int) -> list[int] | None:
        """The width of each column; None where not every word would be whole."""
        least, natural = [], []
        for i, head in enumerate(self._heads):
            own = [row[i] for row in self._rows if not isinstance(row, Text)] + [Text(head.name)] * self._header
            wide = [cell_len(line) for cell in own for line in cell.plain.split("\n")]
            words = [cell_len(word) for cell in own for word in cell.plain.split()]
            natural.append(max(wide, default=0))
            least.append(natural[-1] if head.figure else max(words, default=0))
        left = room - self._indent - sum(least) - GAP * (len(least) - 1)
        if left < 0:
            return None
        widths = list(least)
        while left > 0 and (short := [i for i in range(len(widths)) if widths[i] < natural[i]]):
            widths[max(short, key=lambda i: natural[i] / widths[i])] += 1
            left -= 1
        return widths

    def _table(self, console: Console, widths: list[int], room: int) -> Iterator[Text]:
        if self._header:
            names = [Text(head.name, style=self._header_style) for head in self._heads]
            yield from self._lines(console, names, widths)
        for row in self._rows:
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

    def _records(self, console: Console, room: int) -> Iterator[Text]:
        """A line for the first column, and one for each other that has something to say."""
        for row in self._rows:
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
        """On one line; or the name, and the cell below it."""
        indent = self._indent + INDENT
        line = _indented(Text().append_text(name).append_text(cell), indent)
        if cell_len(line.plain) <= room and "\n" not in line.plain:
            yield line
            return
        if name.plain:
            name.rstrip()
            yield _indented(name, indent)
        yield from _hanging(console, _indented(cell, indent + (INDENT if name.plain else 0)), room)


def _indented(text: Text, indent: int) -> Text:
    return Text(" " * indent).append_text(text)


def _hanging(console: Console, line: Text, room: int) -> Iterator[Text]:
    """A line whose continuations stand where its words begin."""
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    for each in line[indent:].wrap(console, max(1, room - indent)):
        each.rstrip()
        yield Text(" " * indent).append_text(each)


def _text(cell: Cell) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text.from_markup(cell)
