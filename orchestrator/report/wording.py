"""Format numbers, names and sources, the same in every form of report."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from math import floor, log10
from typing import TYPE_CHECKING, NamedTuple, Protocol

from orchestrator.analysis.statistics import SERIAL_BLOCKS
from orchestrator.model.device import Source
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.record import Outcome

if TYPE_CHECKING:
    from orchestrator.analysis.agreement import Proportion
    from orchestrator.analysis.statistics import EnergyPerInference, EnergyUse, Interval, Latency, Summary
    from orchestrator.model.exclusion import Exclusion

    from .content import DoubtCount

UNREAL = {
    Source.VIRTUAL: "VIRTUAL",
    Source.REPLAY: "REPLAY",
    Source.IMPORT: "IMPORT",
}

SHOWN_NAMES = 4
SHOWN_LABELS = 4
NS_DECIMALS = 6
PROMISED_PERCENT = 95
MOST_DECIMALS = 5
"""Of a share in percent: one of ten million examples."""
_OPTION = re.compile(r" (?=[a-z_]+=)")
"""Before each option of a label; values may have spaces."""


def counted(number: int, noun: str) -> str:
    """`1 cell`, `2 cells`, `1,000 jobs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def source_word(source: Source) -> str:
    """`phone`, `workstation`; in capitals what is neither."""
    return UNREAL.get(source, source.value)


def ms(value: float) -> str:
    """Milliseconds with three significant digits, down to the nanosecond: `0.00042`, `4.56`, `78.9`, `1234`."""
    if value <= 0:
        return f"{value:.0f}"
    size = floor(log10(float(f"{value:.2e}")))  # of the rounded value: 9.997 is 10.0, and 99.97 is 100
    return f"{value:.{min(max(2 - size, 0), NS_DECIMALS)}f}"


def latency_interval(latency: Latency | None) -> str:
    """In ms; empty where there are too few blocks for one."""
    return "" if latency is None else interval(latency.interval_ms)


def interval(found: Interval | None) -> str:
    """`[low, high]`, with its level where that is not 95 %; empty without one."""
    return "" if found is None else f"[{ms(found.low)}, {ms(found.high)}]{level(found)}"


def level(found: Interval) -> str:
    """` 75 %`, ` of one block`; empty of 95 %, which columns promise."""
    if found.method == "own":
        return " of one block"
    return "" if round(100 * found.level) == PROMISED_PERCENT else f" {found.level:.0%}".replace("%", " %")


def interval_note(summaries: Iterable[Summary]) -> str:
    """What the intervals of the results take for granted; empty where they take nothing."""
    found = [one.interval_ms if one else None for one in (summary.latency for summary in summaries)]
    if not any(each is not None and each.conditional for each in found):
        return ""
    return f"intervals of fewer than {SERIAL_BLOCKS} blocks: if successive blocks are independent"


def per_s(value: float) -> str:
    """Frames per second with three significant digits: `0.123`, `4.56`, `78.9`, `1234`."""
    return ms(value)


def instead(summary: Summary) -> str:
    """What stands where a cell has no latency: `185 frames/s`, `layers only`, `none`."""
    if summary.throughput:
        return f"{per_s(summary.throughput.frames_per_s)} frames/s"
    return "none" if summary.device_ms is None else "layers only"


SOURCES = {
    PowerSource.GAUGE: "battery gauge",
    PowerSource.ODPM: "power rails (ODPM)",
    PowerSource.PERFETTO: "power rails (perfetto)",
    PowerSource.METER: "external meter",
    PowerSource.RAPL: "RAPL counter",
    PowerSource.NVML: "NVML counter",
    PowerSource.MODEL: "MODEL of a virtual phone",
    PowerSource.TRACE: "imported trace",
}
SCOPES = {
    Scope.DEVICE: "whole device",
    Scope.RAILS: "some rails",
    Scope.PACKAGE: "CPU package",
    Scope.BOARD: "graphics board",
}
PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def power_source(source: PowerSource, record_source: Source) -> str:
    """`battery gauge`; with what is no device's own in capitals: `battery gauge (VIRTUAL: modelled)`."""
    word = source_word(record_source)
    if record_source is Source.VIRTUAL:
        return f"{SOURCES[source]} (VIRTUAL: modelled power)"
    return f"{SOURCES[source]} ({word})" if word.isupper() else SOURCES[source]


def short_source(use: EnergyUse, record_source: Source) -> str:
    """`gauge`, `meter`; `gauge, relative` where the gain is not known; `gauge, MODELLED` of a virtual phone."""
    made_up = record_source is Source.VIRTUAL or use.source is PowerSource.MODEL
    return f"{use.source}{', MODELLED' if made_up else '' if use.absolute else ', relative'}"


def energy(per_inference: EnergyPerInference | None) -> str:
    """`45.6 mJ net`, `1.23 J gross`; empty where there is none. What it contains is always said beside the figure."""
    return "" if per_inference is None else f"{joules(per_inference.figure_j.value)} {per_inference.basis}"


def energy_basis(found: Iterable[EnergyPerInference | None]) -> str:
    """A sentence on what these energies contain: net, gross, or both among them."""
    bases = {per_inference.basis for per_inference in found if per_inference is not None}
    net = "the idle power, measured before and after the load, is subtracted"
    gross = "the idle power is in it, because no block rested (`sampling.idle` adds rests)"
    if bases == {"net", "gross"}:
        return f"Net: {net}. Gross: {gross}. The two do not compare."
    return f"Gross: {gross}." if bases == {"gross"} else f"Net: {net}."


def joules(value: float) -> str:
    """`1.23 J`, `45.6 mJ`, `0.789 µJ`: three significant digits."""
    return f"{_scaled(value)}J"


def watts(value: float) -> str:
    """`3.21 W`, `812 mW`: three significant digits."""
    return f"{_scaled(value)}W"


def _scaled(value: float) -> str:
    factor, prefix = next((p for p in PREFIXES if abs(value) >= p[0]), PREFIXES[-1] if value else PREFIXES[0])
    return f"{_three(value / factor)} {prefix}"


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def joule_interval(interval: Interval) -> str:
    """`[1.20, 1.26] J`, both ends with one unit."""
    largest = max(abs(interval.low), abs(interval.high))
    factor, prefix = next((p for p in PREFIXES if largest >= p[0]), PREFIXES[-1])
    ends = f"[{_three(interval.low / factor)}, {_three(interval.high / factor)}]"
    return f"{ends} {prefix}J{level(interval)}"


def share(value: float) -> str:
    """`3.4 %`."""
    return f"{100 * value:.1f} %"


def percent(of: Proportion) -> str:
    """`99.87`; with more digits where it is not quite a hundred: `99.998`."""
    decimals = 2
    while of.count < of.of and decimals < MOST_DECIMALS and f"{100 * of.share:.{decimals}f}" == f"{100:.{decimals}f}":
        decimals += 1
    return f"{100 * of.share:.{decimals}f}"


def percent_interval(of: Proportion) -> str:
    """`[99.81, 99.91]`."""
    return f"[{100 * of.interval.low:.2f}, {100 * of.interval.high:.2f}]"


class EnergyRow(NamedTuple):
    """A cell on a device with its energy by one source."""

    summary: Summary
    use: EnergyUse


def energy_groups(summaries: Iterable[Summary]) -> dict[str, list[EnergyRow]]:
    """Energies by what may stand side by side: source, scope and kind of record, as a title."""
    groups: dict[str, list[EnergyRow]] = {}
    for summary in summaries:
        for use in summary.energy:
            title = f"{power_source(use.source, summary.source)}, {SCOPES[use.scope]}"
            groups.setdefault(title, []).append(EnergyRow(summary, use))
    return groups


def memory_size(size_bytes: int | None) -> str:
    """In MiB, or KiB below a tenth of one."""
    if size_bytes is None:
        return ""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 2**20 / 10 else f"{size_bytes / 2**10:.1f} KiB"


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
    """What cells ran on, a line for each backend: `opencl: PoCL 3.1 · Intel Xeon`."""
    found: dict[str, dict[str, None]] = {}
    for summary in summaries:
        if words := driver(summary):
            found.setdefault(summary.backend, {})[words] = None
    return [f"{backend}: {'; '.join(words)}" for backend, words in found.items()]


def short_name(text: str) -> str:
    """A driver's name for a device without what says nothing: trade marks, clock, `Processor`."""
    text = re.sub(r"^(pthread|basic|cpu)-[a-z0-9.-]+?-(?=[A-Z])", "", text)  # PoCL puts LLVM's name before the maker's
    text = re.sub(r"\((R|TM|C)\)|\bProcessor\b|\bCPU\b|@ [\d.]+ ?GHz|\+debian\b", " ", text, flags=re.IGNORECASE)
    text = re.sub(r"^pocketfarm-agent [\d.]+", "agent", text)
    return " ".join(text.replace("Portable Computing Language", "PoCL").split())


class Naming(NamedTuple):
    """What the names of an experiment's cells need not say, because it is true of all of them."""

    workload: bool
    """Whether names must say the workload: there are several."""
    shared: frozenset[str]
    """Options with their values, as they stand in a label."""


class Labelled(Protocol):
    """What has the name of a cell."""

    @property
    def label(self) -> str: ...

    @property
    def workload(self) -> str: ...


def naming(of: Iterable[Labelled]) -> Naming:
    found = list(of)
    options = [set(label_options(label)) for label in {summary.label for summary in found}]
    shared = set.intersection(*options) if len(options) > 1 else set()
    return Naming(len({summary.workload for summary in found}) > 1, frozenset(shared))


def cell(summary: Labelled, how: Naming) -> str:
    """`opencl fp32 granularity=4`, after the workload's name where there are several of them."""
    label = summary.label if how.workload else summary.label.removeprefix(summary.workload + " ")
    return without(label, how.shared)


def label_options(label: str) -> list[str]:
    """`["granularity=4", "product=blocked 16x32"]` of a cell's label."""
    return _OPTION.split(label)[1:]


def without(label: str, shared: Collection[str]) -> str:
    """A label without these options."""
    head, *options = _OPTION.split(label)
    return " ".join([head, *(option for option in options if option not in shared)])


def blocks(summary: Summary) -> str:
    """Blocks that went well of those with a record, e.g. `3/3`."""
    return f"{summary.outcomes.get(Outcome.OK, 0)}/{summary.blocks}"


def not_ok(summary: Summary) -> str:
    """Blocks that did not go well, by outcome: `2 failed, 1 lost`."""
    return outcomes({outcome.value: n for outcome, n in summary.outcomes.items() if outcome is not Outcome.OK})


def outcomes(counts: dict[str, int]) -> str:
    """`12 ok, 1 failed`; empty outcomes are left out."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no job"


class ExclusionGroup(NamedTuple):
    """Cells that are excluded on some devices for one reason."""

    cells: str
    devices: str
    reason: str


def doubt_numbers(summary: Summary, doubts: Sequence[DoubtCount]) -> list[int]:
    """The doubts of a result as numbers in the list of all doubts, from 1."""
    own = {doubt.code for doubt in summary.doubts}
    return [number for number, doubt in enumerate(doubts, 1) if doubt.code in own]


def common_doubts(doubts: Sequence[DoubtCount], results: int) -> list[int]:
    """Numbers of the doubts that every one of several results has: said once, and not in every row."""
    return [number for number, doubt in enumerate(doubts, 1) if doubt.results == results > 1]


def group_exclusions(found: Iterable[Exclusion], known: Iterable[str] = ()) -> list[ExclusionGroup]:
    """Exclusions with the same reason on the same devices in one row; what all of them share is left out.

    `known`: serials of all the devices that there are, which are not listed one by one.
    """
    listed = list(found)
    labels = {each.cell for each in listed}
    word = shared_word(list(labels))
    options = frozenset(set.intersection(*(set(label_options(label)) for label in labels)) if len(labels) > 1 else ())
    everywhere = {each.serial for each in listed if each.serial} | set(known)
    devices: dict[tuple[str, str], dict[str, None]] = {}
    for each in listed:
        name = without(each.cell.removeprefix(word), options)
        devices.setdefault((name, each.reason), {})[each.serial] = None
    cells: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (label, reason), serials in devices.items():
        cells.setdefault((reason, tuple(serials)), []).append(label)
    return [
        ExclusionGroup(_cell_names(labels), _device_names(serials, everywhere), reason)
        for (reason, serials), labels in cells.items()
    ]


def _cell_names(labels: Sequence[str]) -> str:
    """A few labels as they are; of many their number, and what they have in common."""
    if len(labels) <= SHOWN_LABELS:
        return "; ".join(labels)
    words = [[*_OPTION.split(label)[0].split(" "), *label_options(label)] for label in labels]
    common = [word for word in words[0] if all(word in others for others in words)]
    return f"{len(labels)} cells" + (f" with {' '.join(common)}" if common else "")


def _device_names(serials: Sequence[str], known: Collection[str]) -> str:
    """An empty serial stands for every device."""
    if "" in serials or (len(known) > 1 and set(serials) >= set(known)):
        return "every device"
    return few(serials)


def few(names: Sequence[str]) -> str:
    """`A, B, C, D and 2 more`."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def shared_word(labels: Sequence[str]) -> str:
    """The first word of all labels with its space, where it is the same; they say more than that."""
    first = {label.partition(" ")[0] for label in labels}
    return f"{first.pop()} " if len(first) == 1 and all(" " in label for label in labels) else ""
