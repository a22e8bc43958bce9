"""Nights as metrics: of each suite the newest one that is over, and when the next one is due."""

from __future__ import annotations

import pytest

from orchestrator.ledger import Ledger
from orchestrator.metrics.nights import Nights
from tests.unit.comparison.conftest import farm, ledger
from tests.unit.history.made import DAY_S, FIRST, judged, kept, missing, nights

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit

Samples = dict[tuple[str, str], float]


def scraped(ledger: Ledger, parts: Nights) -> dict[str, Samples]:
    with ledger._database.read() as connection:
        parts.update(connection)
    return {
        family.name: {(each.labels["suite"], [*each.labels.values(), ""][1]): each.value for each in family.samples}
        for family in parts.families()
    }


def test_the_newest_night_that_is_over_counts(ledger: Ledger) -> None:
    parts = Nights()
    assert all(not samples for samples in scraped(ledger, parts).values())
    made = nights(4, lambda number, device, network, side: 1.1 if (number, device, side) == (3, "B", "b") else 1.0)
    kept(ledger, made[:3])
    assert scraped(ledger, parts)["farm_night_regressions_confirmed"] == {("nightly", ""): 0}
    kept(ledger, [made[3].model_copy(update={"missing": (missing("D"),), "outcome": "partial"})])
    found = scraped(ledger, parts)
    assert found["farm_night_regressions_confirmed"]["nightly", ""] == 3
    assert found["farm_night_rows"]["nightly", "worse"] == 3 and found["farm_night_rows"]["nightly", "same"] == 6
    assert found["farm_night_outcome"]["nightly", "partial"] == 1 == found["farm_night_devices_missing"]["nightly", ""]
    assert found["farm_night_outcome"]["nightly", "complete"] == 0
    assert found["farm_night_due_timestamp_seconds"]["nightly", ""] == FIRST + 3 * DAY_S
    under_way = judged(4, [], ("A",), outcome=None, ended_at=None)
    body = under_way.model_dump_json().encode()
    ledger.nights.begin(under_way.night_id, "nightly", under_way.due_at, body, over=False)
    assert scraped(ledger, parts)["farm_night_due_timestamp_seconds"]["nightly", ""] == FIRST + 3 * DAY_S


def test_when_the_next_night_is_due(ledger: Ledger) -> None:
    kept(ledger, [judged(30_000, [], ("A",))])  # in many years: so that it is later than the schedule
    ledger.nights.schedule("nightly", "nightly.yaml", "30 2 * * *", b"{}")
    due = scraped(ledger, Nights())["farm_night_next_timestamp_seconds"]["nightly", ""]
    assert 0 < due - (FIRST + 30_000 * DAY_S) <= DAY_S


def test_a_night_that_cannot_be_read_is_left_out(ledger: Ledger) -> None:
    ledger.nights.begin("old@1", "old", FIRST, b'{"schema_version": 9}', over=True)
    kept(ledger, [judged(1, [], ("A",))])
    assert set(scraped(ledger, Nights())["farm_night_due_timestamp_seconds"]) == {("nightly", "")}
