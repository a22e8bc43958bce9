"""Collect the samples of a meter with its own clock in a thread, average them, map them to the host's clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .base import MeterLost, ReadingLost, Readings
from .meter_clock import Arrival, MeterClock, bin_means, fit_arrivals
from .polled import JOIN_S, lost

BIN_S = 0.01
"""The bins of a fast meter that a record keeps: means over 10 ms."""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """One transfer of a meter."""

    own_s: Numbers
    """Times on the meter's own clock, rising."""
    power_w: Numbers
    host_ns: int
    """The time when the newest of them had arrived."""
    on_host: bool = False
    """True if `own_s` is this host's CLOCK_MONOTONIC already."""


class Stream(Protocol):
    """The interface to a meter's library."""

    def open(self) -> None:
        """Find, open, configure, begin."""
        ...

    def read(self) -> Batch | None:
        """The next transfer; None where nothing has come within some tens of ms."""
        ...

    def close(self) -> None:
        """End and free; also after a failed `open`."""
        ...


class StreamedMeter:
    """Implements `HostMeter` over a `Stream`. `means`: whether a sample is the mean since the one before."""

    def __init__(
        self, stream: Stream, name: str, gain_uncertainty: float, *, bin_s: float = BIN_S, means: bool = False
    ) -> None:
        self._stream, self._name, self._gain = stream, name, gain_uncertainty
        self._bin_s, self._means = bin_s, means
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._batches: list[Batch] = []

    def start(self) -> None:
        self._end.clear()
        self._batches, self._error = [], None
        try:
            self._stream.open()
        except Exception as e:
            self._quietly(self._stream.close)
            raise lost(e) from e
        self._thread = threading.Thread(target=self._run, name=f"meter {self._name}", daemon=True)
        self._thread.start()

    def stop(self) -> tuple[Readings, ...]:
        if self._thread is None:
            return ()
        self._end.set()
        self._thread.join(JOIN_S)
        hung, self._thread = self._thread.is_alive(), None
        self._quietly(self._stream.close)
        if hung:
            raise MeterLost(f"{self._name} hangs in a reading", remedy="replug the meter")
        if self._error is not None:
            raise lost(self._error) from self._error
        return (self._readings(),) if self._batches else ()

    @property
    def is_reading(self) -> bool:
        """True if it was started, and goes on."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                batch = self._stream.read()
                if batch is not None and len(batch.own_s):
                    self._batches.append(self._checked(batch))
        except Exception as e:
            self._error = e

    def _checked(self, batch: Batch) -> Batch:
        """Raises ReadingLost where a sample is no number."""
        odd = np.flatnonzero(~(np.isfinite(batch.own_s) & np.isfinite(batch.power_w)))
        if len(odd):
            at = sum(len(each.own_s) for each in self._batches) + int(odd[0])
            what = f"its sample {at} is {batch.power_w[odd[0]]} W at {batch.own_s[odd[0]]} s"
            raise ReadingLost(f"{self._name}: {what}", remedy="look at the meter's range, its cable and its driver")
        return batch

    def _readings(self) -> Readings:
        clock = self._clock()
        own_s = np.concatenate([batch.own_s for batch in self._batches])
        power_w = np.concatenate([batch.power_w for batch in self._batches])
        ends_s, means_w = bin_means(own_s, power_w, self._bin_s)
        t_ns = [int(t) for t in clock.to_host(ends_s)]
        is_mean = self._means or len(own_s) > 1.5 * len(ends_s)
        return Readings(self._name, t_ns, means_w.tolist(), is_mean, self._gain, clock.residual_ns)

    def _clock(self) -> MeterClock:
        if all(batch.on_host for batch in self._batches):
            return MeterClock(0.0, 0.0, 0)
        return fit_arrivals([Arrival(float(batch.own_s[-1]), batch.host_ns) for batch in self._batches])

    def _quietly(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as e:  # what was measured counts; a broken meter is found at its next start
            self._error = self._error or e
