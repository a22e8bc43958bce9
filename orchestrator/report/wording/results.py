"""The words of a result on its blocks, its device and its doubts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orchestrator.model.device import Source
from orchestrator.model.record import Outcome

from .intervals import figure
from .names import short_name
from .quantities import ms

if TYPE_CHECKING:
    from orchestrator.analysis.statistics import SetupUse, Summary
    from orchestrator.figures import BlockFigures
    from orchestrator.report.content import DoubtCount

UNREAL = {
    Source.VIRTUAL: "VIRTUAL",
    Source.REPLAY: "REPLAY",
    Source.IMPORT: "IMPORT",
}


MOST_REASONS = 2


def usable(void: str, cautions: Sequence[str], most: int = MOST_REASONS) -> str:
    """`usable`, `usable with care` or `not usable`, and why in a few words. `void`: why nothing of it can be used."""
    if void:
        return f"not usable: {void}"
    more = f"; and {len(cautions) - most} more" if len(cautions) > most else ""
    return f"usable with care: {'; '.join(cautions[:most])}{more}" if cautions else "usable"


def device(of: Summary | BlockFigures) -> str:
    """The serial of a device, with its source in capitals where it is no device's own."""
    word = source_word(of.source)
    return f"{of.serial} {word}" if word.isupper() else of.serial


def source_word(source: Source) -> str:
    """`phone`, `workstation`; in capitals what is neither."""
    return UNREAL.get(source, source.value)


def unreal_note(sources: Iterable[Source]) -> str:
    """Say what belongs above results of phones that are none; empty where there are none of these."""
    names = " and ".join(UNREAL[each] for each in (Source.VIRTUAL, Source.REPLAY) if each in sources)
    return f"{names} results: they show how the farm works, not how fast a phone is." if names else ""


def instead(summary: Summary) -> str:
    """Return what stands where a cell has no latency: `185 frames/s`, `layers only`, `none`."""
    if (of := summary.throughput) is not None:
        text, _ = figure(of.frames_per_s, of.interval_per_s, of.unresolved, "1/s")
        return text if of.unresolved else f"{text} frames/s"
    return "none" if summary.device_ms is None else "layers only"


def setup(uses: Sequence[SetupUse]) -> str:
    """`853 warm, 268 cached`: the set-up in ms by state; without a word where nothing is compiled."""
    return ", ".join(f"{ms(use.total_ms)} {use.kind if use.kind != 'none' else ''}".rstrip() for use in uses)


def driver(summary: Summary) -> str:
    """Driver and device that really ran, short enough for a table."""
    if summary.runs_on is None:
        return ""
    facts = summary.runs_on.facts
    software, hardware = short_name(facts.driver or facts.version), short_name(facts.device_name)
    if hardware.split(" ")[0] in software:
        hardware = ""
    count = summary.runs_on.threads
    threads = f"{count} thread{'s' if count > 1 else ''}" if count else ""
    return " · ".join(dict.fromkeys(filter(None, (software, hardware, threads))))


def ran_on(summaries: Iterable[Summary]) -> list[str]:
    """Return what cells ran on, a line for each backend: `opencl: PoCL 3.1 · Intel Xeon`."""
    found: dict[str, dict[str, None]] = {}
    for summary in summaries:
        if words := driver(summary):
            found.setdefault(summary.backend, {})[words] = None
    return [f"{backend}: {'; '.join(words)}" for backend, words in found.items()]


def blocks(summary: Summary) -> str:
    """Blocks that went well of those with a record, e.g. `3/3`."""
    return f"{summary.outcomes.get(Outcome.OK, 0)}/{summary.blocks}"


def not_ok(summary: Summary) -> str:
    """Blocks that did not go well, by outcome: `2 failed, 1 lost`."""
    return outcomes({outcome.value: n for outcome, n in summary.outcomes.items() if outcome is not Outcome.OK})


def outcomes(counts: dict[str, int]) -> str:
    """`12 ok, 1 failed`; empty outcomes are left out."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no job"


def doubt_numbers(summary: Summary, doubts: Sequence[DoubtCount]) -> list[int]:
    """The doubts of a result as numbers in the list of all doubts, from 1."""
    own = {doubt.code for doubt in summary.doubts}
    return [number for number, doubt in enumerate(doubts, 1) if doubt.code in own]


def common_doubts(doubts: Sequence[DoubtCount], results: int) -> list[int]:
    """Numbers of the doubts that every one of several results has: said once, and not in every row."""
    return [number for number, doubt in enumerate(doubts, 1) if doubt.results == results > 1]
