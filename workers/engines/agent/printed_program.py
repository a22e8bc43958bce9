"""A program that tells its samples in what it prints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from orchestrator.model.event import Event, Line, Phase, Process, Sample
from orchestrator.model.experiment.engine_settings import PrintedSample, Unread

from .exec_program import ExecProgram, lines_of

OVERLAP, LIVED = 0.1, 1.05
"""Shares: of a sample that may lie within the one before, and of a program's life that a sample of it may take."""
LATE_NS, LATE_SHARE = 50_000_000, 0.25
"""A line that is printed when its sample ends comes so late at most: a share of the sample, or ns that count for little
in the 30 s of an energy's load and are a share of all samples."""


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
                    told, process = self.told(event, lines.get(key, ())), processes[key]
                    if (dropped := process.dropped_bytes) and told != [event]:
                        raise Unread(f"{dropped} bytes of output were beyond what is kept: print less")
                    _check_lengths(told, process)
                except Unread as e:
                    self.unread, self.unread_cause = self.unread or str(e), self.unread_cause or e.cause
                    continue
                yield from told
            elif isinstance(event, Phase) and event.phase == "load" and self.load:
                yield event.model_copy(update={"start_ns": self.load[0], "end_ns": self.load[1]})
            else:
                yield event


def _check_lengths(told: Sequence[Event], process: Process) -> None:
    """Raise Unread where a sample, or the runs that it is the mean of, took longer than the program lived."""
    lived_ns = process.end_ns - process.start_ns
    longest_ns = max((each.duration_ns * each.mean_of for each in told if isinstance(each, Sample)), default=0)
    if longest_ns > LIVED * lived_ns:
        raise Unread(f"it tells of {longest_ns / 1e9:.4g} s, and ran for {lived_ns / 1e9:.4g} s: is the unit right?")


def came_one_by_one(run: Sample, found: Sequence[PrintedSample]) -> bool:
    """Return whether each line came when its sample was over, or not long after: a busy device reads lines late."""
    if not found or found[0].t_ns - found[0].duration_ns < run.start_ns - OVERLAP * found[0].duration_ns:
        return False
    slack = min(LATE_NS, LATE_SHARE * sum(each.duration_ns for each in found))
    lateness = (each.t_ns - end for each, end in zip(found, _ends(found, found[-1].t_ns), strict=True))
    return all(late <= max(OVERLAP * each.duration_ns, slack) for each, late in zip(found, lateness, strict=True))


def placed(run: Sample, found: Sequence[PrintedSample], mean_of: int = 1) -> list[Sample]:
    """Return the samples of a run of the program, each as late as its line and the samples behind it allow. `mean_of`:
    the runs of which each is the mean."""
    last_ns = run.start_ns + run.duration_ns  # a line may be read afterwards
    samples = []
    for place, (each, end_ns) in enumerate(zip(found, _ends(found, last_ns, mean_of), strict=True)):
        update = {
            "index": run.index if len(found) == 1 else place,
            "start_ns": max(run.start_ns, end_ns - each.duration_ns * mean_of),
            "duration_ns": each.duration_ns,
            "mean_of": mean_of,
        }
        samples.append(run.model_copy(update=update))
    return samples


def _ends(found: Sequence[PrintedSample], last_ns: int, mean_of: int = 1) -> list[int]:
    """Return when each sample ended at the latest: before its line came, and before the next began."""
    ends = []
    for each in reversed(found):
        ends.append(last_ns := min(last_ns, each.t_ns))
        last_ns -= each.duration_ns * mean_of
    return ends[::-1]
