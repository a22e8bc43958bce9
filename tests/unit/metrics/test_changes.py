"""Change points of nights as metrics: found outside of scrapes, once for each newest night."""

from __future__ import annotations

import pytest

from orchestrator.ledger import Ledger
from orchestrator.ledger.tables import NIGHTS
from orchestrator.metrics.changes import Changes, Found
from tests.unit.comparison.conftest import farm, ledger
from tests.unit.history.made import DAY_S, FIRST, kept, nights
from tests.waiting import eventually

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit


def told(changes: Changes) -> dict[tuple[str, str], float]:
    (family,) = changes.families()
    return {(each.labels["suite"], each.labels["direction"]): each.value for each in family.samples}


def followed(changes: Changes, ledger: Ledger, newest: int) -> None:
    changes.follow(ledger._database, {"nightly": newest})
    eventually(lambda: changes._search is not None and not changes._search.is_alive())


def test_the_newest_change_in_each_direction_is_told(ledger: Ledger) -> None:
    """Slower from night 5 on, quicker from night 10 on."""
    changes = Changes()
    found = nights(15, lambda night, *_: 1.3 if 5 <= night < 10 else 1.0)
    kept(ledger, found[:5])
    followed(changes, ledger, 5)
    assert told(changes) == {}
    kept(ledger, found[5:9])
    changes.follow(ledger._database, {"nightly": 5})
    assert told(changes) == {}
    followed(changes, ledger, 9)
    assert told(changes) == {("nightly", "worse"): FIRST + 5 * DAY_S}
    kept(ledger, found[9:])
    followed(changes, ledger, 15)
    assert told(changes) == {
        ("nightly", "worse"): FIRST + 5 * DAY_S,
        ("nightly", "better"): FIRST + 10 * DAY_S,
    }
    changes.follow(ledger._database, {})
    assert told(changes) == {}


def test_what_was_found_stays_where_the_next_search_fails(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Found:
        raise OSError("away")

    changes = Changes()
    kept(ledger, nights(10, lambda night, *_: 1.3 if night >= 5 else 1.0))
    followed(changes, ledger, 10)
    monkeypatch.setattr("orchestrator.metrics.changes._found", broken)
    followed(changes, ledger, 11)
    assert told(changes) == {("nightly", "worse"): FIRST + 5 * DAY_S}


def test_a_night_that_cannot_be_read_is_left_out(ledger: Ledger) -> None:
    changes = Changes()
    kept(ledger, nights(10, lambda night, *_: 1.3 if night >= 5 else 1.0))
    with ledger._database.write() as connection:
        connection.execute(NIGHTS.update().where(NIGHTS.c.id == "nightly@000").values(body=b"spoilt"))
    followed(changes, ledger, 10)
    assert told(changes) == {("nightly", "worse"): FIRST + 5 * DAY_S}
