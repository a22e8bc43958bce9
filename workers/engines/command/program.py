"""A command as a program: its files on the device, its runs below the agent, its samples read from what it printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from orchestrator.model.event import Event, Line, Phase, Process, Sample
from orchestrator.model.experiment import SETUP_S, SUSTAINED_MARGIN, Sampling
from orchestrator.model.experiment.engine_settings import PrintedSample, Unread
from orchestrator.model.job import Job
from orchestrator.model.record import Doubt, Outcome
from workers.devices.install import put_files
from workers.engines.agent import AgentRun, BlockRequest, drive, has_turn, raise_for, run_folder, words
from workers.engines.engine import Measured, Program, Report, Run, Verdict
from workers.engines.powered import metered, read_meter
from workers.session.supply import DISCHARGING_S

from .doubts import DOUBTS
from .failure import raise_for_output, raise_for_process, signal_of

PROGRAMS = "programs"
"""Folder of the device for the files of commands."""
OVERLAP = 0.1
"""A sample that is printed when it ends begins after the one before, but for this share of it."""


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
class CommandProgram(Program):
    job: Job
    argv: list[str]
    files: dict[str, Path]
    identity: str
    """The hash of the files."""
    _agent: AgentRun = field(default_factory=AgentRun, init=False)
    _serial: str = field(default="", init=False)
    _unread: str = field(default="", init=False)
    _is_whole: bool = field(default=False, init=False)
    """The samples are parts of a phase that nobody told from the rest of the program."""

    @property
    def runs_once(self) -> bool:
        """Return whether one run prints all samples of a block."""
        return "samples" in self.job.cell.workload.placeholders

    def run(self, run: Run) -> Measured:
        run.check()
        self._serial, self._unread = run.member.facts.serial, ""  # a copy of the block before has that one's
        run.report("pushing", 0, self.job.sampling.samples, None)
        connection = run.trips.ahead
        member = replace(run.member, connection=connection)
        folder = f"{connection.folder}/runs/{run.name.replace('/', '-')}"
        with run_folder(connection, folder, run.tidy):
            place = folder
            if self.files:
                verified = run.trips.verified
                place = put_files(connection, PROGRAMS, self.identity, self.files, mode=0o755, verified=verified)
            run.check()
            run.report("waiting", 0, self.job.sampling.samples, None)
            request = self._request(run, folder, place)
            with metered(run.meter) as series:
                cut = run.cut(_expected_s(self.job.sampling))
                self._agent = drive(member, request, run.check, _Counter(self.job, run.report), cut)
                series += read_meter(run.meter, self._agent.events) if run.meter else ()
        went_well = not (self._agent.killed or self._agent.error)
        events = list(self._read(self._agent.events) if went_well else self._agent.events)
        return Measured(
            events,
            went_well=went_well and not self._unread,
            resumed=self._agent.resumed,
            evidence=self._agent.evidence or tuple(line.text[:500] for line in _lines(events)[-20:] if not went_well),
            series=tuple(series),
        )

    def judge(self) -> Verdict:
        serial, agent = self._serial, self._agent
        if agent.killed or signal_of(agent.events) == "SIGKILL":
            told = f"; its log: {agent.killed_by}" if agent.killed_by else " without a word: most likely out of memory"
            return Verdict(Outcome.KILLED, "killed", (f"the device ended the program{told}",))
        raise_for_process(agent, self.job.cell.workload, serial)
        raise_for(agent, serial)
        raise_for_output(self._unread, _lines(agent.events), serial)
        return Verdict(doubts=tuple(self._doubts()))

    def _doubts(self) -> Iterator[Doubt]:
        yield _doubt("unchecked")
        if self._is_whole and self.job.measures_power:
            yield _doubt("whole_process")

    def _request(self, run: Run, folder: str, place: str) -> ExecRequest:
        sampling, await_s = self.job.sampling, DISCHARGING_S[self.job.conditions.supply]
        return ExecRequest(
            folder=folder,
            marker=run.member.marker + run.name,
            deadline_s=sampling.deadline + await_s,
            power_period_ms=max(1, round(self.job.measure.power_period * 1000)) if self.job.measures_power else 0,
            warmup=0 if self.runs_once else sampling.warmup,
            samples=1 if self.runs_once else sampling.samples,
            idle_ms=round(1000 * sampling.idle),
            load_ms=round(1000 * sampling.load),
            warmup_stable=sampling.warmup_stable or 0.0,
            cpus=run.cpus,
            await_discharging_ms=round(1000 * await_s),
            discharging_sign=run.discharging_sign if await_s else 0,
            program=tuple(self.argv),
            place=place,
        )

    def _read(self, events: list[Event]) -> Iterator[Event]:
        """The same events, with the samples that the program printed in the place of its runs."""
        if (printed := self.job.cell.printed) is None:
            yield from events
            return
        lines = {key: list(each) for key, each in groupby(_lines(events), lambda line: (line.phase, line.index))}
        processes = {(event.phase, event.index): event for event in events if isinstance(event, Process)}
        wanted, load = self.job.sampling.samples if self.runs_once else 1, None
        for event in events:
            if isinstance(event, Sample):
                key = (event.phase, event.index)
                try:
                    found = printed.samples(lines.get(key, ()))
                    if dropped := processes[key].dropped_bytes:
                        raise Unread(f"{dropped} bytes of output were beyond what is kept: print less")
                except Unread as e:
                    self._unread = self._unread or str(e)
                    continue
                if len(found) != wanted:
                    self._unread = self._unread or f"{len(found)} samples were printed, and {wanted} expected"
                    continue
                samples = list(_placed(event, found))
                yield from samples
                if self.runs_once and _came_one_by_one(event, found):
                    load = (samples[0].start_ns, found[-1].t_ns)
            elif isinstance(event, Phase) and event.phase == "load" and load:
                yield event.model_copy(update={"start_ns": load[0], "end_ns": load[1]})
            else:
                yield event
        self._is_whole = load is None


def _doubt(word: str) -> Doubt:
    return Doubt(code=f"command.{word}", advice=DOUBTS[word])


class _Counter:
    """Turns events into progress; the samples of a program that runs once are not known before it ends."""

    def __init__(self, job: Job, report: Report) -> None:
        self._total, self._report, self._done, self._has_begun = (
            job.sampling.warmup + job.sampling.samples,
            report,
            0,
            False,
        )

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sample):
            self._done += 1
            self._report("running", min(self._done, self._total), self._total, event.duration_ns / 1e6)
        elif has_turn(event) and not self._has_begun:
            self._has_begun = True
            self._report("running", 0, self._total, None)


def _placed(run: Sample, found: list[PrintedSample]) -> Iterator[Sample]:
    """The samples of a run of the program: where their lines came if they came one by one, else one after the other up
    to its end."""
    end_ns, one_by_one = run.start_ns + run.duration_ns, _came_one_by_one(run, found)
    left_ns = sum(each.duration_ns for each in found)
    for place, each in enumerate(found):
        start_ns = max(run.start_ns, (each.t_ns - each.duration_ns) if one_by_one else end_ns - left_ns)
        left_ns -= each.duration_ns
        index = run.index if len(found) == 1 else place
        yield run.model_copy(update={"index": index, "start_ns": start_ns, "duration_ns": each.duration_ns})


def _came_one_by_one(run: Sample, found: list[PrintedSample]) -> bool:
    """Return whether each line came when its sample was over: none begins before the one before it has ended."""
    begun = [each.t_ns - each.duration_ns for each in found]
    slack = [OVERLAP * each.duration_ns for each in found]
    ends = [run.start_ns, *(each.t_ns for each in found)]
    return bool(found) and all(start + some >= end for start, some, end in zip(begun, slack, ends, strict=False))


def _lines(events: Iterable[Event]) -> list[Line]:
    return [event for event in events if isinstance(event, Line)]


def _expected_s(sampling: Sampling) -> float:
    """The time that a block needs from its start, at most."""
    if not sampling.load:
        return sampling.deadline
    return min(sampling.deadline, 2 * sampling.idle + (1 + SUSTAINED_MARGIN) * sampling.load + SETUP_S)
