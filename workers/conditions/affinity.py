"""Cores that the agent may use: the fastest cluster, or the slowest."""

from __future__ import annotations

from typing import Literal

from orchestrator.errors import Unsupported
from workers.device.base import DeviceConnection

from .clock_nodes import Cluster, clusters


def cores_for(connection: DeviceConnection, affinity: Literal["any", "big", "little"]) -> str:
    """Cores as the agent's `--cpus` takes them, e.g. `6,7`; empty for any. Raises Unsupported where they are alike."""
    if affinity == "any":
        return ""
    found = clusters(connection)
    if len({cluster.highest_khz for cluster in found}) < 2:
        told = "its cores have one highest clock" if found else "it does not tell the clocks of its cores"
        raise Unsupported(
            f"there are no {affinity} cores: {told}", device=connection.serial, remedy="leave out conditions.affinity"
        )
    return ",".join(map(str, cores_of(found, affinity)))


def cores_of(found: tuple[Cluster, ...], affinity: Literal["big", "little"]) -> list[int]:
    """All cores with the highest, or the lowest, of the highest clocks."""
    edge_khz = (max if affinity == "big" else min)(cluster.highest_khz for cluster in found)
    return sorted(core for cluster in found if cluster.highest_khz == edge_khz for core in cluster.cores)
