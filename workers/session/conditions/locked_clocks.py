"""Lock all clocks at their highest, with root: the lowest clock that the system may choose is set to the highest.
The limits from above stay as they are: what protects the phone from heat goes on, and is seen in the record."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection
from workers.connection.quote import quote

from .base import Held
from .clock_nodes import clusters, gpu_clock, read_node
from .root import root_shell

WHAT = "locking the clocks"


class LockedClocks:
    permission = "lock_clocks"

    def wanted(self, conditions: Conditions) -> str:
        return "locked at the highest" if conditions.clocks == "locked" else ""

    def check(self, connection: DeviceConnection) -> None:
        root_shell(connection, WHAT)
        if not targets(connection):
            raise Unsupported(
                "it does not tell its clocks", device=connection.serial, remedy="use conditions.clocks: default"
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {path: value for path in targets(connection) if (value := read_node(connection, path))}

    def prepare(self, connection: DeviceConnection) -> Held:
        wanted = targets(connection)
        root = root_shell(connection, WHAT)
        for path, value in wanted.items():
            root(_write(path, value))
        found = {path: read_node(connection, path) for path in wanted}
        if missed := [f"{path} reads {found[path] or 'nothing'}" for path in wanted if found[path] != wanted[path]]:
            raise ConditionNotMet(
                f"the clocks were locked, but {missed[0]} instead of {wanted[missed[0].split()[0]]}",
                device=connection.serial,
                remedy="a hot phone lowers its clocks: let it cool, or use conditions.clocks: default",
            )
        return Held(", ".join(f"{path.removeprefix('/sys/')}={value}" for path, value in found.items()))

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        root = root_shell(connection, WHAT)
        for path, value in saved.items():
            root(_write(path, value))


def targets(connection: DeviceConnection) -> dict[str, str]:
    """Node of each lowest clock -> the highest clock of its unit."""
    wanted = {f"{cluster.folder}/scaling_min_freq": str(cluster.highest_khz) for cluster in clusters(connection)}
    gpu = gpu_clock(connection)
    return wanted | ({gpu.low: str(gpu.highest)} if gpu else {})


def _write(path: str, value: str) -> str:
    return f"{quote(['echo', value])} > {quote([path])}"
