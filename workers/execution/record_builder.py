"""Build the record of an attempt while it goes on; a valid record can be made at any moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar

from kernels.errors import CompileError, LimitExceeded
from orchestrator.model.base import like
from orchestrator.model.device import DeviceFacts, DeviceState, Source
from orchestrator.model.enrolment import Enrolment, SupplyWay
from orchestrator.model.errors import ConditionNotMet, FarmError, TransientError
from orchestrator.model.event import (
    Device,
    Event,
    Hello,
    Layer,
    Line,
    Memory,
    Output,
    Phase,
    Power,
    Process,
    Rails,
    Result,
    Sample,
    Sampler,
    Setup,
    Warning,
)
from orchestrator.model.live.lease import Assignment
from orchestrator.model.power import ClockAnchor
from orchestrator.model.record import (
    ConditionProof,
    Doubt,
    InvalidCode,
    Outcome,
    Provenance,
    Record,
    SessionPlace,
)
from workers.claim import JobCancelled
from workers.connection.host_faults import blamed
from workers.devices.agent_journal import Garbage
from workers.engines import Measured, Program, Verdict, runs_on, suspended_s
from workers.session.preconditions import affinity_proof

from .doubts import find_doubts

Kind = TypeVar("Kind")


@dataclass
class RecordBuilder:
    """The builder of one attempt's record, with what is known so far."""

    assignment: Assignment
    worker: str
    device: DeviceFacts
    agent_sha256: str = ""
    started_at: float = field(default_factory=time.time)
    session: SessionPlace | None = None
    state_before: DeviceState | None = None
    state_after: DeviceState | None = None
    program: Program | None = None
    measured: Measured = field(default_factory=Measured)
    verdict: Verdict = field(default_factory=Verdict)
    enrolment: Enrolment | None = None
    """The device profile that held for the block."""
    proofs: tuple[ConditionProof, ...] = ()
    cpus: str = ""
    """Cores to which the agent was to bind itself."""
    supply_way: SupplyWay = "none"
    """The way in which the supply was cut for the block."""
    supply_restored: bool | None = None
    clock: ClockAnchor | None = None
    """The anchor that puts times of sampled power onto this host's clock."""
    outcome: Outcome = Outcome.OK
    cause: str = ""
    reasons: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    def end(self, outcome: Outcome, cause: str, *reasons: str) -> None:
        """The first end counts."""
        if self.outcome == Outcome.OK:
            self.outcome, self.cause, self.reasons = outcome, cause, reasons

    def judge(self) -> None:
        """Have the program judge what its run came to. Raises its error where it failed."""
        assert self.program is not None
        told = (each.message for each in _all(self.measured.events, Warning) if each.code == InvalidCode.TOO_HOT)
        if hot := next(told, ""):
            self.end(Outcome.INVALID, InvalidCode.TOO_HOT, hot)
        self.verdict = self.program.judge()
        if self.verdict.outcome is not Outcome.OK:
            self.end(self.verdict.outcome, self.verdict.cause, *self.verdict.reasons)

    def fail(self, error: Exception) -> None:
        """Turn whatever ended the attempt into its outcome."""
        error = blamed(error)
        workload, message = self.assignment.job.cell.workload, str(error) or type(error).__name__
        if workload.model_sha256:  # a kept file is called so, and so is the network that is read from it
            message = message.replace(workload.model_sha256, workload.label)
        self.end(outcome_of(error), cause_of(error), message)
        if isinstance(error, Garbage):
            self.evidence = error.evidence

    def record(self) -> Record:
        """The attempt as it will be kept."""
        job, measured, program, verdict = self.assignment.job, self.measured, self.program, self.verdict
        events = measured.events
        return like(
            Record,
            self,
            experiment_id=job.experiment_id,
            job_id=self.assignment.job_id,
            cell_id=job.cell.cell_id,
            block=job.block,
            attempt=self.assignment.attempt,
            token=self.assignment.token,
            source=self.device.source,
            ended_at=time.time(),
            runs_on=runs_on(events),
            role=job.role,
            suspended_s=suspended_s(events),
            setup=_all(events, Setup),
            samples=_all(events, Sample),
            layers=_all(events, Layer),
            phases=_all(events, Phase),
            power=_all(events, Power),
            rails=_all(events, Rails),
            sampler=next(reversed(_all(events, Sampler)), None),
            gauge=self.enrolment.gauge if self.enrolment else None,
            series=measured.series,
            conditions=(*self.proofs, *self._affinity_proof(), *self._supply_proof()),
            replans=program.replans if program else (),
            layer_memory=program.layer_memory if program else (),
            memory=next(reversed(_all(events, Memory)), None),
            outputs=_all(events, Output),
            processes=_all(events, Process),
            lines=_all(events, Line),
            checks=verdict.checks,
            predictions=verdict.predictions,
            trained=verdict.trained,
            earlier=measured.earlier,
            reconstructions=verdict.reconstructions,
            provenance=self._provenance(),
            doubts=self._doubts(),
            evidence=self.evidence or measured.evidence,
        )

    def _doubts(self) -> tuple[Doubt, ...]:
        states = (self.state_before, self.state_after)
        if self.outcome not in (Outcome.OK, Outcome.INVALID):
            return ()
        measured = self.measured
        metered = bool(measured.series) or any(isinstance(event, Rails) for event in measured.events)
        return find_doubts(
            self.assignment.job, self.device, measured.events, states,
            resumed=measured.resumed, metered=metered, own=self.verdict.doubts,
        )  # fmt: skip

    def _affinity_proof(self) -> tuple[ConditionProof, ...]:
        bound, is_virtual = bound_to(self.measured.events), self.device.source is Source.VIRTUAL
        return affinity_proof(self.assignment.job.conditions, self.cpus, bound, is_virtual=is_virtual)

    def _supply_proof(self) -> tuple[ConditionProof, ...]:
        """A supply that was cut: the agent began when the battery discharged; its readings tell whether that lasted."""
        if self.supply_way == "none":
            return ()
        statuses = sorted({event.status for event in _all(self.measured.events, Power) if event.status})
        began = any(isinstance(event, Result) for event in self.measured.events)
        return (
            ConditionProof(
                name="supply",
                wanted="cut",
                before=_charging_text(self.state_before),
                held=f"cut by {self.supply_way}; battery: {', '.join(statuses) or 'not sampled'}",
                proven=began,
                restored=self.supply_restored,
            ),
        )

    def _provenance(self) -> Provenance:
        program = self.program
        hello = next((event for event in self.measured.events if isinstance(event, Hello)), None)
        return Provenance(
            engine=self.assignment.job.cell.engine,
            program_hash=program.program_hash if program else "",
            agent_sha256=(program.agent_sha256 if program else "") or self.agent_sha256,
            agent_version=hello.agent_version if hello else "",
            model_sha256=self.assignment.job.cell.workload.model_sha256,
            model_bytes=self.assignment.job.cell.workload.language_model_bytes,
            driver_file=self.assignment.job.cell.driver,
            fingerprint=self.device.fingerprint,
            boot_id=self.device.boot_id,
            farm_version=farm_version(),
        )


def outcome_of(error: Exception) -> Outcome:
    """Stable causes fail, transient ones are lost (and retried); what nobody foresaw would happen again: it fails."""
    if isinstance(error, JobCancelled):
        return Outcome.CANCELLED
    if isinstance(error, TransientError):
        return Outcome.LOST
    return Outcome.FAILED


def cause_of(error: Exception) -> str:
    if isinstance(error, FarmError):
        return error.cause
    if isinstance(error, LimitExceeded):
        return "limit"
    return "compile" if isinstance(error, CompileError) else "internal"


def bound_to(events: Sequence[Event]) -> tuple[int, ...]:
    """Cores that the agent may use, as it read them back."""
    return next((event.cpus for event in events if isinstance(event, Device | Process)), ())


def retry_at(error: Exception) -> float | None:
    """Unix time at which an unmet condition may be met."""
    return time.time() + error.retry_after_s if isinstance(error, ConditionNotMet) else None


def _charging_text(state: DeviceState | None) -> str:
    charging = state.charging if state else None
    return {True: "a supply was connected", False: "no supply was connected", None: ""}[charging]


@cache
def farm_version() -> str:
    try:
        return version("pocketfarm")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return ""


def _all(events: Sequence[Event], kind: type[Kind]) -> tuple[Kind, ...]:
    return tuple(event for event in events if isinstance(event, kind))
