"""Energy of requests from a gauge that has news less often than a phone serves."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.energy.trace import Trace
from orchestrator.queueing.live.energy import energy_between, why_coarse

pytestmark = pytest.mark.unit

IDLE_W, BUSY_W, EVERY_S, UNTIL_S = 0.4, 2.0, 0.25, 30.0


def served(length_s: float) -> list[tuple[int, int]]:
    """A request every quarter of a second."""
    return [(round(at * 1e9), round((at + length_s) * 1e9)) for at in np.arange(1.0, UNTIL_S - 1, EVERY_S)]


def gauge(windows: list[tuple[int, int]], refresh_s: float, chance: np.random.Generator) -> Trace:
    """Means of the power since the news before, read every 0.05 s; with noise, so that no two are equal."""
    fine_s = np.arange(0.0, UNTIL_S, 0.001)
    power_w = np.full(len(fine_s), IDLE_W)
    for begin, end in windows:
        power_w[(fine_s >= begin * 1e-9) & (fine_s < end * 1e-9)] = BUSY_W
    means = power_w.reshape(-1, round(refresh_s * 1000)).mean(axis=1) + chance.normal(
        0, 1e-3, round(UNTIL_S / refresh_s)
    )
    t_s = np.arange(refresh_s, UNTIL_S, 0.05)
    return Trace(t_s=t_s, power_w=means[(t_s / refresh_s + 1e-9).astype(int) - 1])


@pytest.mark.parametrize(
    ("length_s", "refresh_s", "doubted"), [(0.025, 0.25, True), (0.15, 0.05, False), (0.245, 0.5, False)]
)
def test_a_gauge_that_mixes_service_with_rest_is_doubted(
    length_s: float, refresh_s: float, doubted: bool, seed: int
) -> None:
    """A request has its energy within a fifth where the gauge is not doubted; where it is, less than half of it."""
    windows = served(length_s)
    trace = gauge(windows, refresh_s, np.random.default_rng(seed))
    assert bool(why_coarse(windows, trace)) is doubted
    edges_s = np.array(windows) * 1e-9
    told_j = energy_between(trace, edges_s[:, 0], edges_s[:, 1]).mean()
    assert (told_j < 0.5 * BUSY_W * length_s) if doubted else told_j == pytest.approx(BUSY_W * length_s, rel=0.2)
