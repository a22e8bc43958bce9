"""The slope that the benchmark of growth tells."""

from __future__ import annotations

from benchmarks.farm.footprint import Part, Sample, growth


def test_growth_is_that_of_the_second_half_by_hours_and_by_jobs() -> None:
    def sample(number: int) -> Sample:
        pss_mb = 500.0 if number < 10 else 100.0 + number
        parts = {"worker": Part(pss_mb, 12, 35)}
        return Sample(36.0 * number, 10 * number, parts, redis_keys=3 * number, lasting_keys=7, files=9)

    found = growth([sample(number) for number in range(20)])
    assert found["worker pss_mb"] == (100.0, 100.0)
    assert found["redis_keys"] == (300.0, 300.0)
    assert found["worker threads"] == found["files"] == found["lasting_keys"] == (0.0, 0.0)
