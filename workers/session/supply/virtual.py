"""Switch a virtual phone's supply over the control socket of the virtual phones."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from orchestrator.model.enrolment import SupplyWay

from .base import SupplyStuck

TIMEOUT_S = 10.0


class VirtualPort:
    """Implements `Switch`: the hub's port of a phone that does not exist. Its data lines stay."""

    way: SupplyWay = "virtual"
    needs_device = False

    def __init__(self, serial: str, control: Path) -> None:
        self._serial, self._control = serial, control

    def parameters(self) -> dict[str, Any]:
        return {"control": str(self._control)}

    def cut(self) -> None:
        self._switch(on=False)

    def restore(self) -> None:
        self._switch(on=True)

    def _switch(self, *, on: bool) -> None:
        request = {"do": "fault", "phone": self._serial, "fault": {"fault": "supply", "on": on}}
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(TIMEOUT_S)
                client.connect(str(self._control))
                client.sendall(json.dumps(request).encode() + b"\n")
                with client.makefile("rb") as replies:
                    reply = json.loads(replies.readline())
        except (OSError, ValueError) as e:
            raise self._stuck(str(e)) from e
        if not reply.get("ok"):
            raise self._stuck(str(reply.get("error")))

    def _stuck(self, why: str) -> SupplyStuck:
        return SupplyStuck(f"the virtual phones did not switch its supply: {why}", device=self._serial)
