"""The exporter's text: that of the client library byte by byte, whatever is kept of scrapes before."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from orchestrator.metrics.devices import DeviceFamilies
from orchestrator.metrics.exposition import SPARE, Exposition
from orchestrator.model.device import Device, Health
from tests.integration.metrics.content import PHONES, device

NAMES = ("plain", 'quo"ted', "back\\slash", "two\nlines", "a b", "", "é}{,=")
VALUES = (0.0, -1.5, 1e-9, 1234567.0, 1e21, 1763900000.123, math.inf, -math.inf, math.nan)


class _Given(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def by_library(families: Sequence[Metric]) -> bytes:
    return generate_latest(_Given(families))


def gauge(name: str, rng: random.Random, series: int) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, "One\\two\nlines.", labels=("serial", "a"))
    for n in rng.sample(range(40), series):
        family.add_metric([f"{n}", NAMES[n % len(NAMES)]], rng.choice(VALUES))
    return family


def test_scrapes_are_as_the_library_writes_them(seed: int) -> None:
    """Series come, go and come again; families of other kinds and one that is the same object stand between them."""
    rng = random.Random(seed)
    exposition, same = Exposition(), gauge("farm_same", rng, 12)
    for turn in range(30):
        stamped = GaugeMetricFamily("farm_stamped", "With a time.", labels=("serial",))
        stamped.add_metric(["a"], turn, timestamp=1763900000 + turn)
        families = [
            gauge("farm_gauge", rng, rng.randrange(30)),
            same,
            CounterMetricFamily("farm_done", "Done.", value=turn),
            InfoMetricFamily("farm_build", "This farm.", value={"version": "1"}),
            GaugeMetricFamily("farm_single", "Without a label.", value=turn),
            stamped,
        ]
        assert exposition.text(families) == by_library(families)


def test_series_that_are_gone_are_forgotten() -> None:
    exposition = Exposition()
    for turn in range(50):
        family = GaugeMetricFamily("farm_gauge", "One.", labels=("serial",))
        for n in range(10):
            family.add_metric([f"{turn}-{n}"], n)
        assert exposition.text([family]) == by_library([family])
        assert len(exposition._series["farm_gauge"]) <= (SPARE + 1) * 10


def test_what_a_device_is_is_told_anew_when_it_changes() -> None:
    """The same objects otherwise, although state and clock moved on."""
    devices, families = [device(serial, 0) for serial in PHONES], DeviceFamilies()

    def told(listed: list[Device]) -> list[Metric]:
        return [each for each in families.of(listed) if each.name in ("farm_device_info", "farm_device_health")]

    def moved(of: Device, **state: object) -> Device:
        return of.model_copy(update={"state": of.state.model_copy(update=state)})

    first = told(devices)
    again = told([Device.model_validate_json(moved(each, seen_at=1.0).model_dump_json()) for each in devices])
    assert all(a is b for a, b in zip(first, again, strict=True))
    devices[1] = moved(devices[1], health=Health.OFFLINE)
    registry = CollectorRegistry()
    registry.register(_Given(told(devices)))
    serial = devices[1].serial
    assert registry.get_sample_value("farm_device_health", {"serial": serial, "health": "offline"}) == 1
    assert len(told(devices[:-1])[0].samples) == len(devices) - 1
