"""A plan as a program: compiled for one device, run by the agent, judged against the NumPy reference."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.device import Precision
from orchestrator.model.record import Outcome, Replan
from workers.devices.fleet import Member
from workers.devices.install import file_sha256, install_build
from workers.engines.agent import expected_s, is_crash, raise_for
from workers.engines.engine import Coming, Host, Measured, Program, Run, Verdict, Work
from workers.engines.models import Arrays, predictions, verify, wrong
from workers.engines.told import answered
from workers.session.conditions.affinity import listed

from .agent_block import block_of
from .doubts import own_doubts
from .measure import Measurement, measure
from .measure.ports import TOKENS
from .measure.prepared import expect
from .measure.replan import run_within_limits
from .plans.compile_limit import compiling_within
from .plans.plan_store import Plans, StoredPlan
from .training import trained_model

CAUSES = {"wrong_output": Outcome.INVALID, "killed": Outcome.KILLED, "crashed": Outcome.KILLED}


@dataclass
class PlanProgram(Program):
    """Holds the plan, the inputs of the block, and the outputs that it should come to."""

    host: Host
    plans: Plans
    work: Work
    stored: StoredPlan
    inputs: Arrays = field(default_factory=dict)
    reference: Arrays = field(default_factory=dict)
    measured: Measurement | None = field(default=None, init=False)

    @classmethod
    def of(cls, host: Host, plans: Plans, work: Work) -> PlanProgram:
        """Compile for the device, within what is known of its driver. Raises Unsupported and the compiler's errors."""
        stored, job = compiled(plans, work), work.assignment.job
        made = cls(stored.plan_hash, host, plans, work, stored)
        made.layer_memory = stored.layer_memory
        with compiling_within(job.sampling.deadline, work.member.facts.serial, work.check):
            if (text := job.cell.text) is not None:
                made.inputs = {TOKENS: plans.models.texts.tokens(job.cell.workload, text)}
                return made
            made.inputs = plans.models.inputs(job.cell.workload, job.cell.batch, job.examples)
            if job.cell.workload.training is None:
                made.reference = plans.models.reference(job.cell.workload, job.cell.batch, job.examples)
        return made

    def coming(self, run: Run) -> Coming:
        block = block_of(run.assignment, run.cpus, run.discharging_sign)
        following = expect(run.trips, run.member, self.stored, self.inputs, block)
        return Coming(following.commands(run.trips.verified), [following.undoing])

    def run(self, run: Run) -> Measured:
        member = self._with_its_agent(run.member)
        block = block_of(run.assignment, run.cpus, run.discharging_sign)

        def once() -> Measurement:
            return measure(
                member, self.stored, self.inputs, block, run.check, run.report,
                meter=run.meter, cut=run.cut(expected_s(block.deadline_s, block.idle_s, block.load_s)), tidy=run.tidy,
                trips=run.trips,
            )  # fmt: skip

        def replan(learnt: Replan) -> None:
            self.replans += (learnt,)
            self.stored = compiled(self.plans, replace(self.work, assignment=run.assignment))
            self.program_hash, self.layer_memory = self.stored.plan_hash, self.stored.layer_memory

        api = run.assignment.job.cell.backend
        measured = self.measured = run_within_limits(self.plans.kernel_limits, member.facts, api, once, replan)
        agent = measured.run
        return Measured(
            events=agent.events,
            went_well=not (agent.killed or agent.error),
            resumed=agent.resumed,
            evidence=agent.evidence,
            series=measured.series,
            earlier=measured.earlier,
        )

    def judge(self) -> Verdict:
        assert self.measured is not None
        cell, agent = self.work.assignment.job.cell, self.measured.run
        if agent.killed:
            told = f"; its log: {agent.killed_by}" if agent.killed_by else " without a word: most likely out of memory"
            cause = "crashed" if is_crash(agent.killed_by) else "killed"
            return Verdict(Outcome.KILLED, cause, (f"the device ended the agent{told}",))
        raise_for(agent, self.work.member.facts.serial)
        if cell.text is not None:
            verdict = answered(self.plans.models, cell, agent.events)
        else:
            verdict = self._verified(self.measured) if cell.workload.training is None else self._trained(self.measured)
        doubts = own_doubts(cell, agent.events, self.layer_memory, verdict.checks)
        return replace(verdict, doubts=(*verdict.doubts, *doubts))

    def _verified(self, measured: Measurement) -> Verdict:
        job = self.work.assignment.job
        precision = Precision(job.cell.precision)
        rounded = partial(self.plans.models.rounded, precision, job.cell.workload, job.cell.batch, job.examples)
        checks = verify(measured.outputs, self.reference, precision, rounded)
        predicted = predictions(measured.each, job.examples) if job.examples is not None else None
        reasons = wrong(checks)
        outcome, cause = (Outcome.INVALID, "wrong_output") if reasons else (Outcome.OK, "")
        return Verdict(outcome, cause, reasons, checks=checks, predictions=predicted)

    def _trained(self, measured: Measurement) -> Verdict:
        """Keep the trained model. Raises DeviceSick."""
        with tempfile.NamedTemporaryFile(prefix="pocketfarm-") as file:
            file.write(measured.checkpoint)
            file.flush()
            model, reconstructions = trained_model(
                self.work.assignment.job.cell, self.plans, self.stored, Path(file.name), Artifacts(self.host.state)
            )
        for sha256 in (model.onnx_sha256, model.checkpoint_sha256):
            self.host.give(sha256)
        return Verdict(trained=model, reconstructions=reconstructions)

    def _with_its_agent(self, member: Member) -> Member:
        """The device with the build of the agent that the cell names, if it names one."""
        build = self.plans.agent(self.work.assignment.job.cell, member.facts)
        if build is None:
            return member
        self.agent_sha256 = file_sha256(build)
        return replace(member, agent=install_build(member.connection, build), agent_sha256=self.agent_sha256)


def compiled(plans: Plans, work: Work) -> StoredPlan:
    """Return the plan of a block for its device."""
    job, facts = work.assignment.job, work.member.facts
    work.report("compiling", 0, 0, None)
    with compiling_within(job.sampling.deadline, facts.serial, work.check):
        return plans.plan(job.cell, facts, cpus=len(listed(work.cpus)) if work.cpus else 0)
