"""The phone's battery gauge: the agent samples it, the host has nothing to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.model import telemetry
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries, PowerSource, Scope

from .base import Bench

NODES = "cat /sys/class/power_supply/*/current_now /sys/class/power_supply/*/current_avg"


class Gauge:
    """Implements `PowerMeter` as its null: the record's `power` events are the figures."""

    def __init__(self) -> None:
        self.fact = SourceFact(source=PowerSource.GAUGE, scope=Scope.DEVICE, name="battery gauge", usable=True)

    def start(self) -> None: ...

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:  # noqa: ARG002 (the agent has no part in it)
        return ()


def gauge(bench: Bench) -> Gauge:
    """Raises Unsupported where no node tells the battery's current."""
    if bench.member.facts.kind != "phone":
        raise bench.unsupported("it has no battery", "use RAPL, NVML or an external meter")
    result = bench.member.connection.shell(["sh", "-c", NODES])
    told = [line.strip() for line in result.stdout.decode(errors="replace").splitlines()]
    values = [int(line) for line in told if re.fullmatch(r"-?[0-9]{1,20}", line)]
    if values and all(telemetry.current(value) is None for value in values):
        raise bench.unsupported(
            f"its gauge says {values[0]}, by which firmware means that it has no reading", "use an external meter"
        )
    if not values:
        output = result.stderr.decode(errors="replace").strip().splitlines()
        raise bench.unsupported(
            f"the shell cannot read the battery's current: {output[0] if output else 'there is no such node'}",
            "use an external meter, or root the phone",
        )
    return Gauge()
