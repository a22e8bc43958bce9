"""An engine of one's own in one file: each sample is a nap on the device."""

from __future__ import annotations

import time
from dataclasses import dataclass

from orchestrator.model.device import EngineAxis
from orchestrator.model.event import Event, Sample
from orchestrator.model.record import Outcome
from workers.engines import Engine, Measured, Program, Run, Verdict, Work, powered


@dataclass
class Nap(Program):
    nap_ms: int
    is_killed: bool = False

    def run(self, run: Run) -> Measured:
        events: list[Event] = []
        with powered(run, 10.0, events) as series:
            for index in range(run.assignment.job.sampling.samples):
                run.check()
                start_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                if run.trips.ahead.shell(["sleep", str(self.nap_ms / 1000)]).code == 137:
                    self.is_killed = True
                    break
                took = {"start_ns": start_ns, "duration_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME) - start_ns}
                events.append(Sample(seq=index, t_ns=start_ns, index=index, phase="timed", **took))
                run.report("running", index + 1, run.assignment.job.sampling.samples, took["duration_ns"] / 1e6)
        return Measured(events, went_well=not self.is_killed, series=tuple(series))

    def judge(self) -> Verdict:
        if self.is_killed:
            return Verdict(Outcome.KILLED, "killed", ("the device ended the nap",))
        return Verdict(doubts=(NapEngine.doubt("asleep"),))


class NapEngine(Engine):
    name, takes = "nap", ("network",)
    axes = (EngineAxis(name="nap_ms", help="how long a nap is", default=100, bounds=(10, 1000)),)
    doubts = {"asleep": "wake it: a nap says nothing of a network"}  # noqa: RUF012
    causes = {"killed": Outcome.KILLED}  # noqa: RUF012

    def prepare(self, work: Work) -> Nap:
        cell, values = work.assignment.job.cell, self.values(work.assignment.job.cell)
        return Nap(f"{cell.workload.network}, dreamt of for {values['nap_ms']} ms", int(values["nap_ms"]))


ENGINE = NapEngine
