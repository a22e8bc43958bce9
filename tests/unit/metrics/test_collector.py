"""The collector: one part's failure is that part's, and a scrape costs one reading."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from orchestrator.metrics import collector
from orchestrator.metrics.collector import FarmCollector
from orchestrator.model.errors import ServiceDown


class Counting:
    """A part that counts its readings, and may be away."""

    def __init__(self) -> None:
        self.readings = 0
        self.away = False

    def __call__(self) -> list[Metric]:
        self.readings += 1
        if self.away:
            raise ServiceDown("away")
        return [GaugeMetricFamily("farm_readings", "So many.", value=self.readings)]


@pytest.fixture
def part() -> Counting:
    return Counting()


@pytest.fixture
def registry(part: Counting) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(FarmCollector({"redis": part, "ledger": lambda: []}, "1.2.3"))
    return registry


def test_registering_asks_nobody(part: Counting, registry: CollectorRegistry) -> None:
    assert part.readings == 0


def test_answers_are_shared_for_a_moment(
    part: Counting, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [registry.get_sample_value("farm_readings") for _ in range(3)] == [1, 1, 1]
    monkeypatch.setattr(collector, "CACHE_S", 0.0)
    assert registry.get_sample_value("farm_readings") == 2


def test_a_part_that_is_away_has_no_series(
    part: Counting, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "CACHE_S", 0.0)
    assert registry.get_sample_value("farm_up", {"part": "redis"}) == 1
    part.away = True
    assert registry.get_sample_value("farm_readings") is None
    assert registry.get_sample_value("farm_up", {"part": "redis"}) == 0
    assert registry.get_sample_value("farm_up", {"part": "ledger"}) == 1
    assert registry.get_sample_value("farm_scrape_errors_total", {"part": "redis"}) == 4
    part.away = False
    assert registry.get_sample_value("farm_up", {"part": "redis"}) == 1
    assert registry.get_sample_value("farm_build_info", {"version": "1.2.3"}) == 1
