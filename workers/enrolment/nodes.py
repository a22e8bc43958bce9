"""Read the nodes that measuring needs: the value of each, or why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.model.enrolment import NodeFact
from workers.connection.base import DeviceConnection

BATTERY = (
    "type", "status", "present", "capacity", "current_now", "current_avg", "voltage_now", "temp", "cycle_count",
    "charge_counter", "charge_now", "charge_full", "charge_full_design", "input_suspend", "charging_enabled", "online",
    "scope",
)  # fmt: skip
ZONE = ("type", "temp")
POLICY = ("scaling_governor", "scaling_cur_freq", "scaling_min_freq", "scaling_max_freq", "cpuinfo_max_freq")
IIO = ("name", "energy_value")
FOLDERS = {
    "/sys/class/power_supply/*": BATTERY,
    "/sys/class/thermal/thermal_zone*": ZONE,
    "/sys/devices/system/cpu/cpufreq/policy*": POLICY,
    "/sys/bus/iio/devices/*": IIO,
}
"""Folders, and the names that are of use in each of them."""
KGSL = "/sys/class/kgsl/kgsl-3d0"
MALI = "/sys/class/misc/mali0/device"
SINGLE = (
    *(f"{KGSL}/{name}" for name in ("gpu_model", "gpuclk", "gpu_busy_percentage", "gpubusy", "devfreq/cur_freq")),
    *(f"{KGSL}/{name}" for name in ("devfreq/min_freq", "devfreq/max_freq", "devfreq/available_frequencies")),
    *(f"{MALI}/{name}" for name in ("gpuinfo", "cur_freq", "clock", "utilization", "time_in_state")),
    *("/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/self/smaps_rollup"),
)
ZONES = 16
"""Thermal zones that are kept: some phones have a hundred."""
BATCH = 40
"""Paths of one trip."""
VALUE_LENGTH = 100


def probe_nodes(connection: DeviceConnection) -> tuple[NodeFact, ...]:
    """Every node that is there, read as the shell user. Raises TransportLost."""
    paths = [*_paths(connection), *SINGLE]
    batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
    facts = [fact for batch in batches for fact in _read(connection, batch)]
    return tuple(fact for fact in facts if not ("No such file" in fact.error or "Not a directory" in fact.error))


def _paths(connection: DeviceConnection) -> Iterator[str]:
    for pattern, names in FOLDERS.items():
        listed = connection.shell(["sh", "-c", f"ls -d {pattern}"]).stdout.decode(errors="replace").split()
        folders = [folder for folder in listed if "*" not in folder]
        for folder in folders[:ZONES] if "thermal" in pattern else folders:
            yield from (f"{folder}/{name}" for name in names)


def _read(connection: DeviceConnection, paths: Sequence[str]) -> Iterator[NodeFact]:
    """Each node's text and exit status, in one trip."""
    commands = [["head", "-n", "4", path] for path in paths]
    for path, told in zip(paths, connection.shells(commands, deadline_s=30.0), strict=True):
        text = (told.stdout if told.code == 0 else told.stderr).decode(errors="replace")
        yield _fact(path, text.splitlines(), told.code)


def _fact(path: str, lines: list[str], code: int) -> NodeFact:
    first = next((line.strip() for line in lines if line.strip()), "")
    if code == 0:
        return NodeFact(path=path, value=first[:VALUE_LENGTH])
    return NodeFact(path=path, error=first.rpartition(": ")[2][:VALUE_LENGTH] or f"exit status {code}")


def readable(nodes: Iterable[NodeFact], name: str) -> bool:
    """Return whether some node of this name has a value."""
    return any(node.path.endswith(f"/{name}") and node.value for node in nodes)


def batteries(nodes: Iterable[NodeFact]) -> tuple[str, ...]:
    """Names of the phone's batteries that tell a current, by their design: of one that several drivers show, and beside
    that of a stylus, there is one."""
    told = {node.path: node.value for node in nodes if node.value}
    found: dict[str, str] = {}
    for path, value in told.items():
        folder, _, name = path.rpartition("/")
        is_own = told.get(f"{folder}/scope", "System") != "Device" and f"{folder}/current_now" in told
        if name == "type" and value == "Battery" and is_own and (design := told.get(f"{folder}/charge_full_design")):
            found.setdefault(design, folder.rpartition("/")[2])
    return tuple(sorted(found.values()))
