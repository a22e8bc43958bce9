"""The morning report of a night: what got worse, better, unknown, missing, and what to do next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from orchestrator.analysis.comparison import METRICS
from orchestrator.analysis.history import Change, History, Trail
from orchestrator.analysis.statistics.resolution import MOST_BLOCKS
from orchestrator.nightly import Night, NightRow
from orchestrator.nightly.past import cell_of
from orchestrator.report import wording
from orchestrator.report.compared.content import cell, device

from .history import date

DAY_S = 86400.0
LATELY_S = 14 * DAY_S
"""Changes of so many nights are told beside tonight's."""
MOST_CHARTS = 6
RANKS = ("worse", "not confirmed", "better", "missing", "unknown", "same", "unavailable")


@dataclass(frozen=True)
class Morning:
    """One night with its history, which ends with it."""

    night: Night
    history: History
    rows: dict[str, list[NightRow]] = field(default_factory=dict)
    """The rows by what is said of them, in the order of `RANKS`."""

    @property
    def parts(self) -> bool:
        """True if rows have to name the part of the suite that they are of."""
        return len({row.part for row in self.night.rows}) > 1

    def named(self, row: NightRow) -> str:
        return f"{row.part}: {cell(row.compared)}" if self.parts else cell(row.compared)


def morning(night: Night, history: History) -> Morning:
    """`history`: of the suite; nights after this one are left out."""
    rows: dict[str, list[NightRow]] = {each: [] for each in RANKS}
    for row in night.rows:
        rows[row.said].append(row)
    for each in rows.values():
        each.sort(key=lambda row: (-abs(_size(row)), row.compared.device, row.compared.network))
    return Morning(night, history, rows)


def usable(found: Morning) -> str:
    """`usable`, `usable with care` or `not usable`, and why in a few words: whether the night can be relied on."""
    night, rows = found.night, found.rows
    settled = sum(len(rows[each]) for each in ("worse", "better", "same"))
    if not settled:
        why = "no row could be judged" if night.rows else "nothing was compared"
        return wording.usable("it did not run" if night.outcome == "not_run" else why, ())
    unsure = len(rows["unknown"]) + len(rows["not confirmed"])
    cautions = (
        f"{_counted(len(night.missing), 'device')} missing" if night.missing else "",
        f"{len(rows['missing'])} of {wording.counted(len(night.rows), 'row')} missing" if rows["missing"] else "",
        f"{unsure} of {wording.counted(len(night.rows), 'row')} unknown" if unsure else "",
        *night.problems,
        *(each.partition(":")[0] for each in night.warnings),
        "it is partial" if night.outcome == "partial" else "",
    )
    return wording.usable("", [each for each in cautions if each])


def headline(found: Morning) -> str:
    """One sentence with the whole of it."""
    night = found.night
    if night.outcome == "not_run":
        return "The night did not run. Nothing is known of it."
    told = [_counted(len(found.rows[each]), each) for each in ("worse", "better", "unknown") if found.rows[each]]
    if lost := len(found.rows["missing"]):
        told.append(f"{_counted(lost, 'row')} missing")
    if night.missing:
        told.append(f"{_counted(len(night.missing), 'device')} missing")
    if not found.night.rows:
        told.append("nothing was compared")
    text = f"{'; '.join(told)}." if told else "Nothing changed."
    whole = "The night is partial: " if night.outcome == "partial" else ""
    return f"{whole}{text if whole else text[0].upper() + text[1:]}"


def tiles(found: Morning) -> list[tuple[str, str, bool]]:
    """The figures at the head: name, number, and whether it is bad."""
    counts = {each: len(rows) for each, rows in found.rows.items()}
    lost = len(found.night.missing)
    return [
        ("worse", str(counts["worse"]), counts["worse"] > 0),
        ("better", str(counts["better"]), False),
        ("unknown", str(counts["unknown"] + counts["not confirmed"]), False),
        (f"row{'s' * (counts['missing'] != 1)} missing", str(counts["missing"]), counts["missing"] > 0),
        (f"device{'s' * (lost != 1)} missing", str(lost), lost > 0),
        ("same", str(counts["same"]), False),
    ]


def next_steps(found: Morning) -> list[tuple[str, str]]:
    """Return what to do, the most urgent first: a sentence, and a command where one helps."""
    return list(_steps(found))


def lately(found: Morning) -> list[tuple[Trail, Change]]:
    """Changes of the last two weeks."""
    return [each for each in found.history.changes if each[1].at >= found.night.due_at - LATELY_S]


class Group(NamedTuple):
    """Changes of one night with one cause: of the farm all, of a device all of its cells."""

    at: float
    device: str
    what: str
    """The cell and metric, or how many series."""
    size: str
    cause: str
    settled: bool
    worse: bool
    because: str
    also: str
    """The other changes of that night."""
    trail: Trail
    """One of the series."""


def grouped(found: Morning) -> list[Group]:
    """The changes of the last two weeks, those together that are one event."""
    groups: dict[tuple[object, ...], list[tuple[Trail, Change]]] = {}
    for trail, change in lately(found):
        one = (
            ()
            if change.cause == "farm"
            else (trail.device,)
            if change.cause == "device"
            else (trail.device, trail.cell)
        )
        groups.setdefault((change.night, change.cause, change.of, *one), []).append((trail, change))
    return [_group(each) for each in groups.values()]


def charted(found: Morning) -> list[Trail]:
    """The series to look at: those of tonight's differences, then those that changed lately."""
    by_key = {(each.device, each.cell, each.metric, each.basis): each for each in found.history.trails}
    wanted = [
        by_key.get(
            (each.compared.device, cell_of(each, with_part=found.parts), each.compared.metric, each.compared.basis)
        )
        for name in ("worse", "not confirmed", "better")
        for each in found.rows[name]
    ]
    trails = [*(each for each in wanted if each is not None), *(each.trail for each in grouped(found) if each.settled)]
    once = {(each.device, each.cell, each.metric, each.basis): each for each in trails}
    return [each for each in once.values() if sum(value is not None for value in each.a) > 1][:MOST_CHARTS]


def _steps(found: Morning) -> Iterator[tuple[str, str]]:
    night = found.night
    for problem in night.problems:
        yield f"Mend what stood in the way: {problem}", "farm status"
    for warning in night.warnings:
        yield f"Look at it: {warning}.", "farm status"
    yield from _candidates(found)
    for reason, devices in _by_reason(night).items():
        yield (
            f"Look at {', '.join(devices)}: {reason}.",
            f"farm devices {quote(devices[0])}" if len(devices) == 1 else "",
        )
    for each in grouped(found):
        if each.cause in ("device", "farm") and each.settled:
            since = f" {each.also} changed that night." if each.also else ""
            told = f"moved on both sides on {date(each.at)} ({each.what}, {each.size})"
            yield (
                f"Not the candidate: {each.device} {told}.{since}",
                f"farm history {night.suite.name}"
                + (f" --device {quote(each.device)}" if each.cause == "device" else ""),
            )
    if unsure := found.rows["not confirmed"]:
        yield f"{_counted(len(unsure), 'row')} differed and did not when repeated: wait for another night.", ""
    yield from _unknown(found)


def _candidates(found: Morning) -> Iterator[tuple[str, str]]:
    by_metric = Counter(row.compared.metric for row in found.rows["worse"])
    for metric, number in by_metric.items():
        rows = [row for row in found.rows["worse"] if row.compared.metric == metric]
        devices = dict.fromkeys(row.compared.device for row in rows)
        where = ", ".join(list(devices)[:3]) + (f" and {len(devices) - 3} more" if len(devices) > 3 else "")
        again = "confirmed by a repetition" if all(row.confirmed for row in rows) else "not repeated"
        yield (
            f"Stop the candidate, or explain it: {metric} is worse in {_counted(number, 'configuration')} on {where} "
            f"({again}).",
            _compare(found.night, rows[0]),
        )


def _unknown(found: Morning) -> Iterator[tuple[str, str]]:
    unknown = [row.compared for row in found.rows["unknown"]]
    if not unknown:
        return
    asked = [each.needs_blocks for each in unknown if each.needs_blocks]
    needs = [each for each in asked if each <= MOST_BLOCKS]
    full = any(max(each.blocks) >= found.night.suite.most_rounds for each in unknown if each.needs_blocks)
    larger = f"most_rounds above {found.night.suite.most_rounds}" if full else "a larger budget"
    blocks = wording.counted(max(needs, default=0), "more block")
    more = f" {blocks} a side would settle {len(needs)} of them: {larger}." if needs else ""
    noise = f" {len(asked) - len(needs)} of them: not with this noise." if len(asked) > len(needs) else ""
    yield f"{_counted(len(unknown), 'row')} unknown, neither the same nor different.{more}{noise}", ""


def _compare(night: Night, row: NightRow) -> str:
    """The command that shows the blocks behind a row."""
    first = next((wave for wave in night.waves if wave.part == row.part and not wave.refused), None)
    if first is None:
        return ""
    device_is = quote(f"device={row.compared.device}")
    return f"farm compare {first.experiment_id} --sides side=baseline,candidate --where {device_is}"


def raw_records(night: Night) -> list[tuple[str, str]]:
    """Each experiment of the night, with the command that writes its raw samples."""
    return [
        (f"{wave.experiment_id} ({wave.kind})", f"farm export {wave.experiment_id} --format csv -o raw.csv")
        for wave in night.waves
        if not wave.refused
    ]


def _by_reason(night: Night) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in night.missing:
        found.setdefault(each.reason, []).append(each.device)
    return found


def _group(changes: list[tuple[Trail, Change]]) -> Group:
    trail, change = changes[0]
    sizes = [100 * each.change for _, each in changes]
    low, high = f"{min(sizes):+.1f}", f"{max(sizes):+.1f}"
    names = dict.fromkeys(f"{each.cell}, {each.metric} {each.basis}".strip() for each, _ in changes)
    devices = dict.fromkeys(each.device for each, _ in changes)
    return Group(
        at=change.at,
        device=f"{len(devices)} devices" if len(devices) > 1 else trail.device,
        what=next(iter(names)) if len(changes) == 1 else f"{len(changes)} series",
        size=f"{low} %" if low == high else f"{low} to {high} %",
        cause=change.cause,
        settled=any(each.settled for _, each in changes),
        worse=any(each.worse for _, each in changes),
        because=change.because,
        also=", ".join(dict.fromkeys(name for _, each in changes for name in each.also)),
        trail=trail,
    )


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1 and name in ('device', 'row', 'configuration'))}"


def _size(row: NightRow) -> float:
    """Return by how much it is worse."""
    ratio = row.compared.at_least
    return 0.0 if ratio is None else (ratio - 1) * (1 if METRICS[row.compared.metric].more_is_worse else -1)


def row_device(row: NightRow) -> str:
    """Return the device's name, with what is no phone in capitals."""
    return device(row.compared)
