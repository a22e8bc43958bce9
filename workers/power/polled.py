"""Take a reading periodically in a thread of this host, at absolute times."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from orchestrator.model.errors import FarmError

from .base import MeterLost, ReadingLost, Readings, power_of_energy

JOIN_S = 10.0


class Poller:
    """Calls `read` every `period_s` and keeps what it returns with the middle of the call as its time.

    A reading that fails `patience` times in a row ends the thread; `stop` then raises MeterLost.
    """

    def __init__(self, read: Callable[[], float], period_s: float, *, patience: int = 3) -> None:
        self._read, self._period_s, self._patience = read, period_s, patience
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self.t_ns: list[int] = []
        self.values: list[float] = []

    def start(self) -> None:
        """The first reading is taken before this returns. Raises MeterLost."""
        self.t_ns, self.values, self._error = [], [], None
        self._end.clear()
        try:
            self._take()
        except Exception as e:
            raise lost(e) from e
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after a last reading. Raises MeterLost where readings failed."""
        if self._thread is None:
            return
        self._end.set()
        self._thread.join(JOIN_S)
        hung, self._thread = self._thread.is_alive(), None
        if hung:
            raise MeterLost("the meter hangs in a reading", remedy="replug the meter")
        if self._error is None:
            try:
                self._take()
            except Exception as e:
                self._error = e
        if self._error is not None:
            raise lost(self._error) from self._error

    def _run(self) -> None:
        due, failures = time.monotonic(), 0
        while True:
            due = max(due + self._period_s, time.monotonic())
            if self._end.wait(max(0.0, due - time.monotonic())):
                return
            try:
                self._take()
                failures = 0
            except Exception as e:
                failures += 1
                if failures >= self._patience:
                    self._error = e
                    return

    def _take(self) -> None:
        before_ns = time.monotonic_ns()
        value = self._read()
        if not math.isfinite(value):
            raise ReadingLost(f"the meter said {value}", remedy="look at the meter's range, its cable and its driver")
        t_ns = (before_ns + time.monotonic_ns()) // 2
        if not self.t_ns or t_ns > self.t_ns[-1]:
            self.t_ns.append(t_ns)
            self.values.append(value)


class PowerPoller:
    """A meter that tells power: implements `HostMeter`."""

    def __init__(self, read_w: Callable[[], float], period_s: float, name: str, gain_uncertainty: float) -> None:
        self._poller = Poller(read_w, period_s)
        self._name, self._gain = name, gain_uncertainty

    def start(self) -> None:
        self._poller.start()

    def stop(self) -> tuple[Readings, ...]:
        self._poller.stop()
        t_ns, power_w = self._poller.t_ns, self._poller.values
        return (Readings(self._name, t_ns, power_w, gain_uncertainty=self._gain),) if t_ns else ()


class EnergyPoller:
    """A counter of energy, in J and only rising: implements `HostMeter`."""

    def __init__(self, read_j: Callable[[], float], period_s: float, name: str, gain_uncertainty: float) -> None:
        self._poller = Poller(read_j, period_s)
        self._name, self._gain = name, gain_uncertainty

    def start(self) -> None:
        self._poller.start()

    def stop(self) -> tuple[Readings, ...]:
        self._poller.stop()
        t_ns, energy_j = _changes(self._poller.t_ns, self._poller.values)
        if len(t_ns) < 2:
            return ()
        return (Readings(self._name, t_ns, power_of_energy(energy_j, t_ns), True, self._gain),)


def _changes(t_ns: list[int], energy_j: list[float]) -> tuple[list[int], list[float]]:
    """The readings at which the counter had moved, with the first and the last: a counter is slower than its reader."""
    indices = [
        i for i in range(len(t_ns)) if i in (0, len(t_ns) - 1) or energy_j[i] != energy_j[i - 1]
    ]  # fmt: skip
    return [t_ns[i] for i in indices], [energy_j[i] for i in indices]


def lost(error: Exception) -> FarmError:
    """Whatever a meter's library raised, as ours."""
    if isinstance(error, FarmError):
        return error
    return MeterLost(
        f"the meter failed: {type(error).__name__}: {error}", remedy="check its cable, its power and its permissions"
    )
