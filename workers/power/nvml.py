"""NVIDIA GPUs through NVML: the board's total energy counter, or its power where it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.model.errors import Unsupported

from .base import HostMeter, Readings, import_extra
from .polled import Poller, lost

PERIOD_S = 0.05
GAIN_UNCERTAINTY = 0.05
"""NVIDIA's manual: 5 % or 5 W."""


class NvmlMeter:
    """Implements `HostMeter` for the board whose name is `device_name` (a vendor's name of it), or the only one."""

    def __init__(self, device_name: str = "") -> None:
        self._nvml = import_extra("pynvml", "nvml", "power of an NVIDIA GPU")
        self._device_name = device_name
        self._meter: HostMeter | None = None
        self._opened = False
        try:
            self._open()  # a board that is not there is told before the block
        finally:
            self._close()

    def start(self) -> None:
        try:
            self._meter = self._open()
            self._meter.start()
        except Exception as e:
            self._meter = None
            self._close()
            raise lost(e) from e

    def stop(self) -> tuple[Readings, ...]:
        meter, self._meter = self._meter, None
        try:
            return meter.stop() if meter else ()
        finally:
            self._close()

    def _open(self) -> HostMeter:
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as e:
            raise Unsupported(f"NVML: {e}", remedy="install NVIDIA's driver; `nvidia-smi` must work") from e
        self._opened = True
        handle = self._find()
        name = _text(self._nvml.nvmlDeviceGetName(handle))
        read, counts = self._reader(handle)
        return Poller(read, PERIOD_S, name, GAIN_UNCERTAINTY, counts=counts)

    def _close(self) -> None:
        if self._opened:
            self._opened = False
            self._nvml.nvmlShutdown()

    def _find(self) -> Any:
        """The board by name; of several alike the first, as the agent takes the first."""
        boards = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(self._nvml.nvmlDeviceGetCount())]
        names = [_text(self._nvml.nvmlDeviceGetName(board)) for board in boards]
        for board, name in zip(boards, names, strict=True):
            if not self._device_name or _same(name, self._device_name):
                return board
        raise Unsupported(f"NVML has no board {self._device_name!r}; it has: {', '.join(names) or 'none'}")

    def _reader(self, handle: Any) -> tuple[Callable[[], float], bool]:
        """Return how to read it, and whether that counts energy."""
        try:
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
            return lambda: self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000.0, True
        except self._nvml.NVMLError:  # before Volta
            pass
        try:
            self._nvml.nvmlDeviceGetPowerUsage(handle)
        except self._nvml.NVMLError as e:
            raise Unsupported(f"the board tells no power: {e}", remedy="measure it with an external meter") from e
        return lambda: self._nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0, False


def _same(one: str, other: str) -> bool:
    """`NVIDIA GeForce RTX 3090` and `GeForce RTX 3090` are one board's names."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short in long


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
