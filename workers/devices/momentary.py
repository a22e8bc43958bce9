"""Read an idle phone's gauge and clocks from what its shell says; in a session its agent tells (`Power.reading`)."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model.device import Reading

BATTERY = "/sys/class/power_supply/battery"
CPU = "/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"
KGSL = "/sys/class/kgsl/kgsl-3d0"
MALI = "/sys/class/misc/mali0/device"
GPU = (f"{KGSL}/gpuclk", f"{KGSL}/devfreq/cur_freq", f"{MALI}/cur_freq", f"{MALI}/clock")
"""The first that can be read counts, as in the agent (device_agent/src/telemetry/clocks.cc)."""
_MOST = 10**15
"""No node counts so far: a figure beyond is none."""
BATTERY_NODES = tuple(f"{BATTERY}/{name}" for name in ("current_now", "voltage_now", "status", "cycle_count"))
SCRIPT = f"grep -sH '' {' '.join((*BATTERY_NODES, CPU, *GPU))}; true"
"""One process reads all nodes; those that are absent or closed to the shell are passed over."""


def parse_nodes(text: str, at: float) -> Reading:
    """Lines `PATH:VALUE`. What is absent or no number is None."""
    nodes = dict(line.partition(":")[::2] for line in reversed(text.splitlines()))
    current, microvolts = _number(nodes, [BATTERY_NODES[0]]), _number(nodes, [BATTERY_NODES[1]])
    cycles, gpu = _number(nodes, [BATTERY_NODES[3]]), _number(nodes, GPU)
    clocks_khz = [_number(nodes, [path]) for path in nodes if path.endswith("/scaling_cur_freq")]
    cpu_khz = max((khz for khz in clocks_khz if khz), default=None)
    return Reading(
        at=at,
        current_raw=current,
        voltage_v=None if microvolts is None else microvolts * 1e-6,
        status=nodes.get(BATTERY_NODES[2], "").strip(),
        battery_cycles=cycles if cycles and cycles > 0 else None,
        cpu_hz=None if cpu_khz is None else cpu_khz * 1000,
        gpu_hz=None if gpu is None else hertz(gpu),
    )


def hertz(value: int) -> int:
    """Drivers print Hz, kHz or MHz; a graphics clock lies between 10 MHz and 10 GHz."""
    return value * 1_000_000 if value < 100_000 else value * 1000 if value < 10_000_000 else value


def _number(nodes: dict[str, str], paths: Iterable[str]) -> int | None:
    """Of the first of these nodes that holds one."""
    for path in paths:
        try:
            found = int(nodes[path])
        except (KeyError, ValueError):
            continue
        if abs(found) < _MOST:
            return found
    return None
