"""The connection that a live run needs to a resident agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.model.event import Served
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.telemetry import Reading


class Wire(Protocol):
    """A wire to one resident agent, which answers requests in their order."""

    @property
    def serial(self) -> str: ...

    @property
    def readings(self) -> Sequence[Reading]:
        """All that its sampler told so far."""
        ...

    @property
    def gauge(self) -> GaugeCalibration | None:
        """The gauge as enrolment calibrated it."""
        ...

    def fileno(self) -> int:
        """Readable when there is something to hear."""
        ...

    def ask(
        self, number: int, *, network: str = "", count: int = 1, prompt: int = 0, generate: int = 0, hold_ns: int = 0
    ) -> None:
        """Send a request: so many inferences of a network, or an answer to so many tokens of its prompt, or without a
        network a time to hold. Raises FarmError."""
        ...

    def answers(self) -> list[Served]:
        """Return what was answered since, without waiting. Raises FarmError when the agent or the phone has gone."""
        ...

    def shut(self) -> None:
        """It is not to be used any more."""
        ...
