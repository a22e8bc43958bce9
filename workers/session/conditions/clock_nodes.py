"""The nodes by which the clocks of cores and GPU are read, and locked with root."""

from __future__ import annotations

from dataclasses import dataclass

from workers.connection.base import DeviceConnection

POLICIES = "/sys/devices/system/cpu/cpufreq"
GPUS = (
    ("/sys/class/kgsl/kgsl-3d0/devfreq", "min_freq", "max_freq"),
    ("/sys/class/misc/mali0/device", "scaling_min_freq", "scaling_max_freq"),
)
"""Folder, node of the lowest and of the highest clock."""


@dataclass(frozen=True)
class Cluster:
    """Cores that share a clock."""

    cores: tuple[int, ...]
    highest_khz: int
    folder: str


@dataclass(frozen=True)
class GpuClock:
    low: str
    """Node of the lowest clock that the system allows."""
    high: str
    highest: int


def clusters(connection: DeviceConnection) -> tuple[Cluster, ...]:
    """The phone's clusters, slowest first; empty where it does not tell. Raises TransportLost."""
    folders = [f"{POLICIES}/{name}" for name in _listed(connection, POLICIES) if name.startswith("policy")]
    found = []
    for folder in folders:
        cores = tuple(int(word) for word in read_node(connection, f"{folder}/related_cpus").split() if word.isdigit())
        highest = read_node(connection, f"{folder}/cpuinfo_max_freq")
        if cores and highest.isdigit():
            found.append(Cluster(cores, int(highest), folder))
    return tuple(sorted(found, key=lambda cluster: (cluster.highest_khz, cluster.cores)))


def gpu_clock(connection: DeviceConnection) -> GpuClock | None:
    """The GPU's limits; None where no known node tells its clocks."""
    for folder, low, high in GPUS:
        clocks = read_node(connection, f"{folder}/available_frequencies").split()
        if clocks and all(clock.isdigit() for clock in clocks):
            return GpuClock(f"{folder}/{low}", f"{folder}/{high}", max(map(int, clocks)))
    return None


def read_node(connection: DeviceConnection, path: str) -> str:
    """A node's text; empty where it cannot be read."""
    result = connection.shell(["cat", path])
    return result.stdout.decode(errors="replace").strip() if result.code == 0 else ""


def _listed(connection: DeviceConnection, folder: str) -> list[str]:
    result = connection.shell(["ls", folder])
    return result.stdout.decode(errors="replace").split() if result.code == 0 else []
