"""The first and last words: whether results may be used, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from orchestrator.analysis.comparison.backends import SideBySide, side_by_side
from orchestrator.analysis.comparison.cell_blocks import Ratio
from orchestrator.analysis.statistics import Summary, Verdict, told_of
from orchestrator.model.device import OURS, Api
from orchestrator.report import wording
from orchestrator.report.content import Content

NAMES = {Api.OPENCL: "OpenCL", Api.VULKAN: "Vulkan", Api.CPU: "CPU"}
PAIRS = ((Api.VULKAN, Api.OPENCL), (Api.CPU, Api.OPENCL), (Api.CPU, Api.VULKAN))
"""Backends that are set side by side: the second one over the first one."""
FIRST = ("latency", "throughput", "first result")
"""The quantities without one of which a result has no figure."""


def usable(content: Content) -> str:
    """`usable`, `usable with care` or `not usable`, and why in a few words."""
    results = len(content.summaries)
    lacking = sum(not has_figure(summary) for summary in content.summaries)
    if lacking == results:
        return wording.usable("no result has a figure" if results else "no result yet", ())
    found = Counter(reason for summary in content.summaries for reason in cautions(summary))
    told = [f"{word} ({'all' if n == results else f'{n} of {results}'})" for word, n in found.most_common()]
    first = [f"{lacking} of {results} results have no figure"] if lacking else []
    return wording.usable("", [*first, *told], wording.MOST_REASONS + len(first))


def has_figure(summary: Summary) -> bool:
    """Return whether what the result is about is told, or layers where only these were measured."""
    first = [told for told in told_of(summary) if told.metric in FIRST]
    return any(told.value is not None for told in first) or (not first and bool(summary.layers))


def cautions(summary: Summary) -> list[str]:
    """Return why a result is to be used with care, each in a word or two."""
    words = {Verdict.DRIFTING: "drifting", Verdict.BIMODAL: "two levels", Verdict.FEW: "too few blocks to tell"}
    verdict = [words[found.verdict]] if (found := summary.stability) and found.verdict in words else []
    missing = dict.fromkeys(
        f"no {told.metric}" for told in told_of(summary) if told.unresolved and told.metric not in FIRST
    )
    codes = dict.fromkeys(doubt.code.replace("_", " ") for doubt in summary.doubts)
    return [*verdict, *missing, *codes]


def closing(content: Content) -> str:
    """The answer in a sentence or two: which backend is how many times as fast, else what was measured."""
    told = list(_faster(rows_of(content)))
    return " ".join(told) if told else _measured(content.summaries)


def rows_of(content: Content) -> list[SideBySide]:
    """Return what several backends of a device ran in the same way."""
    return side_by_side(content.summaries, content.blocks, content.experiment.sampling.mode)


def ways_of(rows: Sequence[SideBySide]) -> list[str]:
    """Return the ways that stand side by side: our own engine's backends, then other engines."""
    found = {way for row in rows for way in row.ms}
    return [*(api for api in Api if api in found), *sorted(found - set(Api))]


def pairs_of(ways: Sequence[str]) -> list[tuple[str, str]]:
    """Return the ways to compare, the second one over the first one: ours among themselves, and ours over each other
    engine on the same backend."""
    own = [(other, one) for other, one in PAIRS if {other, one} <= set(ways)]
    return own + [(way, api) for way in ways if way not in set(Api) and (api := way.split()[-1]) in ways]


def way_name(way: str, ways: Sequence[str]) -> str:
    """Return what a way is called where these stand side by side."""
    if set(ways) <= set(Api):
        return NAMES[Api(way)]
    return f"{OURS.name} {way}" if way in set(Api) else way


def _faster(rows: Sequence[SideBySide]) -> Iterator[str]:
    ways = ways_of(rows)
    names = {way: way_name(way, ways) for way in ways}
    for other, one in pairs_of(ways):
        found = [(row.serial, *both) for row in rows if (both := _both(row, one, other))]
        if not found:
            continue
        whole = _counted([serial for serial, *_ in found], len(found))
        wins = [(serial, ratio) for serial, ratio, _ in found if ratio.proves_more]
        losses = [(serial, ratio) for serial, _, ratio in found if ratio.proves_more]
        for first, second, own in ((one, other, wins), (other, one, losses)):
            if own:
                times = wording.times(
                    [ratio.point for _, ratio in own if ratio.point], [ratio.interval for _, ratio in own]
                )
                yield f"{names[first]} is {times} times as fast as {names[second]} on {len(own)} of {whole}."
        if not wins and not losses:
            yield f"{names[one]} and {names[other]} are not told apart on any of {whole}."


def _both(row: SideBySide, one: str, other: str) -> tuple[Ratio, Ratio] | None:
    over, under = row.speed_up(one, other), row.speed_up(other, one)
    return None if over is None or under is None else (over, under)


def _counted(serials: Sequence[str], rows: int) -> str:
    """Return a count by devices where each has one row, else by configurations."""
    devices = len(set(serials))
    return wording.counted(devices, "device") if devices == rows else wording.counted(rows, "configuration")


def _measured(summaries: Sequence[Summary]) -> str:
    """Return the least and the largest median latency in words, with what they are of."""
    known = [
        (each.latency.median_ms, each) for each in summaries if each.latency and each.latency.median_ms is not None
    ]
    if not known:
        return ""
    least, largest = min(known, key=lambda each: each[0]), max(known, key=lambda each: each[0])
    names = wording.naming(summaries)
    told = [f"{wording.ms(value)} ms ({wording.cell(of, names)} on {of.serial})" for value, of in (least, largest)]
    return f"Median latency: {told[0]}." if len(known) == 1 else f"Median latencies: from {told[0]} to {told[1]}."
