"""The part of a report about the limits of devices."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.limits import Limit, Probe
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

NOTE = (
    "The largest value that ran, with the time of one inference, or of one epoch of a training, and the smallest that "
    "did not, with what stopped it. refused: it needs more than the device, its driver or the memory budget has; "
    "killed: the device ended the agent, twice. A probe that the farm lost is repeated and counts nowhere; one that "
    "failed for another reason ends the search. Weights are those of the whole network, biases among them."
)
UNFINISHED, STOPPED = "still searching", "ended without an answer"
INCONSISTENT = "a larger value ran: search again on an idle device"


def section(found: Sequence[Limit]) -> Section:
    rows = [
        (
            _device(one), one.label, one.dimension, _value(one.largest), _time(one.largest), _weights(one.largest),
            _value(one.smallest), _why(one), str(len(one.probes)),
        )
        for one in found
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("dimension"), Column("largest that ran", True),
        Column("ms", True), Column("weights", True), Column("smallest that did not", True), Column("what stopped it"),
        Column("probes", True),
    )  # fmt: skip
    bad = frozenset(index for index, one in enumerate(found) if not one.over or not one.consistent)
    return Section("limits", "Limits of the devices", NOTE, columns, tuple(rows), bad)


def _device(one: Limit) -> str:
    word = wording.source_word(one.source)
    return f"{one.serial} {word}" if word.isupper() else one.serial


def _value(probe: Probe | None) -> str:
    return "-" if probe is None else f"{probe.value:,}"


def _time(probe: Probe | None) -> str:
    return "" if probe is None or probe.median_ms is None else wording.ms(probe.median_ms)


def _weights(probe: Probe | None) -> str:
    return "" if probe is None or probe.weights is None else f"{probe.weights:,}"


def _why(one: Limit) -> str:
    if one.smallest is None:
        stopped = "nothing, up to the most that is tried" if one.over else ""
    else:
        cause = f" ({one.smallest.cause})" if one.smallest.cause not in ("", one.smallest.ended) else ""
        stopped = f"{one.smallest.ended}{cause}: {one.smallest.reason}"
    unknown = STOPPED if one.stopped else UNFINISHED
    doubts = [unknown] * (not one.over) + [INCONSISTENT] * (not one.consistent)
    return "; ".join(filter(None, (*doubts, stopped)))
