"""A command as a program: its samples read from what it printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.model.event import Event, Line, Sample
from orchestrator.model.experiment.engine_settings import Unread
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt
from workers.engines.agent import PrintedProgram, came_one_by_one, last_words, lines_of, placed, raise_failure
from workers.engines.engine import Verdict

from .doubts import DOUBTS


@dataclass
class CommandProgram(PrintedProgram):
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
        if self.load is None and self.job.cell.printed and self.job.measures_power:
            yield _doubt("whole_process")

    def told(self, run: Sample, lines: Sequence[Line]) -> Sequence[Event]:
        if (printed := self.job.cell.printed) is None:
            return [run]
        found, wanted = printed.samples(lines), self.job.sampling.samples if self.runs_once else 1
        if len(found) != wanted:
            raise Unread(f"{counted(len(found), 'sample was', 'samples were')} printed, and {wanted} expected")
        samples = placed(run, found)
        if self.runs_once and came_one_by_one(run, found):
            self.load = (samples[0].start_ns, found[-1].t_ns)
        return samples


def _doubt(word: str) -> Doubt:
    return Doubt(code=f"command.{word}", advice=DOUBTS[word])
