"""The events of the agent's sampler: phases, readings of power, and memory; and what all events have."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from . import telemetry
from .base import Model
from .device import Reading


class AgentEvent(Model):
    """A line of the agent."""

    seq: int = Field(ge=0)
    t_ns: int = Field(ge=0)


PhaseName = Literal["idle_before", "warmup", "load", "idle_after"]


class Phase(AgentEvent):
    """One phase of a block is over; written at its end."""

    event: Literal["phase"] = "phase"
    phase: PhaseName
    start_ns: int
    end_ns: int
    counts: dict[str, Annotated[int, Field(ge=0, lt=1 << 63)]] = Field(default={}, exclude_if=lambda value: not value)
    """The system's counts of the agent in it, with children that it waited for, by name (`cpu_ns`: processor time);
    empty of an older agent."""

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, said: Any) -> Any:
        """Read what agents told before they told counts: the processor's time alone."""
        if not isinstance(said, dict) or "cpu_ns" not in said:
            return said
        spent = said["cpu_ns"]
        return {k: v for k, v in said.items() if k != "cpu_ns"} | {"counts": {} if spent is None else {"cpu_ns": spent}}


class Power(AgentEvent):
    """One reading of the battery gauge and the clocks; absent nodes are null."""

    event: Literal["power"] = "power"
    current_ua: int | None = None
    """The current as the node prints it: sign and unit differ between phones and are calibrated on the host."""
    voltage_uv: int | None = None
    temp_dc: int | None = None
    """Battery temperature, tenths of a degree Celsius."""
    status: str = ""
    charge_uah: int | None = None
    gpu_hz: int | None = None
    cpu_khz: tuple[int, ...] = ()
    gpu_cap_hz: int | None = None
    """Highest clock that the system allows the GPU now."""
    cpu_cap_khz: tuple[int, ...] = ()
    """Highest clock that it allows each core now."""
    gpu_busy: float | None = None
    """Share of the time, 0 to 1, as the driver counts it."""
    cpu_busy: float | None = None
    """Share of all cores, 0 to 1, that was busy since the reading that told it last, with ourselves; every 100 ms."""
    own_busy: float | None = None
    """Our own part of `cpu_busy`."""
    skin_dc: int | None = None
    """Temperature of the skin's zone where one is readable, tenths of a degree Celsius."""
    read_ns: int = 0
    """The time that reading all the nodes took; `t_ns` is the time before the first."""

    def reading(self, at: float) -> Reading:
        """Return what it says of the battery and the clocks, as hosts announce it; `at`: its Unix time."""
        return Reading(
            at=at,
            current_raw=self.current_ua,
            voltage_v=telemetry.cell_v(self.voltage_uv),
            status=self.status,
            cpu_hz=max(self.cpu_khz, default=0) * 1000 or None,
            gpu_hz=self.gpu_hz,
        )


class Rails(AgentEvent):
    """One reading of the on-device power monitor: energy since boot of each rail."""

    event: Literal["rails"] = "rails"
    energy_uws: dict[str, int]
    """Rail -> uW s. Rails are multiplexed: their sum is not the device's energy."""


class Sampler(AgentEvent):
    """The sampling thread's account, when it ended."""

    event: Literal["sampler"] = "sampler"
    period_ns: int
    readings: int = Field(ge=0)
    missed: int = Field(default=0, ge=0)
    """Deadlines that it was too late for."""
    longest_gap_ns: int = Field(default=0, ge=0)
    cpu_ns: int = Field(default=0, ge=0)
    """Processor time of the thread."""


class Memory(AgentEvent):
    """Memory of the agent; the figures have different meanings and are never added up. Of somebody else's program they
    are the largest resident memory of one of its processes, and the largest PSS of its tree that was read."""

    event: Literal["memory"] = "memory"
    device_bytes: int = Field(ge=0)
    """The agent's own count of what it has allocated on the device."""
    device_peak_bytes: int = Field(ge=0)
    vm_hwm_bytes: int = Field(ge=0)
    vm_rss_bytes: int = Field(ge=0)
    pss_bytes: int | None = None
