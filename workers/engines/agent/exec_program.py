"""Somebody else's program as a block: its files on the device, its runs below the agent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.model.event import Event, Line, Sample
from orchestrator.model.job import Job
from orchestrator.model.record import Outcome
from workers.connection.base import DeviceConnection
from workers.devices.install import put_files
from workers.engines.engine import Measured, Reader, Report, Run, Verdict
from workers.engines.powered import metered, read_meter
from workers.session.supply import DISCHARGING_S

from .drive import drive, run_folder
from .failure import raise_for
from .process import AgentRun, has_turn
from .program_failure import Causes, raise_for_process, signal_of
from .request import BlockRequest, expected_s, tenths, words

PROGRAMS = "programs"
"""Folder of the device for the files of programs."""


@dataclass(frozen=True, kw_only=True)
class ExecRequest(BlockRequest):
    """The options of `pocketfarm-agent exec`."""

    program: tuple[str, ...]
    place: str
    """The folder with its files, in which it runs."""

    def argv(self) -> list[str]:
        given = [word for name in ("TMPDIR", "HOME") for word in ("--variable", f"{name}={self.folder}")]
        return ["exec", "--folder", self.place, *given, *words(self.options()), "--detach", "--", *self.program]


@dataclass
class ExecProgram(Reader):
    job: Job
    argv: list[str]
    files: dict[str, Path]
    identity: str
    """The hash of the files."""
    own_causes: Causes = field(default=(), init=False)
    """Words of the program's own beside those of loaders."""
    agent: AgentRun = field(default_factory=AgentRun, init=False)
    serial: str = field(default="", init=False)
    unread: str = field(default="", init=False)
    """The reason why what it left is no result; empty: it is one."""

    @property
    @abstractmethod
    def runs_once(self) -> bool:
        """Return whether one run makes all samples of a block."""

    @property
    def what(self) -> str:
        """Return what runs, in a message's words."""
        return " ".join(self.argv)

    @abstractmethod
    def read(self, events: list[Event]) -> Iterator[Event]:
        """Yield the same events, with the samples that the program told in the place of its runs."""

    def progress(self, line: Line) -> tuple[int, float] | None:  # noqa: ARG002
        """Return the samples that it has taken and how many ms the last one took, where a line tells them."""
        return None

    def put(self, connection: DeviceConnection, verified: set[str]) -> str:
        """Bring its files to the device; returns the folder in which it runs; empty: it has none."""
        if not self.files:
            return ""
        return put_files(connection, PROGRAMS, self.identity, self.files, mode=0o755, verified=verified)

    def collect(self, connection: DeviceConnection, folder: str) -> None:
        """Take what a run that went well left in its folder; most leave nothing."""

    def run(self, run: Run) -> Measured:
        run.check()
        sampling = self.job.sampling
        self.serial, self.unread = run.member.facts.serial, ""  # a copy of the block before has that one's
        run.report("pushing", 0, sampling.samples, None)
        connection = run.trips.ahead
        member = replace(run.member, connection=connection)
        folder = f"{connection.folder}/runs/{run.name.replace('/', '-')}"
        with run_folder(connection, folder, run.tidy):
            place = self.put(connection, run.trips.verified) or folder
            run.check()
            run.report("waiting", 0, sampling.samples, None)
            request = self._request(run, folder, place)
            with metered(run.meter) as series:
                cut = run.cut(expected_s(sampling.deadline, sampling.idle, sampling.load))
                self.agent = drive(member, request, run.check, _Counter(self, run.report), cut)
                series += read_meter(run.meter, self.agent.events) if run.meter else ()
            went_well = not (self.agent.killed or self.agent.error)
            if went_well:
                self.collect(connection, folder)
        events = list(self.read(self.agent.events) if went_well else self.agent.events)
        return Measured(
            events,
            went_well=went_well and not self.unread,
            resumed=self.agent.resumed,
            evidence=self.agent.evidence or tuple(line.text[:500] for line in lines_of(events)[-20:] if not went_well),
            series=tuple(series),
        )

    def judge(self) -> Verdict:
        agent = self.agent
        if agent.killed or signal_of(agent.events) == "SIGKILL":
            told = (
                f"; its log: {agent.killed_by}"
                if agent.killed_by
                else " without a word: most likely out of memory; take a smaller model or batch"
            )
            return Verdict(Outcome.KILLED, "killed", (f"the device ended the program{told}",))
        raise_for_process(agent, self.what, self.serial, self.own_causes)
        raise_for(agent, self.serial)
        return self.judge_result()

    @abstractmethod
    def judge_result(self) -> Verdict:
        """Judge a run that ended by itself, with 0. Raises ProgramFailed."""

    def read_again(self, events: Sequence[Event]) -> Sequence[Event]:
        self.agent, self.unread = AgentRun(list(events)), ""
        return list(self.read(self.agent.events))

    def _request(self, run: Run, folder: str, place: str) -> ExecRequest:
        sampling, await_s = self.job.sampling, DISCHARGING_S[self.job.conditions.supply]
        once = self.runs_once
        return ExecRequest(
            folder=folder,
            marker=run.member.marker + run.name,
            deadline_s=sampling.deadline + await_s,
            power_period_ms=max(1, round(self.job.measure.power_period * 1000)) if self.job.measures_power else 0,
            warmup=0 if once else sampling.warmup,
            samples=1 if once else sampling.samples,
            idle_ms=round(1000 * sampling.idle),
            load_ms=0 if once else round(1000 * sampling.load),
            stop_temp_dc=tenths(self.job.conditions.stop_temp),
            warmup_stable=0.0 if once else sampling.warmup_stable or 0.0,
            cpus=run.cpus,
            await_discharging_ms=round(1000 * await_s),
            discharging_sign=run.discharging_sign if await_s else 0,
            program=tuple(self.argv),
            place=place,
        )


class _Counter:
    """Turns events into progress; the samples of a program that runs once are not known before it ends."""

    def __init__(self, program: ExecProgram, report: Report) -> None:
        self._program, self._report = program, report
        self._total = program.job.sampling.warmup + program.job.sampling.samples
        self._done, self._has_begun = 0, False

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sample):
            self._tell(self._done + 1, event.duration_ns / 1e6)
        elif isinstance(event, Line) and (progress := self._program.progress(event)):
            self._tell(*progress)
        elif has_turn(event) and not self._has_begun:
            self._has_begun = True
            self._report("running", 0, self._total, None)

    def _tell(self, done: int, last_ms: float | None) -> None:
        self._done = done
        self._report("running", min(done, self._total), self._total, last_ms)


def lines_of(events: Iterable[Event]) -> list[Line]:
    """Return what the program printed."""
    return [event for event in events if isinstance(event, Line)]
