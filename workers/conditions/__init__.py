"""The conditions of an experiment, one file each."""

from __future__ import annotations

from .airplane_mode import AirplaneMode
from .base import Gate, Setting
from .battery import BatteryCharge
from .screen import ScreenDimmed
from .storage import FreeStorage
from .temperature import BatteryTemperature
from .thermal_status import ThermalStatus

GATES: tuple[Gate, ...] = (BatteryCharge(), BatteryTemperature(), ThermalStatus(), FreeStorage())
SETTINGS: dict[str, Setting] = {"screen": ScreenDimmed(), "airplane_mode": AirplaneMode()}
"""By the name under which a host journals what it has changed; prepared in this order, restored in the reverse."""

__all__ = ["GATES", "SETTINGS", "Gate", "Setting"]
