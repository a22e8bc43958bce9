"""The attempts of one lease, of which one is under way and the others are in line behind it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.errors import TransientError
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record, SessionPlace

from .record_builder import RecordBuilder
from .validity import with_validity


class HandedBack(TransientError):
    """Its session ended before its turn came: nothing was tried, and nobody pays."""

    cause = "handed_back"


class Line:
    """Builds the record of each attempt; `keep` gets those that are whole, and whether the session is over."""

    def __init__(self, assignment: Assignment, worker: str, keep: Callable[[Record, bool], None]) -> None:
        unknown = DeviceFacts(serial=assignment.serial, host=assignment.host, kind="phone", source=Source.PHONE)
        self._builders = deque(RecordBuilder(each, worker, unknown) for each in assignment.every)
        self._keep = keep
        if assignment.line:
            for number, builder in enumerate(self._builders, 1):
                builder.session = SessionPlace(first=assignment.token, number=number)

    @property
    def now(self) -> RecordBuilder:
        """The builder of the attempt that is under way."""
        return self._builders[0]

    @property
    def behind(self) -> Sequence[RecordBuilder]:
        return list(self._builders)[1:]

    @property
    def next(self) -> Assignment:
        """The first in line."""
        return self._builders[1].assignment

    def know(self, facts: DeviceFacts, agent_sha256: str) -> None:
        """Note on what all of them run."""
        for builder in self._builders:
            builder.device, builder.agent_sha256 = facts, agent_sha256

    def share(self, cpus: str) -> None:
        """Share what was found out for the first: it holds for all."""
        for builder in self._builders:
            builder.cpus, builder.enrolment = cpus, self.now.enrolment

    def go_on(self) -> None:
        """The next attempt is under way: keep the record of the one before."""
        self._close(self._builders.popleft(), is_over=False)
        self.now.started_at = time.time()

    def end(self) -> None:
        """Keep the record of the attempt that was under way, and hand the others back."""
        self._close(self._builders.popleft())
        for builder in self._builders:
            builder.fail(HandedBack("its session ended before its turn", device=builder.assignment.serial))
            self._close(builder)

    def _close(self, builder: RecordBuilder, *, is_over: bool = True) -> None:
        self._keep(with_validity(builder.record(), builder.assignment.job, builder.enrolment), is_over)
