"""Read the output that a record keeps again, by the parser of today."""

from __future__ import annotations

import time
from collections.abc import Sequence

from orchestrator.model.errors import StableError
from orchestrator.model.event import Event, Phase, Process, Sample
from orchestrator.model.job import Job
from orchestrator.model.record import Doubt, DoubtCode, EarlierReading, Outcome, Record
from workers.engines import Engine

from .doubts import find_doubts
from .record_builder import farm_version
from .validity import with_validity

UNREAD = ("unread_output", "wrong_device", "engine_refused")
"""Causes of failures by what was printed, which a mended parser may find to be none."""
TOLD_THEN = (DoubtCode.SAMPLER_COST, DoubtCode.SEVERAL_BATTERIES, DoubtCode.NO_POWER_GAUGE)
"""Doubts by the device's profile and the agent's warnings, which a record does not keep."""


def reads_text(engine: Engine) -> bool:
    """Return whether an engine reads its results in what its programs print."""
    return type(engine).reader is not Engine.reader


def reread(record: Record, job: Job, engine: Engine) -> Record | None:
    """Return a record as its engine reads its output now; None where that is the same, or cannot be done.

    Only an output that is all there is read again, of a run that ended by itself. What the record told before stays in
    `readings`. A program whose runs are its samples has nothing to read.
    """
    reader = engine.reader(job)
    if reader is None or not is_whole(record):
        return None
    events: list[Event] = sorted([*raw(record), *record.lines, *record.processes], key=lambda each: each.seq)
    read = reader.read_again(events)
    update: dict[str, object] = {
        "samples": tuple(each for each in read if isinstance(each, Sample)),
        "phases": tuple(each for each in read if isinstance(each, Phase)),
        **{"invalid": (), "outcome": Outcome.OK, "cause": "", "reasons": (), "doubts": ()},
    }
    try:
        update["doubts"] = _doubts(record, job, read, reader.judge().doubts)
    except StableError as e:
        update |= {"outcome": Outcome.FAILED, "cause": e.cause, "reasons": (str(e),)}
    found = with_validity(record.model_copy(update=update), job, None)
    return (
        None
        if _told(found) == _told(record)
        else found.model_copy(update={"readings": (*record.readings, _before(record))})
    )


def is_whole(record: Record) -> bool:
    """Return whether all that its program printed is there, and read, or could not be read."""
    by_itself = not any(run.status or run.signal for run in record.processes)
    ended = record.outcome in (Outcome.OK, Outcome.INVALID) or (record.cause in UNREAD and by_itself)
    return ended and bool(record.lines) and not any(run.dropped_bytes for run in record.processes)


def raw(record: Record) -> list[Event]:
    """Return a record's runs as samples, and its phases, as they were before its output was read."""
    runs = [
        Sample(
            seq=run.seq, t_ns=run.t_ns, index=run.index, phase=run.phase, start_ns=run.start_ns,
            duration_ns=run.end_ns - run.start_ns,
        )
        for run in record.processes
    ]  # fmt: skip
    timed = [run for run in record.processes if run.phase == "timed"]
    return [*runs, *(_widened(phase, timed) for phase in record.phases)]


def _widened(phase: Phase, timed: list[Process]) -> Phase:
    """The load is that of all runs at least: the samples of one are told by its output."""
    if phase.phase != "load" or not timed:
        return phase
    start_ns, end_ns = min(run.start_ns for run in timed), max(run.end_ns for run in timed)
    return phase.model_copy(update={"start_ns": min(phase.start_ns, start_ns), "end_ns": max(phase.end_ns, end_ns)})


def _doubts(record: Record, job: Job, read: Sequence[Event], own: Sequence[Doubt]) -> tuple[Doubt, ...]:
    kept = [*record.power, *record.rails, *([record.sampler] if record.sampler else ())]
    found = find_doubts(
        job, record.device, [*read, *kept], (record.state_before, record.state_after),
        resumed=any(doubt.code is DoubtCode.RESUMED for doubt in record.doubts),
        metered=bool(record.series or record.rails), own=own,
    )  # fmt: skip
    known = {each.code: each for each in record.doubts if each.code in TOLD_THEN}
    return (*(known.pop(each.code, each) for each in found), *known.values())


def _told(record: Record) -> object:
    """Return what a parser decides: outcome, cause and samples."""
    samples = [
        (each.phase, each.index, each.start_ns, each.duration_ns, each.mean_of, each.prompt, each.token_count)
        for each in record.samples
    ]
    return record.outcome, record.cause, samples


def _before(record: Record) -> EarlierReading:
    fields = EarlierReading.model_fields.keys() - {"replaced_at", "farm_version"}
    return EarlierReading.model_validate(
        {"replaced_at": time.time(), "farm_version": farm_version(), **{name: getattr(record, name) for name in fields}}
    )
