"""The options of the agent's commands that run detached and keep a journal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AgentRequest(ABC):
    """One run of the agent; paths are the device's."""

    folder: str
    """The folder for this attempt alone, with the journal."""
    marker: str
    """`<serial>/<job>/<attempt>` (`Member.marker` has the details)."""
    deadline_s: float
    power_period_ms: int = 0
    cache: str = ""
    """Folder of compiled programs; empty: none is kept, for a cold run."""
    environment: tuple[str, ...] = ()
    """`NAME=VALUE` for this run alone."""

    @property
    def journal(self) -> str:
        return f"{self.folder}/journal.jsonl"

    @abstractmethod
    def argv(self) -> list[str]:
        """Return the command's words behind the agent's path."""

    def options(self) -> dict[str, object]:
        return {
            "--journal": self.journal,
            "--power-period-ms": self.power_period_ms,
            "--deadline-s": f"{self.deadline_s:g}",
            "--marker": self.marker,
        }


@dataclass(frozen=True, kw_only=True)
class BlockRequest(AgentRequest):
    """A run that is one block: rest, warm-up, load, rest."""

    warmup: int
    samples: int
    idle_ms: int = 0
    load_ms: int = 0
    stop_temp_dc: int = 0
    """Tenths of a degree Celsius above which warm-up and load end; 0: at none."""
    warmup_stable: float = 0.0
    """Share within which the last warm-ups must agree; 0: no matter."""
    cpus: str = ""
    """Cores for all threads of the agent; empty: any."""
    await_discharging_ms: int = 0
    discharging_sign: int = 0
    """Sign of the gauge's current while it discharges; 0: not known."""

    def options(self) -> dict[str, object]:
        given = {
            "--idle-ms": self.idle_ms,
            "--load-ms": self.load_ms,
            "--stop-temp-dc": self.stop_temp_dc,
            "--warmup-stable": self.warmup_stable,
            "--cpus": self.cpus,
            "--await-discharging-ms": self.await_discharging_ms,
            "--discharging-sign": self.discharging_sign,
        }
        always = {"--warmup": self.warmup, "--samples": self.samples}
        return {**super().options(), **always, **{name: value for name, value in given.items() if value}}


def words(options: dict[str, object]) -> list[str]:
    """Return options as they stand on a command line."""
    return [word for name, value in options.items() for word in (name, str(value))]


def tenths(temp_c: float | None) -> int:
    """Return a temperature in tenths of a degree, as the agent takes it; 0 of none."""
    return round(10 * (temp_c or 0.0))
