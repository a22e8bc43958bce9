"""One run of one plan on one device, inside a session: push, start, follow, collect."""

from .block import Block, Setup
from .failure import DeviceSlept, raise_for, raise_if_slept
from .measurement import Measurement, measure
from .request import device_option

__all__ = [
    "Block", "DeviceSlept", "Measurement", "Setup", "device_option", "measure", "raise_for", "raise_if_slept",
]  # fmt: skip
