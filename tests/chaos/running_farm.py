"""A whole farm as a user starts it: `farm up` in a process of its own, spoken to through the command line only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import psutil
from redis import Redis

from farm import endpoints, processes
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown
from orchestrator.model.live.announcement import Progress
from tests.integration.farm.test_up import farm as in_this_process
from tests.waiting import eventually
from virtual_phones.control import ControlClient
from virtual_phones.faults import Throttle
from virtual_phones.launch import read_phones

from .power_cut import Durable

T = TypeVar("T")
LEASE_TTL_S = 4.0
PARTS = {
    "worker": "workers.host",
    "scheduler": "orchestrator.scheduling.scheduler",
    "beat": "farm.tasks.beat",
    "redis": "redis-server",
    "adb": "adb",
    "phones": "virtual_phones",
}
"""Part -> the word of its command line that tells it."""
READY_S = 240.0

SPEC = """\
schema_version: 1
name: {name}
workload: {{network: squeezenet_v1_1}}
devices: {{where: '{where}', count: {count}}}
matrix: {{backend: cpu}}
sampling: {{blocks: 1, warmup: 1, samples: {samples}, deadline: 60 s}}
conditions: {{battery_temp_max: 60 C, thermal_status_max: 6}}
"""


class RunningFarm:
    """The farm's state folder, and what a person does with it."""

    def __init__(
        self,
        state: Path,
        phones: int,
        durable: Durable | None = None,
        *,
        options: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.state = state
        self._phones, self._durable, self._options = phones, durable, options
        self._environment = environment() | (durable.environment if durable else {}) | dict(more or {})
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "farm.cli", "up", "--state", str(self.state), "--virtual", str(self._phones)]
        command += self._options
        with self.state.with_name("up.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment
            )

    def until_ready(self) -> None:
        """Wait until every device could be given work, each at some moment: where jobs wait, they begin meanwhile."""
        eventually(lambda: endpoints.read(self.state) or self.process.poll() is not None, READY_S)
        assert self.process.poll() is None, self.state.with_name("up.log").read_text()
        seen: set[str] = set()

        def all_were_ready() -> bool:
            seen.update(serial for serial, how in health(self).items() if how == "ready")
            return len(seen) == self._phones + 1

        eventually(all_were_ready, READY_S + self._phones, lambda: f"ready so far: {sorted(seen)}", every_s=0.2)

    def end(self) -> None:
        """End it as a user does. One that stays says where it stands, and takes its parts along."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # Python's fault handler prints the stacks
            self.process.wait(10)
            raise AssertionError(self.state.with_name("up.log").read_text()) from None

    def cut_power(self) -> None:
        """Kill the whole machine, leave of its files what was flushed, and start it again."""
        assert self._durable is not None
        top, family = psutil.Process(self.process.pid), set[int]()
        while new := {top.pid, *(each.pid for each in top.children(recursive=True))} - family:
            family |= new
            _signal(new, signal.SIGSTOP)  # else one of them might start another that is not killed
        _signal(family, signal.SIGKILL)
        self.process.wait()
        eventually(lambda: not processes.marked(self.state), what="processes outlive the power cut")
        self._durable.cut()
        self._start()
        self.until_ready()

    def forget(self, variable: str) -> None:
        """Commands are given without a variable of the environment that `farm up` was given."""
        del self._environment[variable]

    def cli(self, *arguments: str, status: int | None = 0) -> Any:
        """Run a `farm` command with --json; its parsed standard output. Where what is flushed is watched, in a process
        of its own; else in this one: the start of another one is a second of a core."""
        words = [*arguments, "--state", str(self.state), "--json"]
        if self._durable:
            command = [sys.executable, "-m", "farm.cli", *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=self._environment)
        else:
            with patch.dict(os.environ, self._environment, clear=True):
                done = in_this_process(*words)
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stdout)

    def submit(
        self, folder: Path, name: str, *, where: str = 'source == "virtual"', samples: int, count: str = "any"
    ) -> str:
        """Submit an experiment of one cell; its id."""
        path = folder / f"{name}.yaml"
        path.write_text(SPEC.format(name=name, where=where, samples=samples, count=count))
        return str(self.cli("run", str(path))["experiment"])

    def records(self, experiment: str) -> list[dict[str, Any]]:
        """Every record of the experiment, as the ledger has them."""
        with Ledger(endpoints.settings_for(self.state).ledger) as ledger:
            return [record.model_dump(mode="json") for record in ledger.records(experiment)]

    def redis(self) -> Redis:
        """The farm's own Redis, once it answers: a fault may have ended it a moment ago."""

        def answering() -> Redis | None:
            try:
                return connect(endpoints.settings_for(self.state))
            except ServiceDown:
                return None

        found = eventually(answering, READY_S)
        assert found is not None
        return found

    def running(self) -> Progress | None:
        """A session that is measuring now, or None."""
        found = Inventory(self.redis()).progress()
        return next((each for each in found if each.phase == "running" and each.done > 0), None)

    def until_finished(self, experiment: str, limit_s: float = 300.0) -> list[dict[str, Any]]:
        """Wait for the experiment's end; its records."""

        def finished() -> bool:
            with Ledger(endpoints.settings_for(self.state).ledger) as ledger:
                return ledger.experiment(experiment).finished

        eventually(finished, limit_s, f"{experiment} did not finish", every_s=0.5)
        return self.records(experiment)

    def part(self, name: str) -> list[psutil.Process]:
        """The process of a part, without its keeper and what it started; none between two lives."""
        keepers = psutil.Process(self.process.pid).children()
        parts = [child for keeper in keepers if PARTS[name] in _words(keeper) for child in _children(keeper)]
        return [part for part in parts if PARTS[name] in _words(part)]

    @property
    def phones(self) -> ControlClient:
        """The switchboard of the virtual phones."""
        return read_phones(self.state / "virtual").control

    def brake(self, share: float) -> None:
        """Leave every phone this share of its speed."""
        for phone in self.phones.phones():
            self.phones.fault(phone.serial, Throttle(share=share, visible=False))


def _words(process: psutil.Process) -> list[str]:
    """Words of a command line, the program without its folder; none of a process that is gone."""
    try:
        return [Path(word).name for line in process.cmdline() for word in line.split()]
    except psutil.NoSuchProcess:
        return []


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def environment() -> dict[str, str]:
    """Farms of several tests start at the same time: each takes ports of its own."""
    own = {"FARM_EXPORTER_PORT": "0", "FARM_PAGES_PORT": "0", "PYTHONFAULTHANDLER": "1"}
    return {**os.environ, "FARM_LEASE_TTL_S": str(LEASE_TTL_S), **own}


@contextmanager
def running_farm(
    state: Path,
    phones: int,
    durable: Durable | None = None,
    *,
    options: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> Iterator[RunningFarm]:
    """`farm up` with virtual phones, ready to work; ended and gone afterwards. `durable`: its power may be cut.
    `options`: further ones of `farm up`; `more`: to its environment."""
    state.mkdir(parents=True, exist_ok=True)
    farm = RunningFarm(state, phones, durable, options=options, more=more)
    try:
        farm.until_ready()
        yield farm
    finally:
        farm.end()


def health(farm: RunningFarm) -> dict[str, str]:
    """Device -> how it is, as its host says."""
    with farm.redis() as redis:
        return {device.serial: str(device.state.health) for device in Inventory(redis).devices()}


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
