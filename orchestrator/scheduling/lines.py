"""The attempts that a device is given at once: a line of short blocks runs in one session.

A line lasts some two seconds at most, by what further blocks of the experiment took so far, and less where other
experiments wait for the device. Nothing is lost with what was learnt: a scheduler that has just started gives one
attempt, then two, and then knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from orchestrator.model.live.lease import LINE_MOST, LINE_S
from orchestrator.model.record import Outcome, Record

from .queue_view import QueueView

RIVAL_S = 0.5
"""The time that a line may last where others wait for the device."""
FILL = 0.75
"""The share of that time for blocks as they were on average: what does not fit after all is handed back."""
NEWEST = 0.2
"""Weight of the newest block in the average."""
MOST = 1000
"""Experiments that are remembered."""

_MEASURED = (Outcome.OK, Outcome.INVALID)
_Cell = tuple[str, str]
"""Experiment and cell."""
_Times = dict[str, dict[str, float]]
"""Seconds by experiment and cell."""


class Lines:
    """Learns from the records that are taken in how long one more block of a session takes."""

    def __init__(self, queue: QueueView) -> None:
        self._queue = queue
        self._took_s: _Times = {}
        """The time of a block that had stood in line, from its begin to its record."""
        self._agent_s: _Times = {}
        """The agent's own, of any block."""

    def note(self, record: Record) -> Callable[[], None]:
        """A block is over: what is learnt when its record is kept."""
        steps = [each for each in record.setup if each.step != "slot"]  # there it waited for others
        if record.outcome not in _MEASURED or not steps:
            return lambda: None
        last_ns = max([each.t_ns for each in (*record.samples, *steps)])
        agent_s = (last_ns - min([each.start_ns for each in steps])) / 1e9
        took_s = record.ended_at - record.started_at
        stood_in_line = record.session is not None and record.session.number > 1
        return partial(self._learn, (record.experiment_id, record.cell_id), agent_s, took_s, stood_in_line)

    def _learn(self, of: _Cell, agent_s: float, took_s: float, stood_in_line: bool) -> None:
        _average(self._agent_s, of, agent_s)
        if stood_in_line or took_s < self._took_s.get(of[0], {}).get(of[1], 0.0):
            _average(self._took_s, of, took_s)  # what took a whole session would have taken no longer in line

    def behind(self, experiment_id: str, serial: str) -> int:
        """Return how many attempts may stand in line behind one of an experiment on a device."""
        line_s = FILL * (RIVAL_S if self._queue.is_wanted_beside(serial, experiment_id) else LINE_S)
        if known := self._took_s.get(experiment_id):
            return max(0, min(int(line_s / max(*known.values(), 1e-3)), LINE_MOST) - 1)
        alone = self._agent_s.get(experiment_id, {})
        return int(bool(alone) and 2 * max(alone.values()) <= line_s)


def _average(known: _Times, of: _Cell, value: float) -> None:
    experiment_id, cell_id = of
    cells = known.setdefault(experiment_id, {})
    before = cells.get(cell_id, value)
    cells[cell_id] = before + NEWEST * (value - before)
    if len(known) > MOST:
        del known[next(iter(known))]
