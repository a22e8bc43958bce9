"""Vendors' libraries as far as the farm drives them, on the known signal: same names, same units, a clock of their own.

Each counts what is open, and fails where `broken` is set.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from workers.power.clock_mapping import ahead_s

from . import signal

MAIN_V = 4.0
PPK_V = 3.8


class Vendor:
    """State that a library's fakes share."""

    def __init__(self) -> None:
        self.open = 0
        self.broken = False

    def check(self) -> None:
        if self.broken:
            raise OSError("the device is gone")


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    return made


def monsoon(vendor: Vendor) -> dict[str, ModuleType]:
    """Monsoon 0.1.88: time stamps are the wall clock's seconds since the start; main current in mA."""

    class Protocol:
        DEVICE: object | None = None

    class Monitor:
        def setup_usb(self, serialno: int | None, protocol: Protocol) -> None:
            vendor.check()
            protocol.DEVICE, self.Protocol = object(), protocol
            vendor.open += 1

        def setVout(self, value: float) -> None:
            assert value == MAIN_V

        def closeDevice(self) -> None:
            vendor.open -= 1

    class Engine:
        def __init__(self, monitor: Monitor) -> None: ...

        def ConsoleOutput(self, on: bool) -> None:
            assert not on

        def periodicStartSampling(self) -> list[list[float]]:
            self._start = time.time()
            return []

        def periodicCollectSamples(self, samples: int) -> list[list[float]]:
            vendor.check()
            begin = time.time()
            time.sleep(samples / 5000)
            wall = [begin + i / 5000 for i in range(samples)]
            shift = -ahead_s(time.time_ns)
            main = [signal.power_w(t + shift) / MAIN_V * 1000 for t in wall]
            return [[t - self._start for t in wall], main, [], [], [MAIN_V] * samples, []]

        def periodicStopSampling(self) -> None: ...

    return {
        "Monsoon": module("Monsoon"),
        "Monsoon.HVPM": module("Monsoon.HVPM", Monsoon=Monitor),
        "Monsoon.sampleEngine": module("Monsoon.sampleEngine", SampleEngine=Engine),
        "Monsoon.pmapi": module("Monsoon.pmapi", USB_protocol=Protocol),
    }


def joulescope(vendor: Vendor) -> dict[str, ModuleType]:
    """pyjoulescope_driver 2: statistics by call-back, ranges in seconds of the instrument's clock."""
    shift_s, drift = 1234.5, 2e-5

    class Driver:
        def __init__(self) -> None:
            vendor.open += 1
            self._end = threading.Event()
            self._values: dict[str, Any] = {}

        def device_paths(self) -> list[str]:
            return [] if vendor.broken else ["u/js220/001234"]

        def open(self, path: str) -> None:
            vendor.check()

        def publish(self, topic: str, value: Any) -> None:
            self._values[topic.split("/s/", 1)[1]] = value

        def subscribe(self, topic: str, flags: str, call: Callable[[str, dict[str, Any]], None]) -> None:
            assert topic.endswith("/s/stats/value") and flags == "pub" and self._values["stats/ctrl"] == 1
            period_s = self._values["stats/scnt"] / 1_000_000
            threading.Thread(target=self._run, args=(topic, call, period_s), daemon=True).start()

        def _run(self, topic: str, call: Callable[[str, dict[str, Any]], None], period_s: float) -> None:
            start = time.monotonic()
            while not self._end.wait(max(0.0, start + period_s - time.monotonic())):
                if vendor.broken:
                    call(topic, {})  # garbage
                    return
                own = [(t + shift_s) * (1 + drift) for t in (start, start + period_s)]
                mean = (signal.energy_j(start + period_s) - signal.energy_j(start)) / period_s
                time.sleep(0.001)
                call(topic, {"time": {"range": {"value": own}}, "signals": {"power": {"avg": {"value": mean}}}})
                start += period_s

        def close(self, path: str) -> None:
            self._end.set()

        def finalize(self) -> None:
            self._end.set()
            vendor.open -= 1

    return {"pyjoulescope_driver": module("pyjoulescope_driver", Driver=Driver)}


def ppk2(vendor: Vendor) -> dict[str, ModuleType]:
    """ppk2-api 0.9: 100,000 samples a second, in uA; the clock is their count."""

    class Port:
        def close(self) -> None:
            vendor.open -= 1

    class Kit:
        def __init__(self, port: str, **options: Any) -> None:
            vendor.check()
            vendor.open += 1
            self.ser = Port()

        @staticmethod
        def list_devices() -> list[str]:
            return ["/dev/ttyACM7"]

        def get_modifiers(self) -> bool:
            return True

        def set_source_voltage(self, millivolts: int) -> None:
            assert millivolts == PPK_V * 1000

        def use_source_meter(self) -> None: ...
        def toggle_DUT_power(self, state: str) -> None:
            assert state == "ON"

        def start_measuring(self) -> None:
            self._start, self._count = time.monotonic(), 0

        def stop_measuring(self) -> None: ...

        def get_data(self) -> bytes:
            vendor.check()
            due = int((time.monotonic() - self._start) * 100_000)
            first, self._count = self._count, due
            return struct.pack("<qq", first, due)

        def get_samples(self, content: bytes) -> tuple[list[float], list[int]]:
            first, due = struct.unpack("<qq", content)
            times = (self._start + i / 100_000 for i in range(first, due))
            return [signal.power_w(t) / PPK_V * 1e6 for t in times], []

    return {"ppk2_api": module("ppk2_api"), "ppk2_api.ppk2_api": module("ppk2_api.ppk2_api", PPK2_API=Kit)}


def libiio(vendor: Vendor) -> dict[str, ModuleType]:
    """pylibiio: attributes are texts; a channel of power counts in milliwatts after its scale."""

    class Raw:
        @property
        def value(self) -> str:
            vendor.check()
            return str(round(signal.power_w(time.monotonic()) * 1000 / 0.25))

    def channel(name: str) -> SimpleNamespace:
        return SimpleNamespace(id=name, output=False, attrs={"raw": Raw(), "scale": SimpleNamespace(value="0.25")})

    device = SimpleNamespace(name="ina226", channels=[channel("voltage1"), channel("power2")])

    class Context:
        devices = (device,)

        def __init__(self, uri: str) -> None:
            assert uri == "ip:192.0.2.1"

        def find_device(self, name: str) -> SimpleNamespace | None:
            return device if name == device.name else None

    return {"iio": module("iio", Context=Context)}


def nvml_seen_s(host_s: float) -> float:
    """Return the moment at which NVML's counter has moved last."""
    return host_s // 0.02 * 0.02


def nvml(vendor: Vendor, *, counter: bool) -> dict[str, ModuleType]:
    """nvidia-ml-py: mJ of the counter, which moves every 20 ms; mW of the power."""

    class NVMLError(Exception): ...

    def init() -> None:
        vendor.open += 1

    def shutdown() -> None:
        vendor.open -= 1

    def energy(_handle: object) -> int:
        if not counter:
            raise NVMLError("Not Supported")
        if vendor.broken:
            raise NVMLError("GPU is lost")
        return round(signal.energy_j(nvml_seen_s(time.monotonic())) * 1000)

    def power(_handle: object) -> int:
        if vendor.broken:
            raise NVMLError("GPU is lost")
        return round(signal.power_w(time.monotonic()) * 1000)

    made = module(
        "pynvml", NVMLError=NVMLError, nvmlInit=init, nvmlShutdown=shutdown,
        nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetName=lambda i: ("NVIDIA T400", "NVIDIA H200")[i],
        nvmlDeviceGetTotalEnergyConsumption=energy, nvmlDeviceGetPowerUsage=power,
    )  # fmt: skip
    return {"pynvml": made}
