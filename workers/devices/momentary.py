"""Read an idle phone's gauge and clocks from what its shell says; in a session its agent tells (`Power.reading`)."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model import telemetry
from orchestrator.model.device import Reading

CPU = "/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"
KGSL = "/sys/class/kgsl/kgsl-3d0"
MALI = "/sys/class/misc/mali0/device"
GPU = (f"{KGSL}/gpuclk", f"{KGSL}/devfreq/cur_freq", f"{MALI}/cur_freq", f"{MALI}/clock")
"""The first that can be read counts, as in the agent (device_agent/src/telemetry/clocks.cc)."""
MOST_CYCLES = 20_000
_MOST = 10**15
"""No node counts so far: a figure beyond is none."""
SUPPLIES = "/sys/class/power_supply"
BATTERY_NODES = ("type", "current_now", "current_avg", "voltage_now", "status", "cycle_count", "health")
SCRIPT = (
    f"grep -sH '' {' '.join((*(f'{SUPPLIES}/*/{name}' for name in BATTERY_NODES), CPU, *GPU))}; echo NOW:$(date +%s)"
)
"""One process reads all nodes; those that are absent or closed to the shell are passed over. `NOW`: its clock."""
CLOCK_OFF_S = 60.0


def parse_nodes(text: str, at: float) -> Reading:
    """Lines `PATH:VALUE`. What is absent or no number is None."""
    nodes = dict(line.partition(":")[::2] for line in reversed(text.splitlines()))
    battery = _battery(nodes)
    current = telemetry.current(_number(nodes, [f"{battery}/{name}" for name in ("current_now", "current_avg")]))
    cycles, gpu = _number(nodes, [f"{battery}/cycle_count"]), _number(nodes, GPU)
    clocks_khz = [_number(nodes, [path]) for path in nodes if path.endswith("/scaling_cur_freq")]
    cpu_khz = max((khz for khz in clocks_khz if khz), default=None)
    return Reading(
        at=at,
        current_raw=current,
        voltage_v=telemetry.cell_v(_number(nodes, [f"{battery}/voltage_now"])),
        status=nodes.get(f"{battery}/status", "").strip(),
        battery_health=nodes.get(f"{battery}/health", "").strip()[:40],
        battery_cycles=cycles if cycles and 0 < cycles < MOST_CYCLES else None,
        cpu_hz=None if cpu_khz is None else cpu_khz * 1000,
        gpu_hz=None if gpu is None else hertz(gpu),
    )


def clock_off(text: str, now: float) -> float | None:
    """Return by how much the phone's clock is ahead, to ten seconds; None where that is little or not told."""
    said = next((line[4:].strip() for line in reversed(text.splitlines()) if line.startswith("NOW:")), "")
    if not said.isdecimal() or len(said) > 11:
        return None
    off_s = int(said) - now
    return round(off_s, -1) if abs(off_s) >= CLOCK_OFF_S else None


def _battery(nodes: dict[str, str]) -> str:
    """Folder of the supply of type Battery that has a current, else of any battery, as the agent takes it
    (device_agent/src/telemetry/battery.cc), else that of the usual name."""
    folders = [path.rpartition("/")[0] for path in sorted(nodes) if path.startswith(SUPPLIES)]
    batteries = [folder for folder in dict.fromkeys(folders) if nodes.get(f"{folder}/type", "").strip() == "Battery"]
    telling = [folder for folder in batteries if nodes.get(f"{folder}/current_now", "").strip()]
    return next(iter([*telling, *batteries]), f"{SUPPLIES}/battery")


def hertz(value: int) -> int:
    """Drivers print Hz, kHz or MHz; a graphics clock lies between 10 MHz and 10 GHz."""
    return value * 1_000_000 if value < 100_000 else value * 1000 if value < 10_000_000 else value


def _number(nodes: dict[str, str], paths: Iterable[str]) -> int | None:
    """Return the number of the first of these nodes that holds one."""
    for path in paths:
        try:
            found = int(nodes[path])
        except (KeyError, ValueError):
            continue
        if abs(found) < _MOST:
            return found
    return None
