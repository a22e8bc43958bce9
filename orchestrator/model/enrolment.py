"""The device profile: what enrolment found out about one device with one system build. Measured, never assumed."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from .base import Model
from .power import Estimate, GaugeCalibration, PowerSource, Scope


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class NodeFact:
    """One node of the device, as the shell user found it. A phone has some forty, in four processes: a model
    takes seven times the memory."""

    path: str
    value: str = ""
    """First line, at most 100 characters."""
    error: str = ""
    """The reason why it cannot be read, e.g. `Permission denied`; empty where it can."""


class SourceFact(Model):
    """A source of power figures, and whether it can be used on this device."""

    source: PowerSource
    scope: Scope
    name: str = ""
    usable: bool
    reason: str = ""
    """The reason why not, and what would help."""


class SamplerCost(Model):
    """The cost of sampling itself on this device, measured with and without it."""

    period_ns: int
    latency_share: Estimate
    """Change of the median latency, as a share of it."""
    cpu_share: float = Field(ge=0)
    """Processor time of the sampler's thread over wall time."""
    power_w: Estimate | None = None
    """Change of the mean idle power; None where power cannot be read without the sampler."""

    @property
    def accepted(self) -> bool:
        """The median latency changes by no more than 1 %."""
        return abs(self.latency_share.value) <= 0.01


SupplyWay = Literal["none", "uhubctl", "command", "root", "virtual", "wireless"]


class Enrolment(Model):
    """The device profile of one (serial, build fingerprint); another build needs another one."""

    schema_version: Literal[1] = 1
    serial: str
    fingerprint: str
    version: int = Field(default=1, ge=1)
    """Counts the enrolments of this serial and build."""
    enrolled_at: float
    """Unix time."""
    agent_sha256: str = ""
    nodes: tuple[NodeFact, ...] = ()
    permissions: dict[str, bool] = Field(default_factory=dict)
    """The rights of the shell: `root`, `perfetto`, and what conditions need (`NEEDS` in `experiment/conditions.py`)."""
    sources: tuple[SourceFact, ...] = ()
    gauge: GaugeCalibration | None = None
    """None: not calibrated yet, or there is no gauge."""
    gauge_reason: str = ""
    """The reason why there is no calibration."""
    reference_temp_c: float | None = None
    """Battery temperature of the device at rest."""
    sampler: SamplerCost | None = None
    supply: SupplyWay = "none"
    """The way by which the farm can cut the device's supply."""

    @property
    def calibrated(self) -> bool:
        return self.gauge is not None
