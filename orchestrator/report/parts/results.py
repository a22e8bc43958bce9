"""The table of results as texts, a group for each device: the same for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from orchestrator.analysis.statistics import Summary, told_of
from orchestrator.report import wording
from orchestrator.report.content import Content
from orchestrator.report.section import Column

COLUMNS = (
    Column(""), Column("median ms", True), Column("interval", True), Column("p90", True), Column("memory", True),
    Column("blocks", True), Column("warnings"),
)  # fmt: skip
MEDIAN, BLOCKS = 1, 5
FIRST = Column("first ms", True)
"""The column of cold starts, whose set-up stands in a part of its own."""
IMPORTED = "IMPORT results: measured elsewhere, under conditions that the farm does not know."


class Row(NamedTuple):
    """One result: a text for each column, but for the numbers of its warnings."""

    summary: Summary
    texts: tuple[str, ...]
    warnings: list[int]
    """The numbers in the list of all warnings, from 1; without those that the notes tell."""


class Group(NamedTuple):
    """The results of one device, with what is true of all of them."""

    device: Summary
    """Any of its results: it names the device."""
    notes: list[str]
    warnings: list[int]
    rows: list[Row]


def columns(content: Content) -> list[Column]:
    """The heads of the table."""
    heads = list(COLUMNS)
    if content.experiment.sampling.mode == "cold":
        heads[MEDIAN] = FIRST
    return heads


def alerts(content: Content) -> list[str]:
    """Lines above the table that say that figures are not a phone's own."""
    return [line for line in (wording.unreal_note(content.unreal), IMPORTED if content.imported else "") if line]


def notes(content: Content) -> list[str]:
    """Lines above the table: what is true of all results."""
    summaries = content.summaries
    shared = wording.naming(summaries).shared
    common = [f"{n} {each.code}" for n, each in enumerate(content.doubts, 1) if each.results == len(summaries)]
    lines = (
        f"every configuration: {' '.join(sorted(shared))}" if shared else "",
        *(f"ran on {line}" for line in _ran_everywhere_on(summaries)),
        wording.interval_note(summaries),
        f"warnings of every result: {', '.join(common)}" if common else "",
    )
    return [line for line in lines if line]


def groups(content: Content) -> list[Group]:
    """The results by device. What holds for all of a device stands in its notes, and what holds for all devices in
    the notes above the table."""
    summaries, doubts = content.summaries, content.doubts
    names, everywhere = wording.naming(summaries), _ran_everywhere_on(summaries)
    found = []
    for _, group in groupby(summaries, key=lambda summary: summary.serial):
        own = list(group)
        numbers = [set(wording.doubt_numbers(summary, doubts)) for summary in own]
        common = set.intersection(*numbers)
        ran_on = [line for line in wording.ran_on(own) if line not in everywhere]
        some = [n for n in sorted(common) if doubts[n - 1].results < len(summaries)]
        rows = [Row(one, _texts(one, names), sorted(each - common)) for one, each in zip(own, numbers, strict=True)]
        found.append(Group(own[0], ran_on, some, rows))
    return found


def _texts(summary: Summary, names: wording.Naming) -> tuple[str, ...]:
    latency, memory = summary.latency, summary.memory
    return (
        wording.cell(summary, names),
        *(_median(summary) if latency else (wording.instead(summary), "")),
        wording.ms(latency.p90_ms) if latency else "",
        wording.memory_size(memory.device_peak_bytes) if memory else "",
        wording.blocks(summary),
    )


def _median(summary: Summary) -> tuple[str, str]:
    """The median and its interval, or what stands in their place."""
    return next((wording.told(told) for told in told_of(summary) if told.metric == "latency"), ("", ""))


def _ran_everywhere_on(summaries: Sequence[Summary]) -> list[str]:
    """Return what stands below no device's name, because it is the same on all that have the backend."""
    devices = [list(own) for _, own in groupby(summaries, key=lambda summary: summary.serial)]
    told = [set(wording.ran_on(own)) for own in devices]
    return [line for line in wording.ran_on(summaries) if all(line in each or not _has(line, each) for each in told)]


def _has(line: str, lines: Iterable[str]) -> bool:
    """Tell whether one of the lines is of the same backend."""
    return any(each.partition(":")[0] == line.partition(":")[0] for each in lines)
