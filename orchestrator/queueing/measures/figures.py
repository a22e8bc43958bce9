"""The figures of a run; the keys of `--json`."""

from __future__ import annotations

from orchestrator.model.base import Model

MIDDLE = 0.02
"""A figure that is farther from the middle of its interval, as a share of the half, is told with both ends."""


class Figure(Model):
    """A figure, and its 95 % interval where there is enough to have one."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def text(self, scale: float = 1.0, unit: str = "") -> str:
        """Return the figure for people, with its interval; empty where there is none."""
        if self.value is None:
            return ""
        value = f"{self.value * scale:.4g}"
        if self.low is None or self.high is None:
            return value + unit
        half = (self.high - self.low) / 2
        if abs(self.low + half - self.value) > MIDDLE * half:
            return f"{value} ({self.low * scale:.4g} to {self.high * scale:.4g}){unit}"
        return f"{value} ± {half * scale:.2g}{unit}"


class Quantiles(Model):
    """A time in seconds."""

    mean: Figure
    p50: Figure
    p90: Figure
    p99: Figure
    p99_9: Figure


class ClassFigures(Model):
    """The figures of requests that were meant to arrive after the warm-up."""

    requests: int
    waiting_s: Quantiles
    """The time from the intended arrival to the end, as far as nobody served it."""
    service_s: Quantiles
    sojourn_s: Quantiles
    """The time from the intended arrival to the end."""
    utilisation: Figure
    """Share of the servers' time."""
    queue_length: Figure
    """Requests that wait, on average over time."""
    drop_share: Figure
    lost_share: Figure
    """The share of requests whose server went away meanwhile, or that no server was left for; on phones alone."""
    deadline_miss_share: Figure
    """Dropped ones missed it too; without deadlines nothing is missed."""
    throughput_per_s: Figure
    """Requests served to the end."""
    energy_j_per_request: Figure
    """The energy while it was served; its share of a batch."""


class Totals(ClassFigures):
    """The figures of all classes."""

    energy_with_idle_j_per_request: Figure
    """All energy of all servers, over the requests that were served."""
