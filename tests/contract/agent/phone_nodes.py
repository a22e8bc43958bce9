"""A phone's nodes as plain files below a folder, for POCKETFARM_SYSROOT."""

from __future__ import annotations

from pathlib import Path

BATTERY = {
    "type": "Battery",
    "current_now": "-412000",
    "voltage_now": "3911000",
    "temp": "287",
    "status": "Discharging",
    "charge_counter": "2100000",
}


def write_nodes(folder: Path, nodes: dict[str, str]) -> str:
    """Write nodes, by their path below `folder`; the folder as a word."""
    for path, text in nodes.items():
        node = folder / path
        node.parent.mkdir(parents=True, exist_ok=True)
        node.write_text(text + "\n")
    return str(folder)


def battery(**changes: str) -> dict[str, str]:
    return {f"sys/class/power_supply/battery/{name}": text for name, text in (BATTERY | changes).items()}


def clocks(khz: dict[str, tuple[int, int, tuple[int, ...]]]) -> dict[str, str]:
    """Policy -> (clock, cap, cores), each core with files of its own policy."""
    return {
        f"sys/devices/system/cpu/cpufreq/{policy}/scaling_{name}_freq": str(value)
        for policy, (now, cap, _) in khz.items()
        for name, value in (("cur", now), ("max", cap))
    }


def link_cores(folder: Path, khz: dict[str, tuple[int, int, tuple[int, ...]]]) -> None:
    for policy, (_, _, cores) in khz.items():
        for core in cores:
            link = folder / f"sys/devices/system/cpu/cpu{core}/cpufreq"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../cpufreq/{policy}")
