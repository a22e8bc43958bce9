"""Nights, schedules and queueing runs in the ledger: SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.ledger import Ledger, QueueRunBody
from orchestrator.model.errors import UnknownName


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url) as opened:
        yield opened


def test_of_two_who_bring_a_night_forward_one_does(ledger: Ledger) -> None:
    nights = ledger.nights
    assert nights.begin("a@1", "a", 1.0, b"{}")
    assert not nights.begin("a@1", "a", 1.0, b"other")
    read = nights.one("a@1")
    assert nights.save(read, b"first", over=False)
    assert not nights.save(read, b"second", over=True)
    kept = nights.one("a@1")
    assert (kept.body, kept.over, kept.version) == (b"first", False, 2)
    assert nights.save(kept, b"third", over=True) and nights.one("a@1").over


def test_nights_are_found_by_suite_and_by_whether_they_are_over(ledger: Ledger) -> None:
    nights = ledger.nights
    for name, suite, due, over in (("a@1", "a", 1.0, True), ("a@2", "a", 2.0, False), ("b@3", "b", 3.0, False)):
        nights.begin(name, suite, due, b"{}", over=over)
    assert [each.id for each in nights.of()] == ["b@3", "a@2", "a@1"]
    assert [each.id for each in nights.of("a", limit=1)] == ["a@2"]
    assert [each.id for each in nights.of(over=False)] == ["b@3", "a@2"]
    assert nights.due_times("a", 5) == [2.0, 1.0] and nights.due_times("a", 1) == [2.0]
    with pytest.raises(UnknownName, match="no night 'a@9'"):
        nights.one("a@9")


def test_a_schedule_is_replaced_and_ended(ledger: Ledger) -> None:
    nights = ledger.nights
    nights.schedule("a", "/x/a.yaml", "30 2 * * *", b"{}")
    first = nights.schedules()
    nights.schedule("a", "/y/a.yaml", "0 3 * * *", b"{1}")
    (now,) = nights.schedules()
    assert (now.file, now.cron, now.body) == ("/y/a.yaml", "0 3 * * *", b"{1}") and now.since >= first[0].since
    assert nights.unschedule("a") and not nights.unschedule("a") and not nights.schedules()


def test_queueing_runs_are_found_by_id_name_and_time(ledger: Ledger) -> None:
    runs = ledger.queue_runs
    body = QueueRunBody(b"{}", b"\0requests", b"")
    first, second = (runs.keep("rack", 1e9, "virtual", 3, b'{"policy": "jsq"}', body) for _ in range(2))
    other = runs.keep("heat", 2e9, "phone", 5, b"{}", QueueRunBody(b'{"a": 1}', b"", b"x"))
    assert (first, second, other) == ("rack-20010909-014640", "rack-20010909-014640-1", "heat-20330518-033320")
    assert [each.id for each in runs.listed()] == [other, second, first]
    assert [each.id for each in runs.listed("rack", limit=1)] == [second]
    assert [runs.find(each).id for each in (first, "rack", "latest")] == [first, second, other]
    assert runs.body(first) == body and runs.body(other).about == b'{"a": 1}'
    assert runs.find("rack").summary == b'{"policy": "jsq"}'
    for ask in (runs.find, runs.body):
        with pytest.raises(UnknownName, match="no queueing run 'rack-9'"):
            ask("rack-9")
