"""The Protocol of a source of power figures, and what a source is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from orchestrator.model.enrolment import SourceFact
from orchestrator.model.errors import TransientError, Unsupported
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries
from workers.devices.fleet import Member

SYS = Path("/sys")


class MeterLost(TransientError):
    """A meter that was there went away, or says what cannot be: another attempt may do."""

    cause = "meter_lost"


class ReadingLost(MeterLost):
    """A meter that goes on said something that is no reading: the block has no energy, and its times count."""


class PowerMeter(Protocol):
    """One source of power figures for one device, ready to measure one block."""

    fact: SourceFact

    def start(self) -> None:
        """Begin to measure. Raises MeterLost, TransportLost; nothing is left open then."""
        ...

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:
        """End, free the meter whatever happens, and return what was measured since `start`, on the device's clock.

        `events`: the agent's, for sources that the agent reads. A second call, or one without `start`, gives nothing.
        Raises MeterLost where the meter failed on the way.
        """
        ...


class HostMeter(Protocol):
    """A meter that hangs on this host: its times are the host's CLOCK_MONOTONIC."""

    def start(self) -> None:
        """Open and begin. Raises MeterLost; nothing is left open then."""
        ...

    def stop(self) -> tuple[Readings, ...]:
        """End and free the meter whatever happens. Raises MeterLost where it failed on the way."""
        ...


@dataclass(frozen=True)
class Readings:
    """The readings of one channel of a meter."""

    name: str
    t_ns: Sequence[int]
    """CLOCK_MONOTONIC of this host, rising."""
    power_w: Sequence[float]
    is_mean: bool = False
    """True if each value is a mean, as in `PowerSeries`."""
    gain_uncertainty: float = 0.01
    residual_ns: int = 0
    """The uncertainty of the meter's own clock on the host's."""


@dataclass(frozen=True)
class Bench:
    """The parts that a source is made from."""

    member: Member
    meter: Mapping[Any, Mapping[str, Any]] = field(default_factory=dict)
    """Kind of the external meter -> its options, from the wiring file; empty: the device has none."""
    virtual_control: Path | None = None
    """Control socket of the farm's virtual phones."""
    sys: Path = SYS
    """The folder of this host's sysfs."""

    def unsupported(self, message: str, remedy: str) -> Unsupported:
        return Unsupported(message, device=self.member.facts.serial, remedy=remedy)


def import_extra(name: str, extra: str, what: str) -> ModuleType:
    """An optional library. Raises Unsupported naming the extra that brings it."""
    import importlib

    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as e:  # OSError: the library finds no native part of its own
        raise Unsupported(
            f"{what} needs the Python package that `{extra}` brings: {e}", remedy=f"pip install 'pocketfarm[{extra}]'"
        ) from e


def power_of_energy(energy_j: Sequence[float], t_ns: Sequence[int]) -> list[float]:
    """Mean power since the reading before, of a counter of energy; the first, without a past, repeats the second."""
    power = [
        (after - before) / max(1e-9, (t1 - t0) / 1e9)
        for before, after, t0, t1 in zip(energy_j, energy_j[1:], t_ns, t_ns[1:], strict=False)
    ]
    return [*power[:1], *power]


def text_of(node: Path) -> str:
    """Return the text of a file of the system; empty where it cannot be read."""
    try:
        return node.read_text().strip()
    except OSError:
        return ""
