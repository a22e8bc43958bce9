"""The wiring file: supplies and meters that are connected to the devices of one host. All of it is optional."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .base import Model, rule
from .quantity import Celsius


def _word(value: object) -> object:
    """YAML reads `3` and `1.2` as numbers; where a word is wanted they are words."""
    if isinstance(value, bool):
        raise ValueError("YAML reads an unquoted on, off, yes or no as true or false: put it in quotes")
    return str(value) if isinstance(value, int | float) else value


Word = Annotated[str, BeforeValidator(_word), Field(min_length=1)]
Argv = Annotated[tuple[Word, ...], Field(min_length=1)]
MeterKind = Literal["monsoon", "joulescope", "ppk2", "iio", "csv"]


class HubPort(Model):
    """A port of a hub that can switch its power, for `uhubctl`."""

    location: Word
    """The hub as `uhubctl` lists it: `1-1.4`."""
    port: int = Field(ge=1, le=64)


class SupplyCommand(Model):
    """Programs of the user's that switch the supply. Exit status 0: it is done."""

    cut: Argv
    """Program and arguments: `[usb-relay, "off", 3]`. No shell reads them."""
    restore: Argv


class WiredSupply(Model):
    """The way in which this host switches the supply of one device; exactly one."""

    uhubctl: HubPort | None = None
    command: SupplyCommand | None = None

    @rule
    def _one_way(self) -> None:
        if (self.uhubctl is None) == (self.command is None):
            raise ValueError("give exactly one of `uhubctl` (location, port) and `command` (cut, restore)")


class WiredDevice(Model):
    """The supply and meter that are wired to one device."""

    supply: WiredSupply | None = None
    meter: dict[MeterKind, dict[str, Any]] = Field(default_factory=dict, max_length=1)
    """External power meter: one kind with its options, `{monsoon: {serial: 12345}}`; docs/howto/power-sources.md has
    the options of each."""
    reference_temp: Celsius | None = None
    """Temperature of its battery at rest where it stands, with a unit: `24 C`; goes before that of the enrolment."""


class Wiring(Model):
    """The wiring file, validated."""

    devices: dict[str, WiredDevice] = Field(default_factory=dict)
    """The devices by serial number."""

    def device(self, serial: str) -> WiredDevice:
        """Return what the file says of a device; nothing where it does not name it."""
        return self.devices.get(serial, WiredDevice())
