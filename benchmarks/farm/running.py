"""A farm of virtual phones for benchmarks: the parts of `farm up`, with a worker that notes its adb commands."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from farm.composition import compose
from farm.parts.ports import Ports
from farm.parts.virtual_phones import profiles_for
from farm.supervisor import Supervisor
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.model.device import Health
from orchestrator.system.config import Settings

READY_S = 300.0
"""The time until one more phone is ready: on a machine with other work 400 take more than ten minutes."""
PARTS = {
    "worker": "timed_worker",
    "scheduler": "orchestrator.scheduling.scheduler",
    "exporter": "orchestrator.metrics",
    "beat": "farm.tasks.beat",
    "pages": "farm.web.pages",
    "phones": "virtual_phones",
    "adb": "nodaemon",
    "redis": "redis-server",
}
"""Part -> the word of its command line that tells it."""


@dataclass(frozen=True)
class RunningFarm:
    """`settings` reach its ledger and its Redis."""

    settings: Settings
    notes: Path
    exporter_port: int
    pages_port: int
    """The port of the pages, on loopback."""

    def adb(self, since: int = 0) -> tuple[list[dict[str, object]], int]:
        """Return what the worker noted from a byte of its notes on, see `timed_worker`, and the byte that follows."""
        with self.notes.open("rb") as file:
            file.seek(since)
            whole = file.read().rpartition(b"\n")[0]
        return [json.loads(line) for line in whole.splitlines()], since + len(whole) + bool(whole)

    def processor_s(self) -> dict[str, float]:
        """Seconds of the processor by part, with those of its children that have ended."""
        return {part: sum(map(_spent_s, found)) for part, found in self.parts().items()}

    def keepers(self) -> list[psutil.Process]:
        """One of each part, and the process that forked them."""
        return psutil.Process().children()

    def parts(self) -> dict[str, list[psutil.Process]]:
        """The processes of each part, without their keepers."""
        found: dict[str, list[psutil.Process]] = {part: [] for part in PARTS}
        for keeper in self.keepers():
            for process in keeper.children(recursive=True):
                words = _words(process)
                part = next((part for part, word in PARTS.items() if word in words), None)
                if part is not None:
                    found[part].append(process)
        return found


def _words(process: psutil.Process) -> str:
    """Return the words of its command line; of one that is ending nothing."""
    try:
        return " ".join(process.cmdline()) or str(process.name())
    except psutil.Error:
        return ""


def _spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


@contextmanager
def running_farm(state: Path, phones: int, sessions: int = 32) -> Iterator[RunningFarm]:
    """Run a farm with so many virtual phones, all of them ready; ended afterwards. From the main thread."""
    own = Settings(state=state, host="bench", sessions=sessions, exporter_port=0, pages_port=0)
    with Ports() as ports:
        composed = compose(own, profiles_for(phones, []), ports=ports, real_phones=False)
        notes = state / "adb.jsonl"
        timed = (sys.executable, "-m", "benchmarks.farm.timed_worker", str(notes))
        parts = [replace(part, command=timed) if part.name == "worker" else part for part in composed.parts]
        environment = {**composed.environment, "FARM_SESSIONS": str(sessions)}
        supervisor = Supervisor(parts, environment, state / "logs", lambda *_: None)
        try:
            supervisor.start()
            found = composed.endpoints
            settings = own.model_copy(update={"redis_url": found.redis_url, "redis_password": found.redis_password})
            _until_ready(settings, phones)
            yield RunningFarm(settings, notes, found.exporter_port, found.pages_port)
        finally:
            supervisor.stop()


def _until_ready(settings: Settings, phones: int) -> None:
    """Raises TimeoutError."""
    with connect(settings) as redis:
        most, end = 0, time.monotonic() + READY_S
        while most < phones:
            states = [each.state for each in Inventory(redis).devices() if each.facts.kind == "phone"]
            ready = sum(state.health is Health.READY for state in states)
            if ready > most:
                most, end = ready, time.monotonic() + READY_S
            elif time.monotonic() > end:
                raise TimeoutError(f"{most} of {phones} virtual phones were ready, and no other in {READY_S:g} s")
            time.sleep(0.2)
