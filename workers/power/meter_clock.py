"""Map a meter's own clock to the host's: samples arrive late by some transfer, never early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEAST_SPAN_S = 10.0
"""The span below which a drift cannot be told from the transfers' jitter."""
MAX_DRIFT = 1e-3


class Arrival(NamedTuple):
    """The newest sample of one transfer."""

    own_s: float
    """Its time on the meter's clock."""
    host_ns: int
    """The time when it had arrived, CLOCK_MONOTONIC."""


class MeterClock(NamedTuple):
    """host = own * (1 + drift) + offset."""

    offset_ns: float
    drift: float
    residual_ns: int

    def to_host(self, own_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        return np.asarray(np.rint(own_s * (1 + self.drift) * 1e9 + self.offset_ns), dtype=np.int64)


def fit_arrivals(arrivals: Sequence[Arrival]) -> MeterClock:
    """The line below all arrivals: through the quickest transfer of the first half and of the second.

    The residual is half of what a usual transfer takes more than the quickest one.
    """
    own_s = np.array([each.own_s for each in arrivals])
    delay_ns = np.array([each.host_ns for each in arrivals], dtype=np.float64) - own_s * 1e9
    drift = _drift(own_s, delay_ns)
    late_ns = delay_ns - drift * own_s * 1e9
    offset_ns = float(late_ns.min())
    return MeterClock(offset_ns, drift, round(float(np.median(late_ns) - offset_ns) / 2))


def _drift(own_s: npt.NDArray[np.float64], delay_ns: npt.NDArray[np.float64]) -> float:
    if own_s[-1] - own_s[0] < LEAST_SPAN_S:
        return 0.0
    half = own_s < (own_s[0] + own_s[-1]) / 2
    early = int(np.argmin(np.where(half, delay_ns, np.inf)))
    late = int(np.argmin(np.where(half, np.inf, delay_ns)))
    drift = float((delay_ns[late] - delay_ns[early]) / ((own_s[late] - own_s[early]) * 1e9))
    return drift if abs(drift) <= MAX_DRIFT else 0.0


def bin_means(
    own_s: npt.NDArray[np.float64], power_w: npt.NDArray[np.float64], bin_s: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Means over bins, each with the end of its last sample: fast meters tell more than a record should keep."""
    if len(own_s) == 0:
        return own_s, power_w
    number = np.floor((own_s - own_s[0]) / bin_s + 1e-9).astype(np.int64)
    first = np.flatnonzero(np.r_[True, np.diff(number) > 0])
    last = np.r_[first[1:] - 1, len(own_s) - 1]
    return own_s[last], np.add.reduceat(power_w, first) / (last - first + 1)
