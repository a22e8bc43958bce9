"""A virtual phone's own power model, through the control socket of the virtual phones.

It is the truth about a phone that does not exist: everything that comes from here is labelled `model`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.model.device import Source
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries, PowerSource, Scope

from .base import Bench, MeterLost, power_of_energy
from .polled import Poller

PERIOD_S = 0.05
TIMEOUT_S = 5.0


class Model:
    """Implements `PowerMeter`; the model tells the time of its count itself, on the clock of the phone's agent."""

    def __init__(self, control: Path, serial: str, profile: str) -> None:
        self.fact = SourceFact(source=PowerSource.MODEL, scope=Scope.DEVICE, name=f"MODEL of {profile}", usable=True)
        self._control, self._serial = control, serial
        self._counted: dict[int, float] = {}
        self._poller = Poller(self.read_j, PERIOD_S, self.fact.name, 0.0)

    def read_j(self) -> float:
        """Energy since the phone was switched on. Raises OSError, ValueError, KeyError, MeterLost."""
        phone = ask_phone(self._control, self._serial)
        energy_j = float(phone["consumed_j"])
        self._counted[int(phone["t_ns"])] = energy_j
        return energy_j

    def start(self) -> None:
        self._counted = {}
        self._poller.start()

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:  # noqa: ARG002 (the agent has no part in it)
        try:
            self._poller.stop()
        finally:
            counted, self._counted = sorted(self._counted.items()), {}
        if len(counted) < 2:
            return ()
        t_ns, energy_j = zip(*counted, strict=True)
        series = PowerSeries(
            source=self.fact.source,
            scope=self.fact.scope,
            name=self.fact.name,
            t_ns=t_ns,
            power_w=tuple(power_of_energy(energy_j, t_ns)),
            is_mean=True,
            gain_uncertainty=0.0,
        )
        return (series,)


def model(bench: Bench) -> Model:
    """Raises Unsupported for everything but a virtual phone of this farm."""
    facts = bench.member.facts
    if facts.source != Source.VIRTUAL:
        raise bench.unsupported("only a virtual phone has a model of its power", "use the gauge or a meter")
    if bench.virtual_control is None:
        raise bench.unsupported("the control socket of the virtual phones is not known", "start them with `farm up`")
    made = Model(bench.virtual_control, facts.serial, facts.profile)
    try:
        made.read_j()
    except (OSError, ValueError, KeyError, MeterLost) as e:
        raise bench.unsupported(f"the virtual phones do not answer: {e}", "restart them") from e
    return made


def ask_phone(control: Path, serial: str) -> dict[str, Any]:
    """The status of one virtual phone. Raises OSError, ValueError, MeterLost."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(str(control))
        client.sendall(json.dumps({"do": "truth", "phone": serial}).encode() + b"\n")
        with client.makefile("rb") as replies:
            reply = json.loads(replies.readline())
    if not reply.get("ok") or not reply.get("phones"):
        raise MeterLost(f"the virtual phones say: {reply.get('error')}", device=serial)
    return dict(reply["phones"][0])


def control_socket(state: Path) -> Path | None:
    """Return where a farm's virtual phones listen; None where it has none."""
    try:
        return Path(json.loads((state / "virtual" / "phones.json").read_text())["control"])
    except (OSError, ValueError, KeyError):
        return None
