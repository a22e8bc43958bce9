"""Results as tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from orchestrator.analysis.statistics import Summary
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.foreign import cleaned
from orchestrator.model.record import Outcome

from . import wording
from .content import Content, DoubtCount
from .listing import Head, Listing, Row, part
from .parts import answer
from .parts import results as table
from .sections import SETUP, sections

SHOWN_EXCLUSIONS = 12
SVG_COLUMNS = 112
USABLE = {"usable": "bold green", "usable with care": "bold yellow", "not usable": "bold red"}


def render(content: Content, *, setup: bool = False) -> RenderableType:
    """The whole report: results, exclusions, doubts. `setup`: with the steps of set-up."""
    parts: list[RenderableType] = [_usable(content), heading(content), Text(), results(content)]
    parts.append(Text(wording.session_note(content.between_runs), style="dim"))
    found = sections(content)
    for section in found:
        if setup or section.name != SETUP:
            parts += [Text(), part(section)]
    if content.exclusions:
        parts += [Text(), exclusions(content.exclusions, {summary.serial for summary in content.summaries})]
    if content.doubts:
        parts += [Text(), doubts(content.doubts, len(content.summaries))]
    if not setup and any(section.name == SETUP for section in found):
        parts += [Text(), Text("set-up step by step: farm results --setup", style="dim")]
    if told := answer.closing(content):
        parts += [Text(), Text(told, style="bold")]
    return Group(*parts)


def _usable(content: Content) -> Text:
    """The first line: whether the results may be used, and why not."""
    word, colon, why = answer.usable(content).partition(":")
    return Text.assemble((word, USABLE[word]), f"{colon}{why}")


def as_svg(content: Content, title: str, width: int = SVG_COLUMNS) -> str:
    """The whole report as a drawing of a terminal window; it asks the network for nothing, fonts included."""
    console = Console(record=True, file=StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(render(content))
    svg = console.export_svg(title=title, unique_id="farm", theme=SVG_EXPORT_THEME)
    return cleaned(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def heading(content: Content) -> Text:
    text = Text()
    text.append(content.experiment.name, style="bold")
    text.append(f"  {content.experiment_id}  ", style="dim")
    text.append(wording.outcomes(content.outcomes))
    for style, lines in (("yellow", table.alerts(content)), ("dim", table.notes(content))):
        for line in lines:
            text.append(f"\n{line}", style=style)
    return text


def results(content: Content) -> RenderableType:
    """The configurations of each device below its name; warnings by their numbers in the list that follows."""
    rows: list[Row] = []
    for group in table.groups(content):
        told = [*group.notes, *([f"warnings: {_numbers(group.warnings)}"] if group.warnings else [])]
        rows += [_device(group.device), *(Text(f"  {line}", style="dim") for line in told), *map(_row, group.rows)]
    heads = [Head(column.name, column.number) for column in table.columns(content)]
    return Listing(heads, rows, header_style="dim", indent=2)


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _device(summary: Summary) -> Text:
    text = Text(summary.serial, style="bold")
    told = summary.profile and summary.profile not in summary.serial
    text.append(f" {summary.profile} " if told else " ", style="not bold")
    word = wording.source_word(summary.source)
    text.append(word, style="yellow" if word.isupper() else "not bold dim")
    return text


def _row(found: table.Row) -> Sequence[Text]:
    summary, latency = found.summary, found.summary.latency
    row = [Text(cell) for cell in (*found.texts, _numbers(found.warnings))]
    told = latency.median_ms is not None if latency else summary.throughput
    row[table.MEDIAN].stylize("bold" if told else "red" if summary.device_ms is None else "dim")
    if summary.outcomes.get(Outcome.OK, 0) < summary.blocks:
        row[table.BLOCKS].stylize("red")
    return row


def exclusions(found: Iterable[Exclusion], known: Iterable[str]) -> RenderableType:
    """Return what is excluded, and why; cells with the same reason are put together."""
    groups = wording.group_exclusions(found, known)
    rows = [[escape(text) for text in group] for group in groups[:SHOWN_EXCLUSIONS]]
    parts: list[RenderableType] = [
        Text("Excluded", style="italic"),
        Listing(("configurations", "devices", "reason"), rows, header_style="dim"),
    ]
    if len(groups) > SHOWN_EXCLUSIONS:
        parts.append(Text(f"... {len(groups) - SHOWN_EXCLUSIONS} more: farm report shows all"))
    return Group(*parts)


def doubts(found: Sequence[DoubtCount], results: int) -> RenderableType:
    """Return what may be wrong with the results, by number."""
    rows = [
        [str(number), doubt.code, "all" if doubt.results == results else str(doubt.results), escape(doubt.remedy)]
        for number, doubt in enumerate(found, 1)
    ]
    heads = (Head("", True), "warning", Head("results", True), "what to do")
    return Group(Text("Warnings", style="italic"), Listing(heads, rows, header_style="dim"))
