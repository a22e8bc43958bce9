"""The nodes of /sys and /proc that measuring programs read, kept up to date from the physical state.

Values are rewritten in place (same inode), because an agent opens a node once and reads it again and again.
"""

from __future__ import annotations

import os
from pathlib import Path

from virtual_phones.profile import Profile

from .clock_nodes import GPU_FOLDER, dynamic_clocks, static_clocks
from .clocks import Clocks
from .gauge import Reading
from .odpm import energy_rails, rail_nodes, static_rails
from .physics import State, clock_cap

BATTERY = "/sys/class/power_supply/battery"
USB = "/sys/class/power_supply/usb"
THERMAL = "/sys/class/thermal"
INPUT_SUSPEND = f"{BATTERY}/input_suspend"
CHARGING_ENABLED = f"{BATTERY}/charging_enabled"


class NodeWriter:
    """Writes nodes below a root, each only when its text has changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last: dict[str, str] = {}

    def write(self, nodes: dict[str, str]) -> None:
        for path, text in nodes.items():
            if self._last.get(path) != text:
                self._last[path] = text
                _rewrite(self._root / path.lstrip("/"), f"{text}\n".encode())

    def link(self, links: dict[str, str]) -> None:
        """Make symbolic links that are not there yet."""
        for path, target in links.items():
            link = self._root / path.lstrip("/")
            if not link.is_symlink():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)


def _rewrite(path: Path, data: bytes) -> None:
    """Replace a file's content in place. A reader in between sees the old or the new value, perhaps followed by empty
    lines, but no mixture of digits."""
    try:
        handle = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return
    try:
        os.pwrite(handle, data.ljust(os.fstat(handle).st_size, b"\n"), 0)
        os.ftruncate(handle, len(data))
    finally:
        os.close(handle)


def static_nodes(profile: Profile) -> dict[str, str]:
    """Nodes that never change, with those that the shell user may not read."""
    nodes = {
        f"{BATTERY}/type": "Battery",
        f"{BATTERY}/present": "1",
        f"{BATTERY}/health": "Good",
        f"{BATTERY}/technology": "Li-ion",
        f"{BATTERY}/cycle_count": str(profile.cycle_count),
        f"{BATTERY}/charge_full": str(round(profile.battery.capacity_mah * 1000)),
        f"{BATTERY}/charge_full_design": str(round(profile.battery.capacity_mah * 1000)),
        f"{USB}/type": "USB",
        "/proc/meminfo": _meminfo(profile),
        "/proc/version": f"Linux version 4.0-virtual (pocketfarm) {profile.name}",
    }
    for zone, name in enumerate(("cpu", "gpu", "skin", "battery")):
        nodes[f"{THERMAL}/thermal_zone{zone}/type"] = name
    return nodes | static_clocks(profile) | static_rails(profile.odpm)


def dynamic_nodes(
    profile: Profile, state: State, reading: Reading, clocks: Clocks, *, boottime_ms: int = 0
) -> dict[str, str]:
    """Nodes that follow the physical state, with those that the shell user may not read; the battery's come from what
    the fuel gauge last said."""
    nodes = {
        f"{BATTERY}/current_now": str(reading.current),
        f"{BATTERY}/voltage_now": str(reading.voltage_uv),
        f"{BATTERY}/charge_counter": str(reading.charge_uah),
        f"{BATTERY}/capacity": str(reading.level),
        f"{BATTERY}/temp": str(reading.temp_dc),
        f"{BATTERY}/status": reading.status,
        f"{USB}/online": str(int(state.charging)),
    }
    for zone, temp_c in enumerate((state.die_c, state.die_c, state.skin_c, state.battery_c)):
        nodes[f"{THERMAL}/thermal_zone{zone}/temp"] = str(round(temp_c * 10) * 100)
    heat = clock_cap(profile.thermal, state.skin_c)
    return (
        nodes
        | dynamic_clocks(profile, clocks, heat, state.load)
        | energy_rails(profile.odpm, state.consumed_j, boottime_ms)
    )


def denied_nodes(profile: Profile) -> tuple[str, ...]:
    """Phone paths that answer `Permission denied`."""
    gpu = tuple(f"{GPU_FOLDER[profile.gpu.vendor]}/{name}" for name in profile.gpu.denied)
    battery = tuple(f"{BATTERY}/{name}" for name in profile.gauge.denied)
    supply = (INPUT_SUSPEND, CHARGING_ENABLED) if profile.root else ()
    return gpu + battery + supply + rail_nodes(profile.odpm)


def _meminfo(profile: Profile) -> str:
    """Return the memory of an idle phone."""
    total_kb = profile.memory_bytes // 1024
    left_kb = total_kb - profile.low_memory.system_bytes // 1024 if profile.low_memory else total_kb // 2
    rows = (("MemTotal", total_kb), ("MemFree", left_kb // 2), ("MemAvailable", left_kb), ("SwapTotal", 0))
    return "\n".join(f"{name + ':':<16}{value:>8} kB" for name, value in rows)
