"""Conditions that must hold on a phone when a block starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Bytes, Celsius

from .affinity import Affinity

PERCENT = 100
SETTLED_C, SETTLED_C_PER_MIN = 1.0, 0.2
"""The distance of a settled battery from its temperature at rest, and its change: measurement protocol, step 6."""


class Range(Model):
    """A closed interval; either end may be open."""

    min: float | None = None
    max: float | None = None

    @rule
    def _ordered(self) -> None:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")


@dataclass(frozen=True)
class Needs:
    """The things that a phone must have for a condition, declared beside its field."""

    permission: str = ""
    """A right of the shell, as the device's profile names it."""
    tools: tuple[str, ...] = ()
    """Android's commands that a phone may lack."""
    when: object = True
    """The field's value that needs it."""


class Conditions(Model):
    """The conditions that must hold on a phone when a block starts, and `stop_temp`, while it runs. Workstations lack
    these facts and are not gated."""

    battery_percent: Range = Range(min=20)
    battery_temp_max: Celsius = 40.0
    """Highest battery temperature at the start, with a unit: `38 C`."""
    thermal_status_max: int = Field(default=1, ge=0, le=6)
    """Android's thermal status: 0 none ... 6 shutdown."""
    free_storage: Bytes = 200 * 1024 * 1024
    """Free space needed on the phone, with a unit: `1 GiB`."""
    battery_temp_min: Celsius | None = None
    """Lowest battery temperature at the start."""
    skin_temp_max: Celsius | None = None
    """Highest skin temperature at the start, where the phone tells it."""
    settled: bool = False
    """Start only where the battery is within 1 C of the device's reference temperature and changed by less than 0.2 C
    a minute over the last two minutes."""
    stop_temp: Celsius | None = Field(default=None, exclude_if=lambda value: value is None)
    """Temperature of battery or skin above which the agent ends warm-up and load, between two inferences or tokens. The
    block is `invalid`, `too_hot`, and keeps what it measured."""
    supply: Literal["any", "discharging", "cut"] = "any"
    """`discharging`: the phone must run from its battery; `cut`: the farm cuts its supply for the block, and restores
    it afterwards."""
    clocks: Annotated[
        Literal["default", "fixed_performance", "locked"],
        Needs("fixed_performance", ("cmd",), when="fixed_performance"),
        Needs("lock_clocks", when="locked"),
    ] = "default"
    """Clock policy for the block: the system's own; Android's fixed-performance mode; or locked at the highest clock
    (needs root)."""
    affinity: Affinity = "any"
    """Cores that the agent may use: `any`, `big` (of the highest clock), `little`, or a list such as `0-3,6`."""
    airplane_mode: Annotated[bool, Needs("airplane_mode", ("cmd",))] = False
    """Switch the radios off for the block, and back afterwards."""
    bluetooth_off: Annotated[bool, Needs("bluetooth", ("settings", "svc"))] = False
    """Switch Bluetooth off for the session, and back afterwards."""
    battery_saver_off: Annotated[bool, Needs("battery_saver", ("cmd", "settings"))] = False
    """Switch the battery saver off for the session, and back afterwards."""
    screen_dimmed: Annotated[bool, Needs("write_settings", ("settings",))] = False
    """Manual minimum brightness for the block, restored afterwards."""
    sync_off: Annotated[bool, Needs(tools=("settings",))] = False
    """Switch automatic synchronisation off for the block, restored afterwards."""
    background_stopped: Annotated[bool, Needs(tools=("am",))] = False
    """End background processes before the block."""

    def needs(self) -> Iterator[Needs]:
        """Yield what a phone must have for those that are wanted."""
        return (each for name, each in NEEDS if getattr(self, name) == each.when)

    def impossible(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield what no phone can ever meet, so that jobs would wait for good: field and why. Old ledgers have some."""
        for name, end in (("min", self.battery_percent.min), ("max", self.battery_percent.max)):
            if end is not None and not 0 <= end <= PERCENT:
                yield ("battery_percent", name), f"a charge is 0 to {PERCENT} %, got {end:g}"
        low, high = self.battery_temp_min, self.battery_temp_max
        if low is not None and low > high:
            yield ("battery_temp_min",), f"{low:g} C is above battery_temp_max, {high:g} C"
        if self.stop_temp is not None and self.stop_temp <= high:
            yield ("stop_temp",), f"{self.stop_temp:g} C is not above battery_temp_max, {high:g} C"


NEEDS: tuple[tuple[str, Needs], ...] = tuple(
    (name, each)
    for name, field in Conditions.model_fields.items()
    for each in field.metadata
    if isinstance(each, Needs)
)
"""Every need, by the field that has it."""
