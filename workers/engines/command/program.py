"""A command as a program: its samples read from what it printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from orchestrator.model.event import Event, Phase, Process, Sample
from orchestrator.model.experiment.engine_settings import PrintedSample, Unread
from orchestrator.model.record import Doubt
from workers.engines.agent import ExecProgram, last_words, lines_of, raise_failure
from workers.engines.engine import Verdict

from .doubts import DOUBTS

OVERLAP = 0.1
"""A sample that is printed when it ends begins after the one before, but for this share of it."""


@dataclass
class CommandProgram(ExecProgram):
    _is_whole: bool = field(default=False, init=False)
    """The samples are parts of a phase that nobody told from the rest of the program."""

    @property
    def runs_once(self) -> bool:
        return "samples" in self.job.cell.workload.placeholders

    @property
    def what(self) -> str:
        return str(self.job.cell.workload.command)

    def judge_result(self) -> Verdict:
        if self.unread:
            remedy = "compare `engine.result` with what it printed; the record keeps all of it"
            said = f"its output is not as `engine.result` says: {self.unread}{last_words(lines_of(self.agent.events))}"
            raise_failure("unread_output", said, self.serial, remedy)
        return Verdict(doubts=tuple(self._doubts()))

    def _doubts(self) -> Iterator[Doubt]:
        yield _doubt("unchecked")
        if self._is_whole and self.job.measures_power:
            yield _doubt("whole_process")

    def read(self, events: list[Event]) -> Iterator[Event]:
        if (printed := self.job.cell.printed) is None:
            yield from events
            return
        lines = {key: list(each) for key, each in groupby(lines_of(events), lambda line: (line.phase, line.index))}
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
                    self.unread = self.unread or str(e)
                    continue
                if len(found) != wanted:
                    self.unread = self.unread or f"{len(found)} samples were printed, and {wanted} expected"
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
