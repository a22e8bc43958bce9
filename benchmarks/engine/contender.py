"""The contenders of a benchmark, as the rounds see them: ours through the agent, peers in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .case import Arrays, Case


class ContenderError(Exception):
    """This contender has no result; the message becomes its row."""


@dataclass(frozen=True)
class Opened:
    """A model that has answered for the first time."""

    outputs: Arrays
    device: str
    version: str
    steps_ms: dict[str, float]
    """Set-up by step, the first inference last; import of an interpreter's packages apart, under `import`."""
    copies_inside: bool
    remarks: list[str] = field(default_factory=list)
    host_ms: float | None = None
    """The time of compiling on the host beforehand; None where the engine compiles on the device."""

    @property
    def total_ms(self) -> float:
        """Return the time from a process with its packages to the first output."""
        return sum(ms for step, ms in self.steps_ms.items() if step != "import")


@dataclass(frozen=True)
class Turn:
    """The result of one turn of a round."""

    samples_ms: list[float]
    copies_ms: float | None = None
    outputs: Arrays | None = None
    """The outputs of input 0, where they come with the turn."""
    processor_ms: float | None = None
    """The processor's time of an inference: what all threads spent, waiting ones that spin among them."""


class Contender(Protocol):
    """One engine on one device; `open` may be called again after `close`."""

    name: str

    def open(self, case: Case, caches: Path) -> Opened:
        """A new process, which loads the model and infers input 0. Raises ContenderError."""
        ...

    def infer(self, index: int) -> Arrays:
        """Outputs of input `index`. Raises ContenderError."""
        ...

    def turn(self, warmup_s: float, seconds: float, least: int) -> Turn:
        """Samples of input 0, at least so many and for at least so long. Raises ContenderError."""
        ...

    def close(self) -> None:
        """End the process."""
        ...
