"""One virtual phone: its profile, files, settings, body (battery and heat) and faults, without any transport."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import itertools
import json
import time
import uuid
import zlib
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from .hardware.clock_nodes import CPU, links, write_clock
from .hardware.clocks import Clocks
from .hardware.gauge import FuelGauge, Reading
from .hardware.physics import State, clock_cap, initial_state, step, thermal_status
from .hardware.processor_time import HOST_CORES, ProcessorTime, SteadyCount
from .hardware.supply import Supply
from .hardware.sysfs import CHARGING_ENABLED, INPUT_SUSPEND, NodeWriter, denied_nodes, dynamic_nodes, static_nodes
from .profile import Profile
from .replay.player import Player
from .system.log import Log
from .system.processes import Process, ProcessTable, limit_growth, send_signal
from .system.properties import properties
from .system.pushed import PushedPrograms
from .system.replacing import rewrite
from .system.tree import Tree, refusal
from .system.wakefulness import Wakefulness

SHELL_V2_SDK = 24
"""The first whose adbd tells output, errors and exit status apart."""
_FEATURES = {
    "shell_v2": SHELL_V2_SDK, "cmd": 24, "stat_v2": 24, "fixed_push_mkdir": 24, "ls_v2": 30, "sendrecv_v2": 30,
}  # fmt: skip
"""Features of adbd, by the release that brought them."""
_FIRST_SERVICE_PID = 1 << 22
"""No process of a Linux host has a pid as high."""
_DETACHING_S = 2.0
_FIRST_ADBD_PID = 517
_OFF_AFTER_MS = 60_000
"""The time-out where the setting is none."""
_PROCESS_NODES = {"cmdline", "comm", "io", "oom_score_adj", "schedstat", "smaps", "stat", "statm", "status"}
BACKGROUND_APPS = {"org.example.calendar": 2_031, "org.example.messenger": 2_107}
_DEFAULT_SETTINGS: dict[str, dict[str, str]] = {
    "global": {
        "airplane_mode_on": "0",
        "bluetooth_on": "1",
        "stay_on_while_plugged_in": "0",
        "low_power": "0",
        "auto_sync": "1",
    },
    "system": {"screen_brightness": "128", "screen_brightness_mode": "1", "screen_off_timeout": "30000"},
    "secure": {},
}


class Phone:
    """A phone whose state lives in `folder`: `root/` (its files) and `state.json` (settings, charge, port)."""

    def __init__(
        self, profile: Profile, number: int | str, folder: Path, table: ProcessTable, slot: Path | None
    ) -> None:
        """`number` ends its serial: which of its profile it is, and where several hosts have virtual phones, whose."""
        self.profile = profile
        self._closed = set(denied_nodes(profile))
        self.serial = f"{profile.source}-{profile.name}-{number}"
        self.folder = folder
        self.slot = slot
        self.table = table
        self.tree = Tree(folder / "root", capacity_bytes=profile.storage_free_bytes, denied=denied_nodes(profile))
        self.processes: list[Process] = []
        """The processes that ran inside at the last tick."""
        self.journals: deque[str] = deque(maxlen=16)
        """Phone paths that the newest agents were told to write their journals to."""
        self.log = Log()
        self.garbled = False
        """Fault: what agents write arrives as garbage."""
        self.player = Player(profile.recording, folder / "replay") if profile.recording else None
        saved = self._saved()
        self.port = int(saved.get("port", 0))
        self.pushed = PushedPrograms(saved.get("programs", ()))
        self.pushed.drop_others(self.tree.root / "data/local/tmp")
        kept = saved.get("settings", {})  # an older phone's lack what later ones have
        self.settings = {space: values | kept.get(space, {}) for space, values in _DEFAULT_SETTINGS.items()}
        self.radios_on = bool(saved.get("radios_on", True))
        self.supply = Supply(plugged=bool(saved.get("charging", profile.battery.charging)))
        fresh = initial_state(profile)
        charge = float(saved.get("charge", fresh.charge))
        self.body: State = dataclasses.replace(fresh, charge=charge, charging=self.supply.powered)
        self.clocks = Clocks(profile)
        self.cores_online = profile.cores
        """Fault: those behind the first so many are switched off."""
        self.kernel_limits = ""
        """Fault: `KERNEL=WORK_ITEMS`, the work-group that its OpenCL driver refuses to exceed."""
        self.lacking = dict.fromkeys(profile.lacks, 127)
        """Commands that its release has and this phone has not, or may not run -> the shell's exit status."""
        self.command_s = 0.0
        """Fault: what each command takes to begin, as where each starts a virtual machine on a busy phone."""
        self.other_load = 0.0
        """Fault: share of the cores that something else keeps busy."""
        self.slow_build: tuple[str, float] | None = None
        """Fault: the beginning of a build's SHA-256, and the share of the time in which its processes run; set by
        `slow_down`."""
        self.least_status = 0
        """Fault: the thermal status is at least this, however cool the skin is."""
        self.processor_time = ProcessorTime()
        self.speed = 1.0
        """Times faster than real that the body lives."""
        self.ticked_at = time.monotonic()
        self.ticked_ns = 0
        """CLOCK_BOOTTIME up to which the body's energies are integrated."""
        self.gauge = FuelGauge(profile, zlib.crc32(self.serial.encode()))
        self.thermal_override: int | None = None
        """Thermal status that `cmd thermalservice override-status` pretends."""
        self.apps: dict[str, int] = {}
        """Apps in the background -> their pids, which are nobody's on the host; they do nothing and draw nothing."""
        self.doze = {"deep", "light"}
        """Kinds of idle mode that `dumpsys deviceidle` has enabled."""
        self.is_dozing = False
        self.battery_override: dict[str, str] | None = None
        """Frozen fields of `dumpsys battery` after `unplug` or `set`."""
        self.held_skin_c: float | None = None
        """Fault: the skin does not cool."""
        self.background: set[asyncio.Task[int]] = set()
        """Commands that were left running behind a shell that has ended."""
        self.services: dict[int, asyncio.Task[None]] = {}
        """Android's own programs that run in the background, by their pids, which are nobody's on the host."""
        self.own_children: set[int] = set()
        """Pids that `execution` waits for itself."""
        self.started_at = float("-inf")
        """Monotonic time at which a program was last started inside."""
        self.first_skin_c = self.body.skin_c
        """Skin temperature at start-up, which the thermal service's cache never forgets."""
        self.reboot_requested = asyncio.Event()
        self._nodes = NodeWriter(self.tree.root)
        self._used, self._wanted = SteadyCount(0.05), SteadyCount(0.5)
        self.properties = properties(profile, self.serial)
        self.boot()

    def boot(self) -> None:
        """Start up: a new boot id, uptime from zero, files of /sys and /system as after flashing."""
        self.boot_id = str(uuid.uuid4())
        self.booted_at = time.monotonic()
        self.log.clear()
        for service in self.services.values():
            service.cancel()
        self.wakefulness = Wakefulness(self.booted_at)
        self.adbd_pid = _FIRST_ADBD_PID
        """Nobody's on the host; another one after each restart of adbd."""
        self.thermal_override = self.battery_override = None
        self.first_skin_c = self.body.skin_c
        self.apps = dict(BACKGROUND_APPS)
        self.doze, self.is_dozing = {"deep", "light"}, False
        self.clocks.reset()
        self.processor_time = ProcessorTime()
        self.set_supply(suspended=False)
        self._nodes = NodeWriter(self.tree.root)
        self._show(static_nodes(self.profile))
        self._nodes.link(links(self.profile))
        self._nodes.write({"/proc/sys/kernel/random/boot_id": self.boot_id})
        self._nodes.write({"/system/build.prop": "\n".join(f"{k}={v}" for k, v in self.properties.items())})
        self.show()
        self.tree.live["/proc/uptime"] = lambda: f"{self.uptime_s():.2f} {self.uptime_s() * self.profile.cores:.2f}\n"
        self.tree.pass_through = self._host_process

    def start_service(self, work: Coroutine[Any, Any, None]) -> int:
        """Run one of Android's own programs in the background; its pid. A cancelled one has ended well."""
        pid = next(pid for pid in itertools.count(_FIRST_SERVICE_PID) if pid not in self.services)
        self.services[pid] = task = asyncio.create_task(work)
        task.add_done_callback(lambda _: self.services.pop(pid, None))
        return pid

    def uptime_s(self) -> float:
        return time.monotonic() - self.booted_at

    def reading(self) -> Reading:
        """Return what the fuel gauge says now."""
        return self.gauge.read(self.body)

    def gauge_news_s(self) -> float:
        """Seconds from now until the fuel gauge has a new reading."""
        refresh_s = self.profile.gauge.refresh_ms / 1000
        left_s = refresh_s - self.body.time_s % refresh_s
        return max(0.0, left_s / self.speed - (time.monotonic() - self.ticked_at))

    def is_busy(self) -> bool:
        """True if something runs inside, or may: a program that detaches is found a moment after its start."""
        return bool(self.processes or self.own_children) or time.monotonic() - self.started_at < _DETACHING_S

    def advance(self, processes: list[Process] | None = None) -> None:
        """Let the time pass that has passed since the last call; `processes`: what runs inside (None: look)."""
        now, self.ticked_ns = time.monotonic(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        dt_s, self.ticked_at = now - self.ticked_at, now
        self.advance_screen(now)
        self.tick(dt_s, self.table.of(self.tree.root) if processes is None else processes, speed=self.speed)

    def advance_screen(self, now: float) -> None:
        """The screen alone: it is asked between any two blocks, and the rest takes half a millisecond."""
        self.wakefulness.advance(
            now, off_after_s=self.off_after_ms / 1000, stays_on=self.stays_on, powered=self.supply.powered
        )

    @property
    def off_after_ms(self) -> int:
        """Time-out of the screen."""
        told = self.settings["system"].get("screen_off_timeout", "")
        return int(told) if told.isdigit() else _OFF_AFTER_MS

    @property
    def stays_on(self) -> bool:
        """True if the setting for plugged-in phones keeps the screen on."""
        return self.supply.powered and self.settings["global"].get("stay_on_while_plugged_in", "0") not in ("0", "")

    def tick(self, dt_s: float, processes: list[Process], *, speed: float = 1.0) -> None:
        """Let time pass, `speed` times as fast for the body; `processes` are those that run inside the phone now."""
        self.processes = processes
        room_s = dt_s * HOST_CORES
        own_room_s = room_s * self.running_share
        used_s = self._used.enter({process.pid: process.cpu_s for process in processes}, own_room_s)
        wanted = {process.pid: process.cpu_s + process.waited_s for process in processes}
        wanted_s = self._wanted.enter(wanted, own_room_s)
        self.processor_time.add(dt_s, used_s + self.other_load * room_s)
        load = self.other_load + (wanted_s / room_s / self.clock if room_s > 0 else 0.0)
        middle_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - int(dt_s * 5e8)
        demand_w = self.player.power_w(middle_ns) if self.player else None
        if self.wakefulness.is_suspended:
            demand_w = self.profile.power.suspended_w
        clock = self.clocks.share()
        self.body = step(self.profile, self.body, min(1.0, load), dt_s * speed, clock=clock, demand_w=demand_w)
        if self.held_skin_c is not None:
            self.heat_to(self.held_skin_c, hold=True)
        self.show()

    @property
    def clock(self) -> float:
        """Share of the highest clock that heat and limits leave now."""
        return min(self.clocks.share(), clock_cap(self.profile.thermal, self.body.skin_c))

    @property
    def running_share(self) -> float:
        """Share of the time that the phone's processes may run, so that they are as slow as it is; 0: none runs."""
        if self.wakefulness.is_suspended:
            return 0.0
        return self.clock * (1.0 - self.other_load)

    def show(self) -> None:
        """Bring the nodes up to date."""
        boottime_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        self._show(
            dynamic_nodes(self.profile, self.body, self.reading(), self.clocks, boottime_ms=boottime_ms)
            | {"/proc/stat": self.processor_time.text()}
            | {f"{CPU}/online": f"0-{self.cores_online - 1}"}
            | {"/proc/suspended_ns": str(round(self.wakefulness.suspended_s * 1e9))}
            | ({INPUT_SUSPEND: str(int(self.supply.suspended))} if self.profile.root else {})
            | ({CHARGING_ENABLED: str(int(not self.supply.suspended))} if self.profile.root else {})
        )

    def _show(self, nodes: dict[str, str]) -> None:
        """Nodes that the shell user may not read are no files, so that an agent cannot read them either."""
        closed = self._closed
        self.tree.closed.update({path: f"{text}\n" for path, text in nodes.items() if path in closed})
        self._nodes.write({path: text for path, text in nodes.items() if path not in closed})

    def slow_down(self, build: tuple[str, float] | None) -> None:
        """Let a build of the agent run for a share of the time only, be it for real or in what is replayed."""
        self.slow_build = build if self.player is None else None
        if self.player is not None:
            self.player.slow_down(build)

    def write_node(self, path: str, text: str) -> None:
        """Root writes to a node. Raises OSError where it takes nothing, or not this."""
        if path in (INPUT_SUSPEND, CHARGING_ENABLED) and self.profile.root:
            self.set_supply(suspended=(text.strip() == "0") == (path == CHARGING_ENABLED))
        elif not write_clock(self.clocks, path, text):
            raise refusal(errno.EACCES, path)
        self.show()

    def set_charge(self, charge: float) -> None:
        """Set the battery's state of charge, 0 to 1."""
        self.body = dataclasses.replace(self.body, charge=charge)

    def set_supply(
        self, *, plugged: bool | None = None, port_on: bool | None = None, suspended: bool | None = None
    ) -> None:
        """Change what USB power depends on; None: as it is."""
        changes = {"plugged": plugged, "port_on": port_on, "suspended": suspended}
        self.supply = dataclasses.replace(self.supply, **{k: v for k, v in changes.items() if v is not None})
        self.body = dataclasses.replace(self.body, charging=self.supply.powered)

    def heat_to(self, skin_c: float | None, *, hold: bool) -> None:
        """Set the skin's temperature (None: just into thermal status 3), and keep it there where `hold`."""
        target_c = self.profile.thermal.status_skin_c[2] + 1 if skin_c is None else skin_c
        self.held_skin_c = target_c if hold else None
        self.body = dataclasses.replace(self.body, skin_c=target_c, die_c=max(self.body.die_c, target_c))

    def throttle(self, share: float, *, visible: bool = True) -> None:
        """Lower the clocks to a share as heat would; 1: no longer. Not `visible`: no limit and no status tells."""
        self.clocks.caps.pop("throttle", None)
        self.clocks.hidden.pop("throttle", None)
        self.least_status = 0
        if share < 1.0:
            (self.clocks.caps if visible else self.clocks.hidden)["throttle"] = share
            caps = self.profile.thermal.status_cap
            self.least_status = next((status for status, cap in enumerate(caps) if cap <= share), 6) if visible else 0

    @property
    def thermal_status(self) -> int:
        """The status that the thermal service measures."""
        return max(self.least_status, thermal_status(self.profile.thermal, self.body.skin_c))

    def limit_files(self) -> None:
        """Let the programs inside feel that no room is left, or that there is room again."""
        limit_growth([process.pid for process in self.table.of(self.tree.root)], allowed=not self.tree.full)

    def signal_processes(self, number: int) -> int:
        """Signal everything that runs inside the phone; how many processes that were."""
        return send_signal(self.table.of(self.tree.root), number)

    def _host_process(self, path: str) -> Path | None:
        """/proc/<pid> of the phone's own processes is the host's, as far as it shows figures and opens nothing else."""
        _, top, pid, *rest = [*path.split("/"), "", ""]
        if top != "proc" or not pid.isdigit() or not set(filter(None, rest)) <= _PROCESS_NODES:
            return None
        return Path(path) if any(process.pid == int(pid) for process in self.table.of(self.tree.root)) else None

    def banner(self) -> bytes:
        """The phone's own words when it is connected."""
        names = ("ro.product.name", "ro.product.model", "ro.product.device")
        features = ",".join(name for name, sdk in _FEATURES.items() if self.profile.sdk >= sdk)
        facts = "".join(f"{name}={self.properties[name]};" for name in names)
        return f"device::{facts}features={features}".encode()

    def save(self) -> None:
        """Write `state.json`, in one piece."""
        state = {
            "port": self.port,
            "programs": sorted(self.pushed.digests),
            "settings": self.settings,
            "radios_on": self.radios_on,
            "charge": self.body.charge,
            "charging": self.supply.plugged,
        }
        rewrite(self.folder / "state.json", json.dumps(state).encode())

    def _saved(self) -> dict[str, Any]:
        try:
            saved = json.loads((self.folder / "state.json").read_text())
        except (OSError, ValueError):  # a new phone, or one whose state was lost: it starts as new
            return {}
        return saved if isinstance(saved, dict) else {}
