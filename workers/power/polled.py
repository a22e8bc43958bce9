"""Take a reading periodically in a thread of this host, at absolute times."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from orchestrator.model.errors import FarmError

from .base import MeterLost, ReadingLost, Readings, power_of_energy

JOIN_S = 10.0
PATIENCE = 3


class Poller:
    """A meter that tells power in W or, with `counts`, energy in J that only rises: implements `HostMeter`.

    Calls `read` every `period_s` and keeps what it returns with the middle of the call as its time. A reading that
    fails three times in a row ends the thread; `stop` then raises MeterLost.
    """

    def __init__(
        self, read: Callable[[], float], period_s: float, name: str, gain_uncertainty: float, *, counts: bool = False
    ) -> None:
        self._read, self._period_s = read, period_s
        self._name, self._gain, self._counts = name, gain_uncertainty, counts
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

    def stop(self) -> tuple[Readings, ...]:
        """Ends the thread after a last reading. Raises MeterLost where readings failed."""
        if self._thread is None:
            return ()
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
        t_ns, values = self.t_ns, self.values
        if self._counts:
            t_ns, values = _changes(t_ns, values)
            values = power_of_energy(values, t_ns) if len(t_ns) > 1 else []
        return (Readings(self._name, t_ns, values, self._counts, self._gain),) if values else ()

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
                if failures >= PATIENCE:
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
