"""An engine that waits: for demonstrations, and for tests of what stands around an engine.

A wait is slept in pieces, so that a cancelled job ends soon, and nothing is left running on the device. Durations are
the device's own, in steps of 10 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.model.base import content_hash
from orchestrator.model.device import DeviceFacts
from orchestrator.model.errors import DeviceSick, SpecError, TransientError
from orchestrator.model.event import Event, Phase, PhaseName, Result, Sample
from orchestrator.model.experiment import Sampling
from orchestrator.model.record import Outcome
from workers.connection.base import ShellResult
from workers.engines.engine import Engine, Measured, Program, Run, Verdict, Work
from workers.engines.powered import powered
from workers.power.clock_mapping import clock_of

PIECE_S = 0.5
KILLED = 128 + 9
"""Exit status of a command that the device ended."""
LATE_S = 0.1
"""A device is busy that sleeps longer than it was asked by so much."""
UPTIME = ["cat", "/proc/uptime"]
DOUBTS = {"late": "leave the device alone: it slept longer than it was asked, and its figures are of no use"}
CAUSES = {"killed": Outcome.KILLED}


class WaitKilled(TransientError):
    """The device ended a `sleep`."""

    cause = "killed"


@dataclass
class WaitProgram(Program):
    wait_s: float
    _ahead_ns: int = field(default=0, init=False)
    """The clock of the agent's events less the device's /proc/uptime."""
    _late_s: float = field(default=0.0, init=False)
    _is_killed: bool = field(default=False, init=False)

    def run(self, run: Run) -> Measured:
        sampling = run.assignment.job.sampling
        events: list[Event] = []
        device_ns, _ = clock_of(run.trips.ahead, run.member.agent)()
        self._ahead_ns = device_ns - _uptime_ns(run, run.trips.ahead.shell(UPTIME))
        with powered(run, least_s(sampling, self.wait_s), events) as series:
            try:
                self._phase(run, events, "idle_before", 0, sampling.idle)
                self._phase(run, events, "warmup", sampling.warmup, 0.0)
                self._phase(run, events, "load", sampling.samples, sampling.load)
                self._phase(run, events, "idle_after", 0, sampling.idle)
            except WaitKilled:
                self._is_killed = True
        if not self._is_killed:
            events.append(_result(events))
        return Measured(events, went_well=not self._is_killed, series=tuple(series))

    def judge(self) -> Verdict:
        if self._is_killed:
            return Verdict(Outcome.KILLED, "killed", ("the device ended the wait",))
        return Verdict(doubts=(WaitEngine.doubt("late", f"{self._late_s:.2f} s"),) if self._late_s > LATE_S else ())

    def _phase(self, run: Run, events: list[Event], name: PhaseName, samples: int, least: float) -> None:
        """Wait for so many samples, and until the phase has lasted `least` seconds; then tell that it is over."""
        job, warmup = run.assignment.job, run.assignment.job.sampling.warmup
        first_ns, lasted_s, done = None, 0.0, 0
        while done < samples or lasted_s < least:
            start_ns, end_ns = self._slept(run, self.wait_s if samples else least - lasted_s)
            first_ns = start_ns if first_ns is None else first_ns
            lasted_s, done = (end_ns - first_ns) / 1e9, done + 1
            if samples:
                index = done - 1 if name == "warmup" else warmup + done - 1
                events.append(Sample(seq=len(events), t_ns=end_ns, index=index, start_ns=start_ns,
                                     phase="warmup" if name == "warmup" else "timed",
                                     duration_ns=end_ns - start_ns, inferences=job.inferences))  # fmt: skip
                total = max(warmup + job.sampling.samples, index + 1)
                run.report("running", index + 1, total, (end_ns - start_ns) / 1e6)
        if first_ns is not None:
            events.append(Phase(seq=len(events), t_ns=end_ns, phase=name, start_ns=first_ns, end_ns=end_ns))

    def _slept(self, run: Run, wait_s: float) -> tuple[int, int]:
        """Sleep on the device; return start and end by the agent's clock. Raises WaitKilled, DeviceSick."""
        first_ns, left_s = None, wait_s
        while True:
            run.check()
            piece_s = min(left_s, PIECE_S)
            asked = [UPTIME, ["sleep", f"{piece_s:.3f}"], UPTIME]
            before, slept, after = run.trips.ahead.shells(asked, deadline_s=piece_s + 30.0)
            if slept.code == KILLED:
                raise WaitKilled("the device ended `sleep`", device=run.member.facts.serial)
            if slept.code:
                said = slept.stderr.decode(errors="replace").strip()[:200]
                raise DeviceSick(f"it cannot sleep: {said}", device=run.member.facts.serial)
            begun_ns, ended_ns = _uptime_ns(run, before), _uptime_ns(run, after)
            self._late_s = max(self._late_s, (ended_ns - begun_ns) / 1e9 - piece_s)
            first_ns, left_s = begun_ns if first_ns is None else first_ns, left_s - piece_s
            if left_s <= 0:
                start_ns = first_ns + self._ahead_ns
                return start_ns, start_ns + max(ended_ns - first_ns, round(wait_s * 1e9))


class WaitEngine(Engine):
    name, takes = "wait", ("wait",)
    doubts, causes = DOUBTS, CAUSES

    def lacks(self, device: DeviceFacts) -> str:
        return "it has no `sleep`" if "sleep" in device.tools_missing else ""

    def prepare(self, work: Work) -> WaitProgram:
        job = work.assignment.job
        wait_s = job.cell.workload.wait
        if wait_s is None:
            raise SpecError("engine `wait` runs a `workload.wait`", remedy="give `workload: {wait: 200 ms}`")
        if (long_s := least_s(job.sampling, wait_s)) > job.sampling.deadline:
            raise SpecError(
                f"the waits of a block take {long_s:g} s, and its deadline is {job.sampling.deadline:g} s",
                remedy="raise sampling.deadline",
            )
        return WaitProgram(content_hash({"engine": self.name, "wait_s": wait_s}), wait_s)


def least_s(sampling: Sampling, wait_s: float) -> float:
    """Return the time that a block takes at least."""
    return 2 * sampling.idle + sampling.warmup * wait_s + max(sampling.samples * wait_s, sampling.load)


def _result(events: list[Event]) -> Result:
    samples = [event for event in events if isinstance(event, Sample)]
    run_ns = samples[-1].t_ns - samples[0].start_ns
    return Result(seq=len(events), t_ns=samples[-1].t_ns, samples=len(samples), run_ns=run_ns)


def _uptime_ns(run: Run, told: ShellResult) -> int:
    try:
        return round(float(told.stdout.split()[0]) * 1e9)
    except (IndexError, ValueError) as e:
        raise DeviceSick("its /proc/uptime cannot be read", device=run.member.facts.serial) from e


ENGINE = WaitEngine
