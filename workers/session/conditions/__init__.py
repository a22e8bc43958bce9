"""The conditions of an experiment, one file each; docs/howto/conditions.md tells how each is met and proven."""

from __future__ import annotations

from .affinity import cores_for
from .airplane_mode import AirplaneMode
from .awake import Awake
from .background import BackgroundStopped
from .base import Gate, Held, Setting
from .battery import BatteryCharge
from .battery_saver import BatterySaverOff
from .bluetooth import BluetoothOff
from .discharging import Discharging
from .fixed_performance import FixedPerformance
from .locked_clocks import LockedClocks
from .screen import ScreenDimmed
from .settled import Settled
from .skin import SkinTemperature
from .storage import FreeStorage
from .sync import SyncOff
from .temperature import BatteryTemperature
from .thermal_status import ThermalStatus

GATES: tuple[Gate, ...] = (
    BatteryCharge(),
    BatteryTemperature(),
    SkinTemperature(),
    Settled(),
    ThermalStatus(),
    FreeStorage(),
    Discharging(),
)
SETTINGS: dict[str, Setting] = {
    "awake": Awake(),
    "screen": ScreenDimmed(),
    "sync": SyncOff(),
    "battery_saver": BatterySaverOff(),
    "bluetooth": BluetoothOff(),
    "airplane_mode": AirplaneMode(),
    "background": BackgroundStopped(),
    "fixed_performance": FixedPerformance(),
    "locked_clocks": LockedClocks(),
}
"""Settings by the name under which a host journals its changes; prepared in this order, restored in the reverse."""

__all__ = ["GATES", "SETTINGS", "Gate", "Held", "Setting", "cores_for"]
