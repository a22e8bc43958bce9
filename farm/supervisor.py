"""`farm up`: start the parts in order, restart those that die, end all of them in reverse order.

Nothing outlives it: parts end orderly on SIGINT, SIGTERM and SIGHUP, and by their keepers (`supervised.py`) where the
supervisor itself is killed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from orchestrator.model.errors import FarmError, SetupError
from orchestrator.system.process import asked_to_end

from .parts.part import Part
from .processes import Nursery, Process, is_forked, last_lines

POLL_S = 0.1
BACK_OFF_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
HEALTHY_AFTER_S = 60.0
"""A part that ran this long starts again without delay the next time."""


class Stopped(Exception):
    """A stop was asked for while the farm was starting."""


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    """It died; its next start is due at `due`."""
    STOPPED = "stopped"


@dataclass
class Running:
    """A part and its present process."""

    part: Part
    log: Path
    process: Process | None = None
    phase: Phase = Phase.STOPPED
    due: float = 0.0
    """Monotonic time: limit of readiness while starting, next start while waiting."""
    started: float = 0.0
    deaths: int = 0


Say = Callable[[str, str, str], None]
"""Called with a part's name, what happened (`ready`, `died`, `stopped` ...) and a detail."""


class Supervisor:
    """Owns the processes of one farm. Use it from the main thread only."""

    def __init__(self, parts: Sequence[Part], environment: dict[str, str], logs: Path, say: Say) -> None:
        self._running = [Running(part, logs / f"{part.name}.log") for part in parts]
        self._environment = environment
        self._say = say
        self._stop = threading.Event()
        self._nursery: Nursery | None = None

    def listen(self) -> None:
        """Stop on SIGINT, SIGTERM and SIGHUP."""
        self._stop = asked_to_end(signal.SIGHUP)

    def start(self) -> None:
        """Start the parts in order, each when those before are ready, or `beside` them.

        Raises SetupError with the end of the log where a part that is needed does not come up, Stopped where a signal
        came.
        """
        if sum(is_forked(running.part.command) for running in self._running) > 1:
            self._nursery = Nursery(self._environment)
        for running in self._running:
            if not running.part.beside:
                self._await_ready()
            self._launch(running)
        self._await_ready()

    def _await_ready(self) -> None:
        while starting := [running for running in self._running if running.phase is Phase.STARTING]:
            if self._stop.wait(POLL_S):
                raise Stopped
            for running in starting:
                self._advance(running)
                if running.phase is Phase.WAITING and running.part.needed:
                    raise self._failure(running)

    def watch(self) -> None:
        """Keep every part alive until a signal asks to stop."""
        while not self._stop.wait(POLL_S):
            self.look()

    def look(self) -> None:
        """One look at every part."""
        for running in self._running:
            self._advance(running)

    def stop(self) -> None:
        """End every part in reverse order; each within its grace."""
        for running in reversed(self._running):
            if running.process is not None:
                running.process.stop()
                running.process.join()
                self._say(running.part.name, "stopped", "")
            running.process, running.phase = None, Phase.STOPPED
        if self._nursery is not None:
            self._nursery.end()
            self._nursery = None

    def _launch(self, running: Running) -> None:
        part = running.part
        part.before_start()
        environment = {**self._environment, **part.environment}
        running.process = Process(part.command, environment, running.log, part.grace_s, self._nursery)
        running.started = time.monotonic()
        running.due = running.started + part.ready_limit_s
        running.phase = Phase.STARTING

    def _advance(self, running: Running) -> None:
        """One look at one part."""
        now = time.monotonic()
        if running.phase is Phase.WAITING:
            if now >= running.due:
                self._launch(running)
            return
        assert running.process is not None
        status = running.process.poll()
        if status is not None:
            self._died(running, f"ended with status {status}")
        elif running.phase is Phase.STARTING:
            self._check_ready(running, now)

    def _check_ready(self, running: Running, now: float) -> None:
        if running.part.is_ready():
            try:
                running.part.after_ready()
            except FarmError as e:
                self._died(running, str(e))
                return
            running.phase = Phase.READY
            self._say(running.part.name, "ready", running.part.detail)
        elif now > running.due:
            self._died(running, f"was not ready after {running.part.ready_limit_s:.0f} s")

    def _died(self, running: Running, why: str) -> None:
        assert running.process is not None
        running.process.stop()
        running.process.join()
        if time.monotonic() - running.started > HEALTHY_AFTER_S:
            running.deaths = 0
        delay_s = BACK_OFF_S[min(running.deaths, len(BACK_OFF_S) - 1)]
        running.deaths += 1
        running.phase, running.due = Phase.WAITING, time.monotonic() + delay_s
        self._say(running.part.name, "died", f"{why}; next start in {delay_s:g} s; log: {running.log}")

    def _failure(self, running: Running) -> FarmError:
        tail = "".join(f"\n  | {line}" for line in last_lines(running.log))
        return SetupError(
            f"{running.part.name} did not start; the end of {running.log}:{tail}",
            remedy="farm doctor",
        )
