"""One virtual phone: its profile, files, settings, body (battery and heat) and faults, without any transport."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import platform
import time
import uuid
import zlib
from pathlib import Path
from typing import Any

from .gauge import FuelGauge, Reading
from .physics import State, initial_state, step
from .processes import ROOT_VARIABLE, Process, ProcessTable, send_signal
from .profile import Profile
from .sysfs import NodeWriter, denied_nodes, dynamic_nodes, links, static_nodes
from .tree import Tree

_ABIS = {"x86_64": "x86_64", "aarch64": "arm64-v8a", "armv7l": "armeabi-v7a", "i686": "x86"}
_HOST_CORES = len(os.sched_getaffinity(0))
_DETACHING_S = 2.0
_DRIVER_VARIABLES = ("OCL_", "POCL_", "VK_", "LP_", "MESA_", "GALLIUM_", "LD_LIBRARY_PATH")
"""Variables of the host that choose its OpenCL and Vulkan drivers: they hold inside the phones too."""
_DEFAULT_SETTINGS = {
    "global": {"airplane_mode_on": "0", "stay_on_while_plugged_in": "0", "low_power": "0", "auto_sync": "1"},
    "system": {"screen_brightness": "128", "screen_brightness_mode": "1", "screen_off_timeout": "30000"},
    "secure": {},
}


class Phone:
    """A phone whose state lives in `folder`: `root/` (its files) and `state.json` (settings, charge, port)."""

    def __init__(self, profile: Profile, index: int, folder: Path, table: ProcessTable, slot: Path | None) -> None:
        self.profile = profile
        self.serial = f"virtual-{profile.name}-{index}"
        self.folder = folder
        self.slot = slot
        self.table = table
        self.tree = Tree(folder / "root", capacity_bytes=profile.storage_free_bytes, denied=denied_nodes(profile))
        self.processes: list[Process] = []
        """What ran inside at the last tick."""
        self.journals: set[str] = set()
        """Phone paths that agents were told to write their journals to."""
        self.garbled = False
        """Fault: what agents write arrives as garbage."""
        saved = self._saved()
        self.port = int(saved.get("port", 0))
        self.settings = {space: dict(values) for space, values in saved.get("settings", _DEFAULT_SETTINGS).items()}
        self.radios_on = bool(saved.get("radios_on", True))
        self.body: State = initial_state(profile)
        self.body = dataclasses.replace(
            self.body,
            charge=float(saved.get("charge", self.body.charge)),
            charging=bool(saved.get("charging", self.body.charging)),
        )
        self.gauge = FuelGauge(profile, zlib.crc32(self.serial.encode()))
        self.thermal_override: int | None = None
        """Thermal status that `cmd thermalservice override-status` pretends."""
        self.battery_override: dict[str, str] | None = None
        """Frozen fields of `dumpsys battery` after `unplug` or `set`."""
        self.held_skin_c: float | None = None
        """Fault: the skin does not cool."""
        self.background: set[asyncio.Task[int]] = set()
        """Commands that were left running behind a shell that has ended."""
        self.own_children: set[int] = set()
        """Pids that `execution` waits for itself."""
        self.starting = 0
        """Programs that are being started, whose pids are not known yet."""
        self.started_at = float("-inf")
        """Monotonic time at which a program was last started inside."""
        self.first_skin_c = self.body.skin_c
        """Skin temperature at start-up, which the thermal service's cache never forgets."""
        self.reboot_requested = asyncio.Event()
        self._nodes = NodeWriter(self.tree.root)
        self._cpu_s: dict[int, float] = {}
        self.properties = _properties(self)
        self.boot()

    def boot(self) -> None:
        """Start up: a new boot id, uptime from zero, files of /sys and /system as after flashing."""
        self.boot_id = str(uuid.uuid4())
        self.booted_at = time.monotonic()
        self.thermal_override = self.battery_override = None
        self.first_skin_c = self.body.skin_c
        self._nodes = NodeWriter(self.tree.root)
        self._nodes.write(static_nodes(self.profile))
        self._nodes.link(links(self.profile))
        self._nodes.write({"/proc/sys/kernel/random/boot_id": self.boot_id})
        self._nodes.write({"/system/build.prop": "\n".join(f"{k}={v}" for k, v in self.properties.items())})
        self._nodes.write(dynamic_nodes(self.profile, self.body, self.reading()))
        self.tree.live["/proc/uptime"] = lambda: f"{self.uptime_s():.2f} {self.uptime_s() * self.profile.cores:.2f}\n"
        self.tree.pass_through = self._host_process

    def uptime_s(self) -> float:
        return time.monotonic() - self.booted_at

    def reading(self) -> Reading:
        """What the fuel gauge says now."""
        return self.gauge.read(self.body)

    def is_busy(self) -> bool:
        """Whether something runs inside, or may: a program that detaches is found a moment after it was started."""
        return bool(self.processes or self.own_children) or time.monotonic() - self.started_at < _DETACHING_S

    def tick(self, dt_s: float, processes: list[Process], *, speed: float = 1.0) -> None:
        """Let time pass, `speed` times as fast for the body; `processes` are those that run inside the phone now."""
        self.processes = processes
        load = self._load(dt_s, processes)
        self.body = step(self.profile, self.body, load, dt_s * speed)
        if self.held_skin_c is not None:
            self.heat_to(self.held_skin_c, hold=True)
        self._nodes.write(dynamic_nodes(self.profile, self.body, self.reading()))

    def set_charge(self, charge: float) -> None:
        """Set the battery's state of charge, 0 to 1."""
        self.body = dataclasses.replace(self.body, charge=charge)

    def set_charging(self, on: bool) -> None:
        """Switch USB power."""
        self.body = dataclasses.replace(self.body, charging=on)

    def heat_to(self, skin_c: float | None, *, hold: bool) -> None:
        """Set the skin's temperature (None: just into thermal status 3), and keep it there where `hold`."""
        target_c = self.profile.thermal.status_skin_c[2] + 1 if skin_c is None else skin_c
        self.held_skin_c = target_c if hold else None
        self.body = dataclasses.replace(self.body, skin_c=target_c, die_c=max(self.body.die_c, target_c))

    def _load(self, dt_s: float, processes: list[Process]) -> float:
        """Share of the host's cores that the phone's processes used since the last tick."""
        before, self._cpu_s = self._cpu_s, {process.pid: process.cpu_s for process in processes}
        used_s = sum(cpu_s - before.get(pid, cpu_s) for pid, cpu_s in self._cpu_s.items())
        return min(1.0, max(0.0, used_s / (dt_s * _HOST_CORES))) if dt_s > 0 else 0.0

    def signal_processes(self, number: int) -> int:
        """Signal everything that runs inside the phone; how many processes that were."""
        return send_signal(self.table.of(self.tree.root), number)

    def _host_process(self, path: str) -> Path | None:
        """/proc/<pid> of the phone's own processes is the host's."""
        pid = path.split("/")[2] if path.startswith("/proc/") else ""
        if not pid.isdigit() or Path(path).name in ("root", "cwd", "exe", "environ"):
            return None
        return Path(path) if any(process.pid == int(pid) for process in self.table.of(self.tree.root)) else None

    def environment(self) -> dict[str, str]:
        """Environment of processes inside the phone."""
        environment = {name: value for name, value in os.environ.items() if name.startswith(_DRIVER_VARIABLES)}
        environment |= {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.tree.root / "data/local/tmp"),
            "TMPDIR": str(self.tree.root / "data/local/tmp"),
            ROOT_VARIABLE: str(self.tree.root),
            "POCKETFARM_APIS": ",".join(self.profile.apis),
        }
        if self.slot:
            environment["POCKETFARM_SLOT"] = str(self.slot)
        return environment

    def banner(self) -> bytes:
        """What the phone says of itself when it is connected."""
        names = ("ro.product.name", "ro.product.model", "ro.product.device")
        features = "shell_v2,cmd,stat_v2,ls_v2,fixed_push_mkdir,sendrecv_v2"
        facts = "".join(f"{name}={self.properties[name]};" for name in names)
        return f"device::{facts}features={features}".encode()

    def save(self) -> None:
        """Write `state.json`, atomically."""
        state = {
            "port": self.port,
            "settings": self.settings,
            "radios_on": self.radios_on,
            "charge": self.body.charge,
            "charging": self.body.charging,
        }
        fresh = self.folder / "state.json.new"
        fresh.write_text(json.dumps(state))
        fresh.replace(self.folder / "state.json")

    def _saved(self) -> dict[str, Any]:
        try:
            saved = json.loads((self.folder / "state.json").read_text())
        except (OSError, ValueError):  # a new phone, or one whose state was lost: it starts as new
            return {}
        return saved if isinstance(saved, dict) else {}


def _properties(phone: Phone) -> dict[str, str]:
    profile = phone.profile
    build = f"virtual.{profile.sdk}"
    return {
        "ro.product.name": f"{profile.device}_virtual",
        "ro.product.model": profile.model,
        "ro.product.device": profile.device,
        "ro.product.brand": profile.manufacturer,
        "ro.product.manufacturer": profile.manufacturer,
        "ro.product.cpu.abi": _ABIS.get(platform.machine(), platform.machine()),
        "ro.product.cpu.abilist": _ABIS.get(platform.machine(), platform.machine()),
        "ro.board.platform": profile.platform,
        "ro.hardware": "virtual",
        "ro.soc.model": profile.soc,
        "ro.serialno": phone.serial,
        "ro.build.fingerprint": (
            f"{profile.manufacturer}/{profile.device}_virtual/{profile.device}:{profile.android}/{build}/1"
            ":virtual/pocketfarm"
        ),
        "ro.build.version.release": profile.android,
        "ro.build.version.sdk": str(profile.sdk),
        "ro.build.type": "user",
        "ro.pocketfarm.source": "virtual",
        "ro.pocketfarm.profile": profile.name,
        "ro.pocketfarm.gpu": profile.gpu.name,
        "ro.pocketfarm.gpu_vendor": profile.gpu.vendor,
        "ro.pocketfarm.soc": profile.soc,
        "sys.boot_completed": "1",
        "init.svc.adbd": "running",
        "service.adb.tcp.port": "5555",
    }
