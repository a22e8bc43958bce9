"""The nodes of /sys and /proc that measuring programs read, kept up to date from the physical state.

Values are rewritten in place (same inode), because an agent opens a node once and reads it again and again.
"""

from __future__ import annotations

import os
from itertools import accumulate
from pathlib import Path

from .gauge import Reading
from .physics import State, clock_cap
from .profile import CpuCluster, Profile

BATTERY = "/sys/class/power_supply/battery"
USB = "/sys/class/power_supply/usb"
CPU = "/sys/devices/system/cpu"
THERMAL = "/sys/class/thermal"
GPU_FOLDER = {"adreno": "/sys/class/kgsl/kgsl-3d0", "mali": "/sys/class/misc/mali0/device"}


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
    """Nodes that never change."""
    nodes = {
        f"{BATTERY}/type": "Battery",
        f"{BATTERY}/present": "1",
        f"{BATTERY}/health": "Good",
        f"{BATTERY}/technology": "Li-ion",
        f"{BATTERY}/cycle_count": str(profile.cycle_count),
        f"{BATTERY}/charge_full": str(round(profile.battery.capacity_mah * 1000)),
        f"{BATTERY}/charge_full_design": str(round(profile.battery.capacity_mah * 1000)),
        f"{USB}/type": "USB",
        f"{CPU}/possible": f"0-{profile.cores - 1}",
        f"{CPU}/present": f"0-{profile.cores - 1}",
        f"{CPU}/online": f"0-{profile.cores - 1}",
        "/proc/meminfo": _meminfo(profile.memory_bytes),
        "/proc/version": f"Linux version 4.0-virtual (pocketfarm) {profile.name}",
    }
    for zone, name in enumerate(("cpu", "gpu", "skin", "battery")):
        nodes[f"{THERMAL}/thermal_zone{zone}/type"] = name
    for first, cluster in _policies(profile):
        policy = f"{CPU}/cpufreq/policy{first}"
        nodes[f"{policy}/cpuinfo_min_freq"] = str(cluster.min_khz)
        nodes[f"{policy}/cpuinfo_max_freq"] = str(cluster.max_khz)
        nodes[f"{policy}/scaling_governor"] = "schedutil"
    return _readable(profile, nodes | _static_gpu(profile))


def dynamic_nodes(profile: Profile, state: State, reading: Reading) -> dict[str, str]:
    """Nodes that follow the physical state; the battery's come from what the fuel gauge last said."""
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
    cap = clock_cap(profile.thermal, state.skin_c)
    for first, cluster in _policies(profile):
        policy = f"{CPU}/cpufreq/policy{first}"
        top_khz = max(cluster.min_khz, round(cluster.max_khz * cap))
        nodes[f"{policy}/scaling_min_freq"] = str(cluster.min_khz)
        nodes[f"{policy}/scaling_max_freq"] = str(top_khz)
        nodes[f"{policy}/scaling_cur_freq"] = str(top_khz if state.load > 0.05 else cluster.min_khz)
    return _readable(profile, nodes | _dynamic_gpu(profile, state, cap))


def links(profile: Profile) -> dict[str, str]:
    """Symbolic links and their targets: as in the kernel, a core's cpufreq folder is its cluster's policy."""
    return {
        f"{CPU}/cpu{core}/cpufreq": f"../cpufreq/policy{first}"
        for first, cluster in _policies(profile)
        for core in range(first, first + cluster.cores)
    }


def _policies(profile: Profile) -> list[tuple[int, CpuCluster]]:
    """Each cluster by its first core."""
    firsts = accumulate((cluster.cores for cluster in profile.cpu), initial=0)
    return list(zip(firsts, profile.cpu, strict=False))


def _readable(profile: Profile, nodes: dict[str, str]) -> dict[str, str]:
    """Nodes without those that the shell user may not read: they are no files, so that an agent cannot read them
    either."""
    denied = set(denied_nodes(profile))
    return {path: text for path, text in nodes.items() if path not in denied}


def denied_nodes(profile: Profile) -> tuple[str, ...]:
    """Phone paths that answer `Permission denied`."""
    gpu = tuple(f"{GPU_FOLDER[profile.gpu.vendor]}/{name}" for name in profile.gpu.denied)
    return gpu + tuple(f"{BATTERY}/{name}" for name in profile.gauge.denied)


def _static_gpu(profile: Profile) -> dict[str, str]:
    clocks, folder = profile.gpu.clocks_hz, GPU_FOLDER[profile.gpu.vendor]
    frequencies = " ".join(str(clock) for clock in clocks)
    if profile.gpu.vendor == "mali":
        return {f"{folder}/available_frequencies": frequencies, f"{folder}/gpuinfo": profile.gpu.name}
    return {
        f"{folder}/gpu_model": profile.gpu.name.replace(" (TM) ", ""),
        f"{folder}/devfreq/available_frequencies": frequencies,
        f"{folder}/devfreq/min_freq": str(clocks[0]),
    }


def _dynamic_gpu(profile: Profile, state: State, cap: float) -> dict[str, str]:
    clocks, folder = profile.gpu.clocks_hz, GPU_FOLDER[profile.gpu.vendor]
    allowed = [clock for clock in clocks if clock <= clocks[-1] * cap] or [clocks[0]]
    clock = allowed[-1] if state.load > 0.05 else clocks[0]
    percent = round(100 * state.load)
    if profile.gpu.vendor == "mali":
        return {f"{folder}/cur_freq": str(clock), f"{folder}/utilization": str(percent)}
    return {
        f"{folder}/gpuclk": str(clock),
        f"{folder}/gpu_busy_percentage": f"{percent} %",
        f"{folder}/gpubusy": f"{percent * 10_000:7d} {1_000_000 if percent else 0:7d}",
        f"{folder}/devfreq/cur_freq": str(clock),
        f"{folder}/devfreq/max_freq": str(allowed[-1]),
    }


def _meminfo(memory_bytes: int) -> str:
    total_kb = memory_bytes // 1024
    rows = (("MemTotal", total_kb), ("MemFree", total_kb // 4), ("MemAvailable", total_kb // 2), ("SwapTotal", 0))
    return "\n".join(f"{name + ':':<16}{value:>8} kB" for name, value in rows)
