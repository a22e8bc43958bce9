"""Android's fixed-performance mode: clocks that the phone can hold for long (Android 11, if the maker built it in).

The mode cannot be read: the power service's answer is the proof, and the clocks are recorded beside it."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection

from .base import Held
from .clock_nodes import clusters, read_node

VERB = "set-fixed-performance-mode-enabled"


class FixedPerformance:
    permission = "fixed_performance"

    def wanted(self, conditions: Conditions) -> str:
        return "on" if conditions.clocks == "fixed_performance" else ""

    def check(self, connection: DeviceConnection) -> None:
        """The power service refuses to switch off what it cannot switch on."""
        self._switch(connection, on=False)

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"clocks": limits(connection)}

    def prepare(self, connection: DeviceConnection) -> Held:
        self._switch(connection, on=True)
        return Held(f"accepted by the power service; {limits(connection) or 'clocks not told'}")

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:  # noqa: ARG002 (it is off at rest)
        self._switch(connection, on=False)

    def _switch(self, connection: DeviceConnection, *, on: bool) -> None:
        result = connection.shell(["cmd", "power", VERB, str(on).lower()])
        output = (result.stdout + result.stderr).decode(errors="replace").strip()
        if result.code != 0 or "Failed" in output:
            raise Unsupported(
                f"it has no fixed-performance mode: {output[:200] or f'exit status {result.code}'}",
                device=connection.serial,
                remedy="use conditions.clocks: default",
            )


def limits(connection: DeviceConnection) -> str:
    """`cpu0-3 300-1803 MHz, ...`; empty where the phone does not tell."""
    parts = []
    for cluster in clusters(connection):
        low, high = (read_node(connection, f"{cluster.folder}/scaling_{edge}_freq") for edge in ("min", "max"))
        if low.isdigit() and high.isdigit():
            cores = f"cpu{cluster.cores[0]}-{cluster.cores[-1]}"
            parts.append(f"{cores} {int(low) // 1000}-{int(high) // 1000} MHz")
    return ", ".join(parts)
