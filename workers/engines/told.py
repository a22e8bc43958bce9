"""Facts of a run that its events tell, and the judgement on its answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.model.device import Precision
from orchestrator.model.event import Device, Event, Result, Sample
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode, Outcome, RunsOn

from .engine import Verdict
from .models import Models


def runs_on(events: Iterable[Event]) -> RunsOn | None:
    """Return the device and API on which a program ran, as the agent said it."""
    device = next((event for event in events if isinstance(event, Device)), None)
    if device is None:
        return None
    return RunsOn(api=device.facts.api, precision=device.precision, facts=device.facts, threads=device.threads)


def suspended_s(events: Iterable[Event]) -> float | None:
    """Return the time of a run in which the device was suspended; None where nobody came to tell."""
    told = next((event.suspended_ns for event in events if isinstance(event, Result)), None)
    return None if told is None else told / 1e9


def answered(models: Models, cell: Cell, events: Sequence[Event]) -> Verdict:
    """Judge each answer against the reference; those of a block are alike, so that mostly there is one."""
    assert cell.text is not None
    answers = dict.fromkeys(each.answers for each in events if isinstance(each, Sample) and each.tokens)
    precision = Precision(cell.precision)
    judged = [models.texts.judge(cell.workload, cell.text, answer, precision) for answer in answers]
    reasons = tuple(each.reason for each in judged if each.reason)
    part = [(each.tokens, len(of[0])) for each, of in zip(judged, answers, strict=True) if each.tokens < len(of[0])]
    detail = "the first {} of {} tokens were compared with the reference's".format(*part[0]) if part else ""
    return Verdict(
        Outcome.INVALID if reasons else Outcome.OK,
        "wrong_output" if reasons else "",
        reasons,
        doubts=(Doubt(code=DoubtCode.PARTLY_COMPARED, detail=detail),) if part else (),
        checks=tuple(each.check for each in judged),
    )
