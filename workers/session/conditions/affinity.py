"""Choose the cores that the agent may use: the fastest cluster, the slowest, or given ones."""

from __future__ import annotations

from typing import Literal

from orchestrator.model.errors import ConditionNotMet, Unsupported
from workers.connection.base import DeviceConnection

from .clock_nodes import Cluster, clusters, read_node

CPUS = "/sys/devices/system/cpu"
ONLINE_WAIT_S = 60.0


def cores_for(connection: DeviceConnection, affinity: str) -> str:
    """Cores as the agent's `--cpus` takes them, e.g. `6,7`; empty for any.

    `affinity`: any, big, little, or a list such as `0-3,6`. Raises Unsupported where they are alike or not there, and
    ConditionNotMet where some are offline now. Where the device does not tell, the agent finds out.
    """
    if affinity == "any":
        return ""
    present, online = (_cores_in(read_node(connection, f"{CPUS}/{name}")) for name in ("present", "online"))
    offline = present - online if online else set()
    if affinity not in ("big", "little"):
        cores = listed(affinity)
        if present and not present.issuperset(cores):
            raise Unsupported(
                f"it has no cores {_core_list(set(cores) - present)}; it has {_core_list(present)}",
                device=connection.serial,
                remedy="change conditions.affinity",
            )
        _check_online(connection, offline & set(cores), online)
        return ",".join(map(str, cores))
    found = clusters(connection)
    # of a cluster that is switched off as a whole, older kernels do not tell the clocks
    _check_online(connection, offline - {core for cluster in found for core in cluster.cores}, online)
    if len({cluster.highest_khz for cluster in found}) < 2:
        why = "its cores have one highest clock" if found else "it does not tell the clocks of its cores"
        raise Unsupported(
            f"no core is {affinity}: {why}",
            device=connection.serial,
            remedy="leave out conditions.affinity",
        )
    cores = cores_of(found, "big" if affinity == "big" else "little")
    _check_online(connection, offline & set(cores), online)
    return ",".join(map(str, cores))


def _check_online(connection: DeviceConnection, missing: set[int], online: set[int]) -> None:
    if missing:
        raise ConditionNotMet(
            f"cores {_core_list(missing)} are offline now; online: {_core_list(online)}",
            device=connection.serial,
            remedy="its system switches idle cores off: name cores that stay online, or leave out conditions.affinity",
            retry_after_s=ONLINE_WAIT_S,
        )


def _cores_in(text: str) -> set[int]:
    """Return the cores of a node such as `0-3,6`; none where it is something else."""
    try:
        return set(listed(text))
    except ValueError:
        return set()


def _core_list(cores: set[int]) -> str:
    return ",".join(map(str, sorted(cores)))


def listed(cores: str) -> list[int]:
    """`0-3,6` -> 0, 1, 2, 3, 6."""
    ends = [part.partition("-")[::2] for part in cores.split(",")]
    return sorted({core for first, last in ends for core in range(int(first), int(last or first) + 1)})


def cores_of(found: tuple[Cluster, ...], affinity: Literal["big", "little"]) -> list[int]:
    """All cores with the highest, or the lowest, of the highest clocks."""
    edge_khz = (max if affinity == "big" else min)(cluster.highest_khz for cluster in found)
    return sorted(core for cluster in found if cluster.highest_khz == edge_khz for core in cluster.cores)
