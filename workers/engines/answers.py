"""The judgement on a block's answers, whichever engine generated them."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.model.device import Precision
from orchestrator.model.event import Event, Sample
from orchestrator.model.job import Cell
from orchestrator.model.record import Doubt, DoubtCode, Outcome

from .engine import Verdict
from .models import Models


def answered(models: Models, cell: Cell, events: Sequence[Event]) -> Verdict:
    """Judge each answer against the reference; those of a block are alike, so that mostly there is one."""
    assert cell.text is not None
    answers = dict.fromkeys(each.tokens for each in events if isinstance(each, Sample) and each.tokens)
    precision = Precision(cell.precision)
    judged = [models.texts.judge(cell.workload, cell.text, answer, precision) for answer in answers]
    reasons = tuple(each.reason for each in judged if each.reason)
    part = [(each.tokens, len(of)) for each, of in zip(judged, answers, strict=True) if each.tokens < len(of)]
    detail = "the first {} of {} tokens were compared with the reference's".format(*part[0]) if part else ""
    return Verdict(
        Outcome.INVALID if reasons else Outcome.OK,
        "wrong_output" if reasons else "",
        reasons,
        doubts=(Doubt(code=DoubtCode.PARTLY_COMPARED, detail=detail),) if part else (),
        checks=tuple(each.check for each in judged),
    )
