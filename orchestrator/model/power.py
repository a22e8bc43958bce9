"""Power figures: their sources, the calibration of a battery gauge, and series of readings."""

from __future__ import annotations

from pydantic import Field

from .base import Model, Word, rule


class PowerSource(Word):
    """A source of power figures. Figures of different sources are never mixed in one comparison."""

    GAUGE = "gauge"
    """The phone's battery gauge, sampled on the phone by the agent."""
    ODPM = "odpm"
    """The on-device power monitor (rails), read on the phone by the agent."""
    PERFETTO = "perfetto"
    """The same rails, through perfetto's `android.power`."""
    METER = "meter"
    """An external meter at the battery's terminals or the supply."""
    RAPL = "rapl"
    """Energy counters of a workstation's CPU."""
    NVML = "nvml"
    """Energy counter of an NVIDIA GPU."""
    MODEL = "model"
    """A virtual phone's own model: the truth about something that does not exist."""
    TRACE = "trace"
    """A file that somebody recorded."""


class Scope(Word):
    """The scope of a figure: only figures of one scope compare."""

    DEVICE = "device"
    """The whole phone."""
    RAILS = "rails"
    """Some rails: less than the phone."""
    PACKAGE = "package"
    """A CPU package."""
    BOARD = "board"
    """A graphics board."""


class GaugeCalibration(Model):
    """The reading of a phone's battery gauge: current in A = raw * `ampere_per_unit` * `discharging_sign`, positive
    while the battery discharges."""

    ampere_per_unit: float = Field(default=1e-6, gt=0)
    """1e-6 where the node prints uA (as the kernel's documentation says), 1e-3 where it prints mA."""
    discharging_sign: int = -1
    """-1 or 1: sign of the raw current while the battery discharges."""
    refresh_ns: int = Field(default=1_000_000_000, gt=0)
    """The time between the gauge's news."""
    noise_a: float = Field(default=0.0, ge=0)
    """Standard deviation of one reading at a steady load, A; quantisation included."""
    gain_uncertainty: float = Field(default=0.05, ge=0)
    """Standard uncertainty of the gauge's gain, as a share: what no repetition makes smaller."""
    absolute: bool = False
    """True if an external meter has confirmed the gain; otherwise energies compare only on this phone."""
    method: str = ""
    """The method that found it: `load steps`, `assumed`, `meter NAME`."""

    @property
    def discharge_a_per_unit(self) -> float:
        """Current out of the battery for one unit of the raw reading, A; negative on gauges that count it so."""
        return self.ampere_per_unit * self.discharging_sign


SHORTEST_LOAD_S = 30.0
"""Measurement protocol, step 7: the shortest load of which energy is told."""
ASSUMED = GaugeCalibration(method="assumed")
"""The calibration that the kernel's documentation promises; the field disagrees."""


class ClockMap(Model):
    """Host monotonic time -> the device's CLOCK_BOOTTIME: device = host + offset_ns + drift * (host - reference_ns)."""

    offset_ns: int
    drift: float = 0.0
    reference_ns: int = 0
    residual_ns: int = Field(default=0, ge=0)
    """Half the width within which the true offset lies."""
    round_trips: int = Field(default=0, ge=0)

    def to_device(self, host_ns: int) -> int:
        return host_ns + self.offset_ns + round(self.drift * (host_ns - self.reference_ns))


class ClockAnchor(Model):
    """One moment on two clocks: Unix time by the host's, and the device's CLOCK_BOOTTIME."""

    unix_s: float
    device_ns: int
    residual_ns: int = Field(ge=0)
    """The distance that the two may have: half of the round trip that asked."""

    def to_unix_s(self, device_ns: int) -> float:
        """Unix time, by the host's clock, of a time of the device; both clocks run alike but for some 1e-5."""
        return self.unix_s + (device_ns - self.device_ns) * 1e-9


class PowerSeries(Model):
    """Readings of one source that is not the agent, on the device's clock."""

    source: PowerSource
    scope: Scope
    name: str
    """The name of the meter, rail or counter."""
    t_ns: tuple[int, ...]
    """CLOCK_BOOTTIME of the device, rising."""
    power_w: tuple[float, ...]
    """Power at these times; of a source that counts energy, the mean power since the reading before."""
    is_mean: bool = False
    """True if a value is the mean since the reading before (energy counters) instead of a momentary one."""
    gain_uncertainty: float = Field(default=0.01, ge=0)
    """Standard uncertainty of the gain, as a share."""
    clock: ClockMap | None = None
    """The map of its times to the device's clock; None where it has the device's clock itself."""
    lost: str = ""
    """The reason why a source that measured has no readings: what it said instead, and what to do."""

    @rule
    def _paired(self) -> None:
        if len(self.t_ns) != len(self.power_w):
            raise ValueError(f"{len(self.t_ns)} times for {len(self.power_w)} readings")


class Estimate(Model):
    """A figure with its 95 % interval, in the unit of its name."""

    value: float
    low: float
    high: float
    std: float = Field(ge=0)
    """Standard uncertainty."""
    systematic: float = Field(default=0.0, ge=0)
    """Part of that which is the same in every block of the device, the gain's left out: repetition leaves it."""
