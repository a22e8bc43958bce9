"""Limits that alerts keep and panels draw: `alerts.yml` has the same numbers, and a test compares them."""

from __future__ import annotations

BATTERY_RATIO = 0.15
"""DeviceFlat: below it, and not charged."""
BATTERY_CELSIUS = 43.0
"""DeviceHot: above it."""
THERMAL_STATUS = 2.0
"""DeviceHot: from it on."""
SPOOL_RECORDS = 100.0
"""RecordsPileUp: above it, of one host."""
STREAM_RECORDS = 1000.0
"""RecordsPileUp: above it."""
LOST_RATIO = 0.2
"""AttemptsLost: above it, of the last hour's attempts."""
RESULT_AGE_S = 26 * 3600.0
"""NightlyWithoutResults: above it."""
SCRAPE_ERRORS = 3.0
"""ScrapeErrors: above it, of ten minutes."""

Steps = tuple[tuple[str, float | None], ...]


def above(*limits: float) -> Steps:
    """Green, and from the limit on red; of two limits the first one is orange."""
    colours = ("red",) if len(limits) == 1 else ("orange", "red")
    return (("green", None), *zip(colours, limits, strict=True))


def below(limit: float) -> Steps:
    """Red below the limit."""
    return (("red", None), ("green", limit))
