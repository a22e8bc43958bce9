"""Results as tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from orchestrator.matrix import Exclusion
from orchestrator.model.record import Outcome
from orchestrator.statistics import Summary

from . import wording
from .content import Content, DoubtCount
from .section import Section
from .sections import sections

SHOWN_EXCLUSIONS = 12
SHOWN_ROWS = 40
LAST_WIDTH = 30
"""Of the last column of a part, which is wrapped where it is longer."""
COLUMNS = ("", "ran on", "median ms", "95 % interval", "p90", "memory", "blocks", "doubts")
CELL, RAN_ON, MEDIAN, INTERVAL, P90, BLOCKS = 0, 1, 2, 3, 4, 6
RAN_ON_WIDTH, SHORT_RAN_ON = 40, 16
LONG_CELL = 34
"""Of a cell's name: longer ones are folded where the terminal is narrow, and what it ran on gives way."""
SVG_COLUMNS = 112


def render(content: Content) -> RenderableType:
    """The whole report: results, what was left out, what is doubtful."""
    parts: list[RenderableType] = [heading(content), Text(), *results(content.summaries, content.doubts)]
    for section in sections(content):
        parts += [Text(), part(section)]
    if content.exclusions:
        parts += [Text(), exclusions(content.exclusions, {summary.serial for summary in content.summaries})]
    if content.doubts:
        parts += [Text(), doubts(content.doubts)]
    return Group(*parts)


def as_svg(content: Content, title: str, width: int = SVG_COLUMNS) -> str:
    """The whole report as a drawing of a terminal window; it asks the network for nothing, fonts included."""
    console = Console(record=True, file=StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(render(content))
    svg = console.export_svg(title=title, unique_id="farm", theme=SVG_EXPORT_THEME)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def heading(content: Content) -> Text:
    text = Text()
    text.append(content.experiment.name, style="bold")
    text.append(f"  {content.experiment_id}  ", style="dim")
    text.append(wording.outcomes(content.outcomes))
    if content.unreal:
        words = " and ".join(wording.source_word(source) for source in content.unreal)
        text.append(f"\n{words} results: they show how the farm works, not how fast a phone is.", style="yellow")
    if shared := wording.naming(content.summaries).shared:
        text.append(f"\nevery cell: {' '.join(sorted(shared))}", style="dim")
    if content.imported:
        text.append(
            "\nIMPORT results: measured elsewhere, under conditions that the farm does not know.", style="yellow"
        )
    return text


def results(summaries: Sequence[Summary], doubts: Sequence[DoubtCount]) -> list[RenderableType]:
    """A table per device, all with the same widths; doubts by their numbers in the list that follows."""
    names = wording.naming(summaries)
    rows = [_row(summary, doubts, names) for summary in summaries]
    widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(COLUMNS)]
    widths[RAN_ON] = min(widths[RAN_ON], RAN_ON_WIDTH if widths[CELL] <= LONG_CELL else SHORT_RAN_ON)
    if all(summary.latency is None for summary in summaries):
        widths[INTERVAL] = widths[P90] = 0
    parts: list[RenderableType] = [_table([], widths, header=True)]
    for _, group in groupby(zip(summaries, rows, strict=True), key=lambda pair: pair[0].serial):
        own = list(group)
        parts += [_device(own[0][0]), _table(own, widths, header=False)]
    return parts


def _device(summary: Summary) -> Text:
    text = Text(summary.serial, style="bold")
    told = summary.profile and summary.profile not in summary.serial
    text.append(f" {summary.profile} " if told else " ", style="not bold")
    word = wording.source_word(summary.source)
    text.append(word, style="yellow" if word.isupper() else "not bold dim")
    return text


def _table(own: Sequence[tuple[Summary, list[str]]], widths: Sequence[int], *, header: bool) -> RenderableType:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), show_header=header)
    shown = [index for index, width in enumerate(widths) if width]
    for index in shown:
        name, width, shrinks = COLUMNS[index], widths[index], index <= RAN_ON
        table.add_column(  # a narrow terminal cuts what it ran on, and folds the names of cells, not the figures
            Text(name.ljust(width), no_wrap=True, overflow="crop") if shrinks else name,
            justify="left" if shrinks or index == len(COLUMNS) - 1 else "right",
            min_width=min(width, LONG_CELL if index == CELL else 12) if shrinks else width,
            max_width=width,
            style="dim" if index == RAN_ON else "",
            no_wrap=not shrinks,
        )
    for summary, row in own:
        cells = [Text(cell, no_wrap=index != CELL, overflow="ellipsis") for index, cell in enumerate(row)]
        told = summary.latency or summary.throughput
        cells[MEDIAN].stylize("bold" if told else "dim" if summary.layers else "red")
        if summary.outcomes.get(Outcome.OK, 0) < summary.blocks:
            cells[BLOCKS].stylize("red")
        table.add_row(*(cells[index] for index in shown))
    return Padding(table, (0, 0, 0, 2))


def _row(summary: Summary, doubts: Sequence[DoubtCount], names: wording.Naming) -> list[str]:
    latency = summary.latency
    return [
        wording.cell(summary, names),
        wording.driver(summary),
        wording.ms(latency.median_ms) if latency else wording.instead(summary),
        wording.interval(latency),
        wording.ms(latency.p90_ms) if latency else "",
        wording.memory_size(summary.memory.device_peak_bytes) if summary.memory else "",
        wording.blocks(summary),
        " ".join(map(str, wording.doubt_numbers(summary, doubts))),
    ]


def part(section: Section, most: int = SHOWN_ROWS) -> RenderableType:
    """A part of the report; on a terminal long ones are cut."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    shown = [index for index, column in enumerate(section.columns) if not column.page_only]
    for index in shown:
        column, last = section.columns[index], index == shown[-1]
        widest = max(len(column.name), *(len(row[index]) for row in section.rows))
        table.add_column(
            column.name,
            justify="right" if column.number else "left",
            overflow="fold",
            no_wrap=column.number and not last,  # a name is folded before a figure is cut
            min_width=min(widest, LAST_WIDTH) if last else widest if column.number else None,
        )
    for number, row in enumerate(section.rows[:most]):
        table.add_row(*(escape(row[index]) for index in shown), style="yellow" if number in section.bad else "")
    if len(section.rows) > most:
        table.add_row(f"... {len(section.rows) - most} more: farm report shows all")
    notes = [Text(section.note, style="dim")] if section.note_in_terminal else []
    return Group(Text(section.title, style="italic"), *notes, table)  # a table's own title is as narrow as the table


def exclusions(found: Iterable[Exclusion], known: Iterable[str]) -> RenderableType:
    """What was left out, and why; what has one reason is put together."""
    table = Table(box=None, header_style="dim", title="Left out", title_justify="left", padding=(0, 2, 0, 0))
    for column in ("combinations", "devices", "reason"):
        table.add_column(column, overflow="fold")
    groups = wording.group_exclusions(found, known)
    for group in groups[:SHOWN_EXCLUSIONS]:
        table.add_row(*(escape(text) for text in group))
    if len(groups) > SHOWN_EXCLUSIONS:
        table.add_row(f"... {len(groups) - SHOWN_EXCLUSIONS} more")
    return table


def doubts(found: Iterable[DoubtCount]) -> Table:
    """What may be wrong with the results, by number."""
    table = Table(box=None, header_style="dim", title="Doubts", title_justify="left", padding=(0, 2, 0, 0))
    table.add_column("", justify="right")
    for column in ("doubt", "results", "what to do"):
        table.add_column(column, overflow="fold")
    for number, doubt in enumerate(found, 1):
        table.add_row(str(number), doubt.code.value, str(doubt.results), doubt.remedy)
    return table
