"""All virtual phones of a state folder in one asyncio process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from virtual_phones.adb.cable import Cable
from virtual_phones.adb.key import PublicKey
from virtual_phones.control.client import PhoneStatus
from virtual_phones.control.injector import FaultInjector
from virtual_phones.control.listener import Controlled, select, serve_control
from virtual_phones.faults import Reboot, ScheduledFault
from virtual_phones.phone import Phone
from virtual_phones.profile import Profile
from virtual_phones.programs import low_memory
from virtual_phones.programs.execution import reap_orphans
from virtual_phones.programs.slowing import Builds, Slowing
from virtual_phones.system.processes import ProcessTable, adopt_orphans, end_all, limit_growth

from .services import open_service

_TICK_S = 0.1
_LEAST_TICK_S = 0.01
_IDLE_TICK_S = 1.0
_MEMORY_LOOK_S = 0.01
_TAKEN_PER_S = 20e9
"""More bytes than programs can take: the next look comes before they could have taken what is left."""
_MEMORY_SHARE = 0.05
"""The largest share of a core for looking at the phones' memory."""
_SAVE_S = 30.0
_SOCKET_PATH_LIMIT = 100


@dataclass(frozen=True)
class Options:
    """The options of a start."""

    state: Path
    """Folder that keeps everything: phones' files, settings, charge, ports."""
    profiles: tuple[Profile, ...]
    """One phone each."""
    key: PublicKey
    """The farm's; nobody without it is let in."""
    owner: str = ""
    """Host whose they are; in their serials, where a farm has several."""
    base_port: int = 0
    """Ports from here on; 0: the last time's if free, else any."""
    slot: Path | None = None
    """Lock file by which engine runs on this host take turns."""
    speed: float = 1.0
    """Times faster than real that batteries drain and phones heat up and cool down."""
    script: tuple[ScheduledFault, ...] = ()
    with_parent: bool = False
    """End when the process that started this one ends."""


class Server:
    """Runs the phones until `stop` is set."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._table = ProcessTable()
        self._cables: list[Cable] = []
        self._phones: list[Controlled] = []
        self._slowings: dict[str, Slowing] = {}
        self._builds = Builds()
        self._parent = os.getppid()
        self.stop = asyncio.Event()
        self.control = _control_path(options.state)

    @property
    def statuses(self) -> list[PhoneStatus]:
        return [entry.status() for entry in self._phones]

    async def run(self) -> None:
        """Start all phones, say so, serve, and end everything that runs inside them. Raises what ended it too soon."""
        end_all(self._table, self._options.state)
        adopt_orphans()
        control = None
        jobs: list[asyncio.Task[None]] = []
        try:
            await self._start_phones()
            control = await serve_control(self.control, self._phones)
            jobs = [asyncio.create_task(job) for job in (self._time_passes(), self._run_script(), self._watch_memory())]
            jobs += [asyncio.create_task(self._reboots(entry)) for entry in self._phones]
            for job in jobs:
                job.add_done_callback(self._stop_if_failed)
            self._announce()
            await self.stop.wait()
        finally:
            for job in jobs:
                job.cancel()
            ends = await asyncio.gather(*jobs, return_exceptions=True)
            if control:
                control.close()
            await self._end()
        for end in ends:
            if isinstance(end, Exception):
                raise end

    def _stop_if_failed(self, job: asyncio.Task[None]) -> None:
        if not job.cancelled() and job.exception() is not None:
            self.stop.set()

    async def _start_phones(self) -> None:
        numbers: Counter[str] = Counter()
        for index, profile in enumerate(self._options.profiles):
            folder = self._options.state / f"{profile.name}-{numbers[profile.name]}"
            number = f"{self._options.owner}-" * bool(self._options.owner) + str(numbers[profile.name])
            phone = Phone(profile, number, folder, self._table, self._options.slot)
            phone.speed = self._options.speed
            phone.properties["ro.pocketfarm.control"] = str(self.control)
            self._slowings[phone.serial] = Slowing()
            numbers[profile.name] += 1
            cable = _cable(phone, self._options.key)
            self._cables.append(cable)
            await _plug(cable, phone, self._options.base_port + index if self._options.base_port else 0)
            phone.save()
            self._phones.append(Controlled(phone, FaultInjector(phone, cable)))

    def _announce(self) -> None:
        document = {
            "pid": os.getpid(),
            "control": str(self.control),
            "phones": [status.model_dump(mode="json") for status in self.statuses],
        }
        fresh = self._options.state / "phones.json.new"
        fresh.write_text(json.dumps(document, indent=1))
        fresh.replace(self._options.state / "phones.json")
        print(json.dumps({"ready": len(self._phones), "control": str(self.control)}), flush=True)

    async def _time_passes(self) -> None:
        """Physics for all phones: often where something runs inside, seldom elsewhere."""
        saved_at = all_at = time.monotonic()
        while True:
            await asyncio.sleep(self._pause_s())
            now = time.monotonic()
            due = [entry.phone for entry in self._phones if entry.phone.is_busy() and _due_s(entry.phone, now) <= 0.0]
            if now - all_at >= _IDLE_TICK_S:
                all_at, due = now, [entry.phone for entry in self._phones]
            if not due:
                continue
            running = self._table.scan()
            for phone in due:
                phone.advance(running.get(str(phone.tree.root), []))
                self._hold(phone)
            reap_orphans([entry.phone for entry in self._phones])
            if now - saved_at > _SAVE_S:
                saved_at = now
                for entry in self._phones:
                    entry.phone.save()
            if self._options.with_parent and os.getppid() != self._parent:
                self.stop.set()

    def _pause_s(self) -> float:
        """Return the time until a phone's tick is due."""
        now = time.monotonic()
        busy = [entry.phone for entry in self._phones if entry.phone.is_busy()]
        return max(_LEAST_TICK_S, min([_TICK_S, *(_due_s(phone, now) for phone in busy)]))

    def _hold(self, phone: Phone) -> None:
        """Make what runs inside as slow as the phone is, and as short of room."""
        pids = [process.pid for process in phone.processes]
        self._slowings[phone.serial].hold(phone.running_share * self._builds.share(phone.slow_build, pids), pids)
        if phone.tree.full:
            limit_growth(pids, allowed=False)

    async def _watch_memory(self) -> None:
        """The low-memory killers: often, because what grows may be gone in a moment."""
        watched = [entry.phone for entry in self._phones if entry.phone.profile.low_memory]
        while watched:
            began_s = time.thread_time()
            busy = [phone for phone in watched if phone.is_busy()]
            running = self._table.pids() if busy else {}
            full_s = [low_memory.look(phone, running.get(str(phone.tree.root), [])) / _TAKEN_PER_S for phone in busy]
            took_s = time.thread_time() - began_s  # of the processor: on a busy machine a look lasts longer
            await asyncio.sleep(max(_MEMORY_LOOK_S, min([_TICK_S, *full_s]), took_s / _MEMORY_SHARE))

    async def _run_script(self) -> None:
        started = time.monotonic()
        for entry in self._options.script:
            await asyncio.sleep(max(0.0, started + entry.at_s - time.monotonic()))
            for controlled in select(self._phones, entry.phone):
                await controlled.faults.apply(entry.do)

    async def _reboots(self, entry: Controlled) -> None:
        """The phone's own `reboot` command."""
        while True:
            await entry.phone.reboot_requested.wait()
            entry.phone.reboot_requested.clear()
            await entry.faults.apply(Reboot())

    async def _end(self) -> None:
        for entry in self._phones:
            for task in list(entry.phone.background):
                task.cancel()
        await asyncio.gather(*(cable.close() for cable in self._cables), return_exceptions=True)
        end_all(self._table, self._options.state)
        for slowing in self._slowings.values():
            slowing.close()
        for entry in self._phones:
            entry.phone.save()
        (self._options.state / "phones.json").unlink(missing_ok=True)
        self.control.unlink(missing_ok=True)
        if self.control.parent != self._options.state:
            shutil.rmtree(self.control.parent, ignore_errors=True)
        reap_orphans([entry.phone for entry in self._phones])


def _due_s(phone: Phone, now: float) -> float:
    """Return the time until a busy phone ticks: at times, and when its gauge has news, to be seen as they come."""
    return min(phone.ticked_at + _TICK_S - now, phone.gauge_news_s())


def _cable(phone: Phone, key: PublicKey) -> Cable:
    return Cable(lambda destination: open_service(phone, destination), phone.banner, key)


async def _plug(cable: Cable, phone: Phone, port: int) -> None:
    """Listen on `port`, or on the last time's port, or on any. Raises OSError where a fixed port is taken."""
    if port == 0 and phone.port:
        with contextlib.suppress(OSError):
            await cable.plug(phone.port)
    if not cable.plugged:
        await cable.plug(port)
    phone.port = cable.port


def _control_path(state: Path) -> Path:
    """The socket in the state folder, or where that path is too long for a socket, in a private folder."""
    path = state / "control.sock"
    if len(os.fsencode(path)) <= _SOCKET_PATH_LIMIT:
        return path
    name = hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
    folder = Path(tempfile.mkdtemp(prefix=f"pocketfarm-{name}-"))
    return folder / "control.sock"


async def serve(options: Options) -> None:
    """Run the phones until SIGTERM, SIGINT or SIGHUP."""
    loop = asyncio.get_running_loop()
    server = Server(options)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, server.stop.set)
    await server.run()
