"""The clocks that the phone allows now: heat, faults, fixed performance mode and root each lower them."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from itertools import accumulate

from virtual_phones.profile import CpuCluster, Profile

GOVERNORS = ("schedutil", "performance", "powersave")


@dataclass(frozen=True, slots=True)
class ClockRange:
    """Lowest and highest clock that a unit may take, and the one it takes under load; kHz for cores, Hz for the GPU."""

    low: int
    high: int
    busy: int


def policies(profile: Profile) -> list[tuple[int, CpuCluster]]:
    """Each cluster by its first core."""
    firsts = accumulate((cluster.cores for cluster in profile.cpu), initial=0)
    return list(zip(firsts, profile.cpu, strict=False))


class Clocks:
    """The limits of one phone. Shares are of the highest clock of each unit."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._policies = policies(profile)
        self._clusters = dict(self._policies)
        self.caps: dict[str, float] = {}
        """Fault -> share that it leaves, seen in the nodes."""
        self.hidden: dict[str, float] = {}
        """Limits of speed that the nodes do not show: fault -> share that it leaves."""
        self.fixed: float | None = None
        """Share at which fixed performance mode holds all clocks; None: off."""
        self.reset()

    def reset(self) -> None:
        """Reset as after booting: what root and the power service had set is gone, faults stay."""
        self.fixed = None
        self.governors = {first: GOVERNORS[0] for first, _ in self._policies}
        self._cpu = {first: (cluster.min_khz, cluster.max_khz) for first, cluster in self._policies}
        self._gpu = (self._profile.gpu.clocks_hz[0], self._profile.gpu.clocks_hz[-1])
        self._is_limited = False
        """True if root has changed anything."""

    def cpu(self, first: int, heat: float = 1.0) -> ClockRange:
        """Range of the cluster whose first core is `first`, where heat leaves a share of `heat`."""
        cluster = self._clusters[first]
        low, high = self._cpu[first]
        high = max(cluster.min_khz, min(high, round(cluster.max_khz * self._cap(heat))))
        if self.governors[first] == "powersave":
            high = min(low, high)
        if self.governors[first] == "performance" or self.fixed is not None:
            low = high
        return ClockRange(min(low, high), high, max(cluster.min_khz, round(high * self._hidden())))

    def gpu(self, heat: float = 1.0) -> ClockRange:
        """Range of the GPU; the highest clock is one that it has."""
        clocks = self._profile.gpu.clocks_hz
        most = min(self._gpu[1], clocks[-1] * self._cap(heat))
        high = max((clock for clock in clocks if clock <= most), default=clocks[0])
        low = high if self.fixed is not None else min(self._gpu[0], high)
        busy = max((clock for clock in clocks if clock <= high * self._hidden()), default=clocks[0])
        return ClockRange(low, high, busy)

    def share(self) -> float:
        """The share of the highest clock that all of this but heat leaves: the least over the clusters and the GPU,
        because it is not known which of them a program waits for."""
        if not (self._is_limited or self.caps or self.hidden) and self.fixed is None:  # asked at each tick
            return 1.0
        cpus = [self.cpu(first).high / cluster.max_khz for first, cluster in self._policies]
        gpu = 1.0 if self._gpu[1] >= self._profile.gpu.clocks_hz[-1] else self._gpu[1] / self._profile.gpu.clocks_hz[-1]
        return min(1.0, *cpus, gpu) * self._hidden()

    def limit_cpu(self, first: int, *, low: int | None = None, high: int | None = None) -> None:
        """Limit a cluster as root's scaling_min_freq or scaling_max_freq do, in kHz: clamped to what it can do."""
        cluster, self._is_limited = self._clusters[first], True
        self._cpu[first] = _limited(self._cpu[first], low, high, cluster.min_khz, cluster.max_khz)

    def limit_gpu(self, *, low: int | None = None, high: int | None = None) -> None:
        """Limit the GPU as root does by writing min_freq or max_freq, in Hz."""
        clocks, self._is_limited = self._profile.gpu.clocks_hz, True
        self._gpu = _limited(self._gpu, low, high, clocks[0], clocks[-1])

    def govern(self, first: int, name: str) -> None:
        """Set the governor, as root does by scaling_governor. Raises OSError(EINVAL) for one that there is not."""
        if name not in GOVERNORS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.governors[first], self._is_limited = name, True

    def _cap(self, heat: float) -> float:
        return min(heat, 1.0 if self.fixed is None else self.fixed, *self.caps.values())

    def _hidden(self) -> float:
        return min(1.0, *self.hidden.values()) if self.hidden else 1.0


def _limited(before: tuple[int, int], low: int | None, high: int | None, lowest: int, highest: int) -> tuple[int, int]:
    """The new range; as in the kernel, the lower limit gives way to the upper one."""
    new_high = before[1] if high is None else min(highest, max(lowest, high))
    new_low = before[0] if low is None else min(highest, max(lowest, low))
    return min(new_low, new_high), new_high
