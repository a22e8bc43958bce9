"""Decide whether the figures of a finished record count, and add its doubts."""

from __future__ import annotations

import logging

from orchestrator.energy import block_energy, find_invalid, why_no_energy
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.job import Job
from orchestrator.model.record import Doubt, DoubtCode, InvalidCode, Invalidity, Outcome, Record
from workers.enrolment.nodes import batteries

log = logging.getLogger(__name__)


def with_validity(record: Record, job: Job, enrolment: Enrolment | None) -> Record:
    """The record with its invalidities and further doubts; one that was measured and does not count is `invalid`."""
    if record.outcome not in (Outcome.OK, Outcome.INVALID):
        return record
    try:
        return _with_doubts(_with_invalidities(record, job), job, enrolment)
    except Exception as e:  # a record is always kept
        log.exception("%s: its record cannot be checked", record.device.serial)
        text = f"the record cannot be checked: {type(e).__name__}: {e}"
        return record.model_copy(
            update={"outcome": Outcome.FAILED, "cause": "internal", "reasons": (*record.reasons, text)}
        )


def _with_invalidities(record: Record, job: Job) -> Record:
    told = next((code for code in (InvalidCode.WRONG_OUTPUT, InvalidCode.TOO_HOT) if code == record.cause), None)
    of_run = tuple(Invalidity(code=told, detail=reason) for reason in record.reasons if told)
    found = (*of_run, *find_invalid(record, job.conditions, job.sampling))
    if not found:
        return record
    reasons = record.reasons or tuple(f"{each.code}: {each.detail}" for each in found)
    cause = record.cause or str(found[0].code)
    update = {"invalid": found, "outcome": Outcome.INVALID, "cause": cause, "reasons": reasons}
    return record.model_copy(update=update)


def _with_doubts(record: Record, job: Job, enrolment: Enrolment | None) -> Record:
    known = {doubt.code for doubt in record.doubts}
    more = (
        *_of_conditions(record),
        *_of_quantities(record, job),
        *_of_energy(record, job),
        *_of_sampler(record, enrolment),
        *_of_batteries(record, enrolment),
    )
    return record.model_copy(update={"doubts": (*record.doubts, *(doubt for doubt in more if doubt.code not in known))})


def _of_conditions(record: Record) -> tuple[Doubt, ...]:
    names = [proof.name for proof in record.conditions if not proof.proven]
    return (Doubt(code=DoubtCode.CONDITION_UNPROVEN, detail=", ".join(names)),) if names else ()


def _of_quantities(record: Record, job: Job) -> tuple[Doubt, ...]:
    """Return a doubt about what was asked for beside power, and the agent did not tell."""
    told = {"latency": record.samples, "memory": record.memory, "layers": record.layers}
    lacking = [name for name in job.measure.quantities if name in told and not told[name]]
    return (Doubt(code=DoubtCode.QUANTITY_MISSING, detail=", ".join(lacking)),) if lacking else ()


def _of_energy(record: Record, job: Job) -> tuple[Doubt, ...]:
    if "power" not in job.measure.quantities:
        return ()
    energy = block_energy(record, job.measure.power_source)
    if energy is not None:
        return energy.doubts
    known = any(doubt.code is DoubtCode.NO_POWER_GAUGE for doubt in record.doubts)
    why = why_no_energy(record, job.measure.power_source)
    return () if known else (Doubt(code=DoubtCode.NO_ENERGY, detail=why[:500]),)


def _of_batteries(record: Record, enrolment: Enrolment | None) -> tuple[Doubt, ...]:
    """A gauge is that of one battery."""
    found = batteries(enrolment.nodes) if enrolment and record.power and not record.series else ()
    if len(found) < 2:
        return ()
    return (Doubt(code=DoubtCode.SEVERAL_BATTERIES, detail=f"{', '.join(found)}: the gauge is that of one of them"),)


def _of_sampler(record: Record, enrolment: Enrolment | None) -> tuple[Doubt, ...]:
    """Return a doubt where sampling changes the latency, as measured when the device was enrolled."""
    cost = enrolment.sampler if enrolment else None
    if record.sampler is None or cost is None or cost.accepted:
        return ()
    share = cost.latency_share
    resolved = "" if share.low > 0 or share.high < 0 else ", not resolved"
    text = f"{share.value:+.1%} ({share.low:+.1%} to {share.high:+.1%}{resolved})"
    detail = f"median latency {text} with a period of {cost.period_ns / 1e6:g} ms"
    return (Doubt(code=DoubtCode.SAMPLER_COST, detail=detail),)
