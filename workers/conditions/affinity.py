"""Cores that the agent may use: the fastest cluster, or the slowest."""

from __future__ import annotations

from typing import Literal

from orchestrator.errors import Unsupported
from workers.device.base import DeviceConnection

from .clock_nodes import Cluster, clusters


def cores_for(connection: DeviceConnection, affinity: str) -> str:
    """Cores as the agent's `--cpus` takes them, e.g. `6,7`; empty for any. Raises Unsupported where they are alike.

    `affinity`: any, big, little, or a list such as `0-3,6`.
    """
    if affinity == "any":
        return ""
    if affinity not in ("big", "little"):
        return ",".join(map(str, listed(affinity)))
    found = clusters(connection)
    if len({cluster.highest_khz for cluster in found}) < 2:
        told = "its cores have one highest clock" if found else "it does not tell the clocks of its cores"
        raise Unsupported(
            f"there are no {affinity} cores: {told}", device=connection.serial, remedy="leave out conditions.affinity"
        )
    return ",".join(map(str, cores_of(found, "big" if affinity == "big" else "little")))


def listed(cores: str) -> list[int]:
    """`0-3,6` -> 0, 1, 2, 3, 6."""
    ends = [part.partition("-")[::2] for part in cores.split(",")]
    return sorted({core for first, last in ends for core in range(int(first), int(last or first) + 1)})


def cores_of(found: tuple[Cluster, ...], affinity: Literal["big", "little"]) -> list[int]:
    """All cores with the highest, or the lowest, of the highest clocks."""
    edge_khz = (max if affinity == "big" else min)(cluster.highest_khz for cluster in found)
    return sorted(core for cluster in found if cluster.highest_khz == edge_khz for core in cluster.cores)
