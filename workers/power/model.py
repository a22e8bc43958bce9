"""A virtual phone's own power model, through the control socket of the virtual phones.

It is the truth about a phone that does not exist: everything that comes from here is labelled `model`.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from orchestrator.model.device import Source
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.power import PowerSource, Scope

from .base import Bench, MeterLost
from .host_source import HostSource
from .polled import EnergyPoller

PERIOD_S = 0.05
TIMEOUT_S = 5.0


def model(bench: Bench) -> HostSource:
    """Raises Unsupported for everything but a virtual phone of this farm."""
    facts = bench.member.facts
    if facts.source != Source.VIRTUAL:
        raise bench.unsupported("only a virtual phone has a model of its power", "use the gauge or a meter")
    if bench.virtual_control is None:
        raise bench.unsupported("the control socket of the virtual phones is not known", "start them with `farm up`")
    control = bench.virtual_control

    def read_j() -> float:
        return float(ask_phone(control, facts.serial)["consumed_j"])

    try:
        read_j()
    except (OSError, ValueError, KeyError, MeterLost) as e:
        raise bench.unsupported(f"{control}: the model does not answer: {e}", "restart the virtual phones") from e
    fact = SourceFact(source=PowerSource.MODEL, scope=Scope.DEVICE, name="MODEL", usable=True)
    return HostSource(fact, EnergyPoller(read_j, PERIOD_S, f"MODEL of {facts.profile}", 0.0), None)


def ask_phone(control: Path, serial: str) -> dict[str, Any]:
    """The status of one virtual phone. Raises OSError, ValueError, MeterLost."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(TIMEOUT_S)
        client.connect(str(control))
        client.sendall(json.dumps({"do": "list", "phone": serial}).encode() + b"\n")
        with client.makefile("rb") as replies:
            reply = json.loads(replies.readline())
    if not reply.get("ok") or not reply.get("phones"):
        raise MeterLost(f"the virtual phones say: {reply.get('error')}", device=serial)
    return dict(reply["phones"][0])


def control_socket(state: Path) -> Path | None:
    """Where a farm's virtual phones listen; None where it has none."""
    try:
        return Path(json.loads((state / "virtual" / "phones.json").read_text())["control"])
    except (OSError, ValueError, KeyError):
        return None
