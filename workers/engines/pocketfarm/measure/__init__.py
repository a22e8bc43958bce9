"""One run of one plan on one device, inside a session: push, start, follow, collect."""

from .block import Block, Setup
from .measurement import Measurement, measure
from .request import device_option

__all__ = [
    "Block", "Measurement", "Setup", "device_option", "measure",
]  # fmt: skip
