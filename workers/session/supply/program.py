"""Switch the supply by a program on this host: uhubctl, or the user's own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any, Literal

from orchestrator.model.enrolment import SupplyWay
from orchestrator.model.errors import Unsupported
from orchestrator.model.wiring import WiredSupply

from .base import SupplyStuck

DEADLINE_S = 30.0


class Program:
    """Implements `Switch`: one program with arguments to cut, one to restore."""

    needs_device = False

    def __init__(self, serial: str, way: SupplyWay, cut: Sequence[str], restore: Sequence[str]) -> None:
        self.way = way
        self._serial, self._cut, self._restore = serial, tuple(cut), tuple(restore)

    def parameters(self) -> dict[str, Any]:
        return {"cut": list(self._cut), "restore": list(self._restore)}

    def check(self) -> None:
        """Raises Unsupported where this host has no such program."""
        for argv in (self._cut, self._restore):
            if shutil.which(argv[0]) is None:
                raise Unsupported(
                    f"its supply is switched by `{argv[0]}`, which this host does not have",
                    device=self._serial,
                    remedy="install it, or correct `supply` in the wiring file",
                )

    def cut(self) -> None:
        self._run(self._cut)

    def restore(self) -> None:
        self._run(self._restore)

    def _run(self, argv: tuple[str, ...]) -> None:
        try:
            done = subprocess.run(argv, capture_output=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise self._stuck(argv, str(e)) from e
        if done.returncode != 0:
            output = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
            raise self._stuck(argv, f"exit status {done.returncode}: {output}")

    def _stuck(self, argv: tuple[str, ...], why: str) -> SupplyStuck:
        return SupplyStuck(f"`{' '.join(argv)}`: {why}", device=self._serial, remedy="try this command by hand")


def of_wiring(serial: str, supply: WiredSupply) -> Program:
    """Return the program that the wiring file names. uhubctl's exit status tells whether the port took it."""
    if supply.command is not None:
        return Program(serial, "command", supply.command.cut, supply.command.restore)
    assert supply.uhubctl is not None
    port = ("uhubctl", "-l", supply.uhubctl.location, "-p", str(supply.uhubctl.port), "-a")
    return Program(serial, "uhubctl", (*port, "off"), (*port, "on"))


def from_parameters(serial: str, way: Literal["uhubctl", "command"], parameters: dict[str, Any]) -> Program:
    return Program(serial, way, parameters["cut"], parameters["restore"])
