"""Results as tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from orchestrator.analysis.statistics import Summary, told_of
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.record import Outcome

from . import wording
from .content import Content, DoubtCount
from .listing import Head, Listing, Row, part
from .parts import answer
from .sections import SETUP, sections

SHOWN_EXCLUSIONS = 12
COLUMNS = (
    Head(""), Head("median ms", True), Head("interval", True), Head("p90", True), Head("memory", True),
    Head("blocks", True), Head("warnings"),
)  # fmt: skip
MEDIAN, BLOCKS = 1, 5
FIRST = Head("first ms", True)
"""Of cold starts, whose set-up stands in a part of its own."""
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
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def heading(content: Content) -> Text:
    text = Text()
    text.append(content.experiment.name, style="bold")
    text.append(f"  {content.experiment_id}  ", style="dim")
    text.append(wording.outcomes(content.outcomes))
    if unreal := wording.unreal_note(content.unreal):
        text.append(f"\n{unreal}", style="yellow")
    if shared := wording.naming(content.summaries).shared:
        text.append(f"\nevery configuration: {' '.join(sorted(shared))}", style="dim")
    if content.imported:
        text.append(
            "\nIMPORT results: measured elsewhere, under conditions that the farm does not know.", style="yellow"
        )
    for line in _ran_everywhere_on(content.summaries):
        text.append(f"\nran on {line}", style="dim")
    if note := wording.interval_note(content.summaries):
        text.append(f"\n{note}", style="dim")
    results = len(content.summaries)
    if common := [f"{n} {each.code}" for n, each in enumerate(content.doubts, 1) if each.results == results]:
        text.append(f"\nwarnings of every result: {', '.join(common)}", style="dim")
    return text


def results(content: Content) -> RenderableType:
    """The cells of each device below its name; doubts by their numbers in the list that follows.

    What holds for all cells of a device stands below its name, and what holds for all results above the table.
    """
    summaries, doubts = content.summaries, content.doubts
    names, everywhere = wording.naming(summaries), _ran_everywhere_on(summaries)
    rows: list[Row] = []
    for _, group in groupby(summaries, key=lambda summary: summary.serial):
        own = list(group)
        numbers = [set(wording.doubt_numbers(summary, doubts)) for summary in own]
        common = set.intersection(*numbers)
        told = [line for line in wording.ran_on(own) if line not in everywhere]
        if some := [n for n in sorted(common) if doubts[n - 1].results < len(summaries)]:
            told.append(f"warnings: {_numbers(some)}")
        rows += [_device(own[0]), *(Text(f"  {line}", style="dim") for line in told)]
        rows += [_row(summary, sorted(each - common), names) for summary, each in zip(own, numbers, strict=True)]
    heads = list(COLUMNS)
    if content.experiment.sampling.mode == "cold":
        heads[MEDIAN] = FIRST
    return Listing(heads, rows, header_style="dim", indent=2)


def _ran_everywhere_on(summaries: Sequence[Summary]) -> list[str]:
    """What stands below no device's name, because it is the same on all that have the backend."""
    devices = [list(own) for _, own in groupby(summaries, key=lambda summary: summary.serial)]
    told = [set(wording.ran_on(own)) for own in devices]
    return [line for line in wording.ran_on(summaries) if all(line in each or not _has(line, each) for each in told)]


def _has(line: str, lines: Iterable[str]) -> bool:
    """Whether one of the lines is of the same backend."""
    return any(each.partition(":")[0] == line.partition(":")[0] for each in lines)


def _numbers(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _device(summary: Summary) -> Text:
    text = Text(summary.serial, style="bold")
    told = summary.profile and summary.profile not in summary.serial
    text.append(f" {summary.profile} " if told else " ", style="not bold")
    word = wording.source_word(summary.source)
    text.append(word, style="yellow" if word.isupper() else "not bold dim")
    return text


def _row(summary: Summary, doubts: Sequence[int], names: wording.Naming) -> Sequence[Text]:
    latency, memory = summary.latency, summary.memory
    cells = [
        wording.cell(summary, names),
        *(_texts(summary) if latency else (wording.instead(summary), "")),
        wording.ms(latency.p90_ms) if latency else "",
        wording.memory_size(memory.device_peak_bytes) if memory else "",
        wording.blocks(summary),
        _numbers(doubts),
    ]
    row = [Text(cell) for cell in cells]
    told = latency.median_ms is not None if latency else summary.throughput
    row[MEDIAN].stylize("bold" if told else "red" if summary.device_ms is None else "dim")
    if summary.outcomes.get(Outcome.OK, 0) < summary.blocks:
        row[BLOCKS].stylize("red")
    return row


def _texts(summary: Summary) -> tuple[str, str]:
    """The median and its interval, or what stands in their place."""
    return next((wording.told(told) for told in told_of(summary) if told.metric == "latency"), ("", ""))


def exclusions(found: Iterable[Exclusion], known: Iterable[str]) -> RenderableType:
    """What is excluded, and why; cells with the same reason are put together."""
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
    """What may be wrong with the results, by number."""
    rows = [
        [str(number), doubt.code.value, "all" if doubt.results == results else str(doubt.results), escape(doubt.remedy)]
        for number, doubt in enumerate(found, 1)
    ]
    heads = (Head("", True), "warning", Head("results", True), "what to do")
    return Group(Text("Warnings", style="italic"), Listing(heads, rows, header_style="dim"))
