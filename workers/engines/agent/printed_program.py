"""A program that tells its samples in what it prints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from orchestrator.model.event import Event, Line, Phase, Process, Sample
from orchestrator.model.experiment.engine_settings import PrintedSample, Unread

from .exec_program import ExecProgram, lines_of

OVERLAP = 0.1
"""A sample that is printed when it ends begins after the one before, but for this share of it."""


@dataclass
class PrintedProgram(ExecProgram):
    unread_cause: str = field(default="", init=False)
    load: tuple[int, int] | None = field(default=None, init=False)
    """Start and end of the samples, where they are told from the rest of the program."""

    @abstractmethod
    def told(self, run: Sample, lines: Sequence[Line]) -> Sequence[Event]:
        """Return the events that one run of the program comes to, by what it printed. May set `load`. Raises Unread."""

    def read(self, events: list[Event]) -> Iterator[Event]:
        self.load = None
        lines = {key: list(each) for key, each in groupby(lines_of(events), lambda line: (line.phase, line.index))}
        processes = {(event.phase, event.index): event for event in events if isinstance(event, Process)}
        for event in events:
            if isinstance(event, Sample):
                key = (event.phase, event.index)
                try:
                    told = self.told(event, lines.get(key, ()))
                    if (dropped := processes[key].dropped_bytes) and told != [event]:
                        raise Unread(f"{dropped} bytes of output were beyond what is kept: print less")
                except Unread as e:
                    self.unread, self.unread_cause = self.unread or str(e), self.unread_cause or e.cause
                    continue
                yield from told
            elif isinstance(event, Phase) and event.phase == "load" and self.load:
                yield event.model_copy(update={"start_ns": self.load[0], "end_ns": self.load[1]})
            else:
                yield event


def came_one_by_one(run: Sample, found: Sequence[PrintedSample]) -> bool:
    """Return whether each line came when its sample was over: none begins before the one before it has ended."""
    begun = [each.t_ns - each.duration_ns for each in found]
    slack = [OVERLAP * each.duration_ns for each in found]
    ends = [run.start_ns, *(each.t_ns for each in found)]
    return bool(found) and all(start + some >= end for start, some, end in zip(begun, slack, ends, strict=False))


def placed(run: Sample, found: Sequence[PrintedSample], mean_of: int = 1) -> list[Sample]:
    """Return the samples of a run of the program: where their lines came if they came one by one, else one after the
    other up to the last line. `mean_of`: the runs of which each is the mean."""
    one_by_one, last_ns = came_one_by_one(run, found), run.start_ns + run.duration_ns  # a line may be read afterwards
    left_ns = sum(each.duration_ns for each in found) * mean_of
    samples = []
    for place, each in enumerate(found):
        start_ns = min((each if one_by_one else found[-1]).t_ns, last_ns)
        start_ns -= each.duration_ns * mean_of if one_by_one else left_ns
        left_ns -= each.duration_ns * mean_of
        update = {
            "index": run.index if len(found) == 1 else place,
            "start_ns": max(run.start_ns, start_ns),
            "duration_ns": each.duration_ns,
            "mean_of": mean_of,
        }
        samples.append(run.model_copy(update=update))
    return samples
