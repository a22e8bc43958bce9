"""A power monitor of the kernel (INA226 and its kin): IIO over libiio, or this host's own sysfs (iio or hwmon)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.errors import Unsupported

from .base import SYS, import_extra, text_of
from .polled import Poller

GAIN_UNCERTAINTY = 0.01
"""A shunt of 1 %; the converter itself is better."""


class IioOptions(Model):
    """`meter: {iio: {...}}` of the wiring file."""

    device: str = "ina226"
    """Name of the device, as its `name` says."""
    uri: str = ""
    """`ip:192.168.1.20`, `usb:`: over libiio; empty: this host's own sysfs."""
    channel: str = ""
    """libiio's name of the power channel; empty: the first that begins with `power`."""
    period_ms: float = Field(default=10.0, ge=1)
    gain_uncertainty: float = Field(default=GAIN_UNCERTAINTY, gt=0)


def iio(options: Mapping[str, Any], sys: Path = SYS) -> Poller:
    """Raises Unsupported where there is no such device, ValidationError for wrong options."""
    chosen = IioOptions.model_validate(options)
    read_w = _over_libiio(chosen) if chosen.uri else _over_sysfs(chosen, sys)
    name = f"iio {chosen.uri} {chosen.device}".replace("  ", " ")
    return Poller(read_w, chosen.period_ms / 1000, name, chosen.gain_uncertainty)


def _over_libiio(options: IioOptions) -> Callable[[], float]:
    library = import_extra("iio", "iio", "a meter over libiio")
    try:
        context = library.Context(options.uri)
        device = context.find_device(options.device)
    except OSError as e:
        raise Unsupported(f"{options.uri} cannot be reached: {e}", remedy="is iiod running there?") from e
    if device is None:
        there = ", ".join(str(each.name) for each in context.devices) or "none"
        raise Unsupported(f"no IIO device {options.device!r} at {options.uri}; there are: {there}")
    channel = _channel(device, options)
    raw, scale = channel.attrs["raw"], float(channel.attrs["scale"].value)
    return lambda: float(raw.value) * scale / 1000.0  # IIO's unit of power is the milliwatt


def _channel(device: Any, options: IioOptions) -> Any:
    wanted = options.channel or "power"
    for channel in device.channels:
        if str(channel.id).startswith(wanted) and not channel.output:
            return channel
    has = ", ".join(str(channel.id) for channel in device.channels)
    raise Unsupported(f"{options.device} has no channel {wanted!r}; it has: {has}", remedy="name it by `channel`")


def _over_sysfs(options: IioOptions, sys: Path) -> Callable[[], float]:
    for folder in sorted([*sys.glob("bus/iio/devices/iio:device*"), *sys.glob("class/hwmon/hwmon*")]):
        if text_of(folder / "name") != options.device:
            continue
        if node := next(iter(sorted(folder.glob("power*_input"))), None):  # hwmon: microwatts
            return _reader(node, 1e-6)
        if node := next(iter(sorted(folder.glob("in_power*_raw"))), None):  # iio: raw * scale, milliwatts
            scale = float(text_of(node.with_name(node.name.replace("_raw", "_scale"))) or 1.0)
            return _reader(node, scale * 1e-3)
    raise Unsupported(
        f"this host has no IIO or hwmon device {options.device!r} with a power node",
        remedy="load its driver (`modprobe ina2xx`), or name another `device` or a `uri`",
    )


def _reader(node: Path, scale: float) -> Callable[[], float]:
    try:
        float(node.read_text())
    except (OSError, ValueError) as e:
        raise Unsupported(f"{node} cannot be read: {e}", remedy=f"sudo chmod a+r {node}") from e
    return lambda: float(node.read_text()) * scale
