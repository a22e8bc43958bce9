"""The slope that the benchmark of growth tells, and its error."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.farm.footprint import Part, Sample, growth


def samples(pss_mb: Callable[[int], float], count: int = 20) -> list[Sample]:
    def sample(number: int) -> Sample:
        parts = {"worker": Part(pss_mb(number), 12, 35)}
        return Sample(36.0 * number, 10 * number, parts, redis_keys=3 * number, lasting_keys=7, files=9)

    return [sample(number) for number in range(count)]


def test_growth_is_that_of_the_second_half_by_hours_and_by_jobs() -> None:
    found = growth(samples(lambda number: 500.0 if number < 10 else 100.0 + number))
    assert found["worker pss_mb"] == ((100.0, 0.0), (100.0, 0.0))
    assert found["redis_keys"] == ((300.0, 0.0), (300.0, 0.0))
    assert found["worker threads"] == found["files"] == found["lasting_keys"] == ((0.0, 0.0), (0.0, 0.0))


def test_the_error_of_a_slope_holds_where_samples_resemble_those_before() -> None:
    """Hardly any of 200 series without growth has a slope of more than two of its standard errors."""
    dice, found = random.Random(8), []
    for _ in range(200):
        values = [0.0]
        for _ in range(200):
            values.append(0.8 * values[-1] + dice.gauss(0, 1))
        found.append(growth(samples(values.__getitem__, 200))["worker pss_mb"].an_hour)
    assert sum(abs(slope.size) < 2 * slope.error for slope in found) > 180, "by least squares alone it is 105"
    assert sum(slope.error for slope in found) / 200 < 1.5 * (sum(slope.size**2 for slope in found) / 200) ** 0.5
