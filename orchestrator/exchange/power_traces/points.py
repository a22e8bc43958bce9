"""Puts readings together as they are read: a long recording keeps its exact means and as many points as are needed.

Up to `MOST` readings are kept as they are. Of more, neighbours are put together, 2, 4, 8, ... to a point: means and
pauses stay those of all readings, and the uncertainty of a mean, which rests on the spread of the points and on how
alike neighbours are, loses nothing by it, as the mean of a batch stands for its readings (P. D. Welch's batch means).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from orchestrator.energy.gauge_readings import LeftOut, named
from orchestrator.model import telemetry
from orchestrator.model.base import like

Series = npt.NDArray[np.float64]

MOST = 1 << 21
BLOCK = 1 << 18
GAP_PERIODS = 3.0
PHONE_W, GPU_W = 50.0, 2000.0
"""Most that a phone or small board can draw at a moment, and a GPU."""
MOST_PHONE_W, MOST_CHARGE_W = telemetry.PHONE_W[1], telemetry.MOST_CHARGE_W


@dataclass(frozen=True)
class Facts:
    """The facts of all readings, whatever became of them as points."""

    readings: int
    duration_s: float
    plain_w: float
    """The mean of the readings, each counting the same."""
    time_w: float
    """The integral by trapezoids over the duration; readings of one time count as their mean."""
    period_s: float | None
    """The median step of time; None where there are too few."""
    pauses: int = 0
    """Steps above three periods; the longest, and when it began."""
    longest_s: float = 0.0
    longest_at_s: float = 0.0
    tied: int = 0
    """Readings that have the time of the one before."""
    negative: int = 0
    runs: int = 0
    """Stretches of equal readings; of the longest the number of readings, and when it began."""
    equal: int = 0
    equal_at_s: float = 0.0

    def slower(self, factor: float) -> Facts:
        """The same with times that are `factor` times as long."""
        scaled = {
            name: getattr(self, name) * factor for name in ("duration_s", "longest_s", "longest_at_s", "equal_at_s")
        }
        return replace(self, **scaled, period_s=self.period_s and self.period_s * factor)


class Points:
    """Takes readings in the order of their times. What cannot be is left out and counted: no number, the end of an
    integer, or more than the instrument's kind of device can draw (`most_w`), while most of its readings are less."""

    def __init__(self, most_w: float = PHONE_W) -> None:
        self._most_w, self._usual_w = most_w, float("nan")
        self._odd: list[tuple[str, float | str]] = []
        self._row_t, self._row_p = array("d"), array("d")
        self._t, self._p = np.empty(MOST), np.empty(MOST)
        self._used, self._stride = 0, 1
        self._rest: tuple[Series, Series] = (np.empty(0), np.empty(0))
        self._sums = _Sums()
        self._first_s = 0.0
        self.last_s = float("-inf")
        """Time of the newest; no later reading may have an earlier one."""

    def __len__(self) -> int:
        return self._sums.readings + len(self._row_t)

    @property
    def left_out(self) -> LeftOut:
        """Return what was no reading; known once all were taken."""
        self._flush()
        return LeftOut(len(self._odd), len(self._odd) + self._sums.readings, named(self._odd))

    def skip(self, line: int, text: str) -> None:
        """A row of a file that holds no reading."""
        self._odd.append((f"line {line},", repr(text)))

    def add(self, t_s: float, power_w: float) -> None:
        """One reading."""
        self._row_t.append(t_s)
        self._row_p.append(power_w)
        self.last_s = t_s
        if len(self._row_t) >= BLOCK:
            self._flush()

    def extend(self, t_s: Series, power_w: Series) -> None:
        """Many readings; none may be earlier than the one before."""
        if len(power_w):
            self.last_s = float(t_s[-1])
            t_s, power_w = self._sifted(t_s, power_w)
        if not len(t_s):
            return
        if not self._sums.readings:
            self._first_s = float(t_s[0])
        t_s = t_s - self._first_s
        self._sums.take(t_s, power_w)
        self._keep(np.concatenate((self._rest[0], t_s)), np.concatenate((self._rest[1], power_w)))

    def _sifted(self, t_s: Series, power_w: Series) -> tuple[Series, Series]:
        """Return the readings without what cannot be."""
        finite = np.abs(power_w[np.isfinite(power_w)])
        if not np.isfinite(self._usual_w) and len(finite):
            self._usual_w = float(np.median(finite[:BLOCK]))
        small = self._most_w == PHONE_W and self._usual_w < PHONE_W / 5
        most_w = MOST_PHONE_W if small else self._most_w
        fits = np.isfinite(power_w)
        if not self._usual_w > self._most_w:  # else it is the unit that is wrong, which the mean shows
            fits &= (power_w <= most_w) & (power_w >= -max(most_w, MOST_CHARGE_W))
        if fits.all():
            return t_s, power_w
        self._odd += [("power of W", round(value, 1)) for value in power_w[~fits].tolist()]
        return t_s[fits], power_w[fits]

    def finish(self) -> tuple[Series, Series, Facts]:
        """Times since the first reading, powers, and the facts of all readings."""
        self._flush()
        return self._t[: self._used].copy(), self._p[: self._used].copy(), self._sums.facts()

    def _flush(self) -> None:
        if not len(self._row_t):
            return
        rows = np.frombuffer(self._row_t), np.frombuffer(self._row_p)
        self._row_t, self._row_p = array("d"), array("d")
        self.extend(*rows)

    def _keep(self, t_s: Series, power_w: Series) -> None:
        """Keep the readings as points of `stride` readings; what makes no whole point waits for the next readings."""
        start = 0
        while len(t_s) - start >= self._stride:
            room = MOST - self._used
            if not room:
                half = MOST // 2
                self._t[:half], self._p[:half] = _joined(self._t, 2), _joined(self._p, 2)
                self._used, self._stride = half, self._stride * 2
                continue
            count = min(room, (len(t_s) - start) // self._stride)
            end, to = start + count * self._stride, slice(self._used, self._used + count)
            self._t[to], self._p[to] = (_joined(each[start:end], self._stride) for each in (t_s, power_w))
            self._used, start = self._used + count, end
        self._rest = t_s[start:], power_w[start:]


def _joined(values: Series, count: int) -> Series:
    return values if count == 1 else np.asarray(values.reshape(-1, count).mean(axis=1))


class _Sums:
    """Adds up block by block, in s since the first reading. The newest time waits: more readings may share it."""

    def __init__(self) -> None:
        self.readings = self.tied = self.negative = self.pauses = 0
        self.sum_w = self.energy_j = 0.0
        self.period_s: float | None = None
        self.longest_s = self.longest_at_s = 0.0
        self.runs = self.run = self.equal = 0
        self.value, self.run_at_s, self.equal_at_s = float("nan"), 0.0, 0.0
        """The stretch of equal readings that goes on."""
        self.before: tuple[float, float] | None = None
        """The point before the waiting one."""
        self.waiting: tuple[float, float, int] | None = None
        """Time, mean and number of readings."""

    def take(self, t_s: Series, power_w: Series) -> None:
        self.readings += len(t_s)
        self.sum_w += float(power_w.sum())
        self.negative += int((power_w < 0).sum())
        self._runs(t_s, power_w)
        counts = np.ones(len(t_s))
        if self.waiting is not None:
            at, mean, number = self.waiting
            t_s, power_w = np.concatenate(([at], t_s)), np.concatenate(([mean], power_w))
            counts = np.concatenate(([float(number)], counts))
        starts = np.flatnonzero(np.concatenate(([True], np.diff(t_s) > 0)))
        self.tied += len(t_s) - len(starts)
        times, weights = t_s[starts], np.add.reduceat(counts, starts)
        means = power_w if len(starts) == len(t_s) else np.add.reduceat(power_w * counts, starts) / weights
        self._steps(times)
        self._integrate(times[:-1], means[:-1])
        self.waiting = float(times[-1]), float(means[-1]), int(weights[-1])

    def _runs(self, t_s: Series, power_w: Series) -> None:
        begins = np.flatnonzero(np.diff(power_w, prepend=self.value))
        lengths = np.diff(begins, prepend=-self.run, append=len(power_w))
        starts = np.concatenate(([self.run_at_s], t_s[begins]))
        longest = int(lengths.argmax())
        if lengths[longest] > self.equal:
            self.equal, self.equal_at_s = int(lengths[longest]), float(starts[longest])
        self.runs += len(begins)
        self.run, self.run_at_s, self.value = int(lengths[-1]), float(starts[-1]), float(power_w[-1])

    def _integrate(self, times: Series, means: Series) -> None:
        if self.before is not None:
            times = np.concatenate(([self.before[0]], times))
            means = np.concatenate(([self.before[1]], means))
        if len(times):
            self.energy_j += float(np.trapezoid(means, times))
            self.before = float(times[-1]), float(means[-1])

    def _steps(self, times: Series) -> None:
        steps = np.diff(times)
        if self.period_s is None and len(steps) >= 3:
            self.period_s = float(np.median(steps))
        if self.period_s is None or not len(steps):
            return
        self.pauses += int((steps > GAP_PERIODS * self.period_s).sum())
        at = int(steps.argmax())
        if steps[at] > self.longest_s:
            self.longest_s, self.longest_at_s = float(steps[at]), float(times[at])

    def facts(self) -> Facts:
        plain_w = self.sum_w / self.readings if self.readings else 0.0
        duration_s, energy_j = 0.0, self.energy_j
        if self.waiting is not None and self.before is not None:
            (t0, p0), (duration_s, p1, _) = self.before, self.waiting
            energy_j += (duration_s - t0) * (p0 + p1) / 2
        return like(
            Facts,
            self,
            duration_s=duration_s,
            plain_w=plain_w,
            time_w=energy_j / duration_s if duration_s > 0 else plain_w,
        )


def facts_of(t_s: Series, power_w: Series) -> Facts:
    """The facts of readings that are all at hand."""
    sums = _Sums()
    if len(t_s):
        sums.take(t_s - t_s[0], power_w)
    return sums.facts()
