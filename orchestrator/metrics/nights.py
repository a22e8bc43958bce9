"""Nights of suites as metrics: what the newest one of each found, and when the next one is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import Metric

from orchestrator.ledger.aggregates import nights as stored
from orchestrator.ledger.database import Transaction
from orchestrator.ledger.packed import readable
from orchestrator.nightly import Night, NightRow
from orchestrator.nightly.schedule import following

from .family import gauge

OUTCOMES = ("complete", "partial", "not_run")
SAID = ("worse", "better", "not_confirmed", "unknown", "missing", "same", "unavailable")
MOST_SUITES = 50


class _Version(NamedTuple):
    night_id: str
    version: int


class Nights:
    """The newest night of each suite that is over. Its body is read once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Version, Night | None]] = {}
        self._due: dict[str, float] = {}

    def update(self, connection: Transaction) -> None:
        """Read what is new. A night that cannot be read is left out, and logged."""
        begun: dict[str, float] = {}
        newest: dict[str, _Version] = {}
        for suite, night_id, version, due_at, over in stored.keys(connection):
            begun[suite] = due_at
            if over:
                newest.pop(suite, None)  # the suites whose nights are newest stand last
                newest[suite] = _Version(night_id, version)
        wanted = list(newest.items())[-MOST_SUITES:]
        self._known = {
            suite: known
            if (known := self._known.get(suite)) is not None and known[0] == version
            else (version, _read(connection, version.night_id))
            for suite, version in wanted
        }
        schedules = stored.schedules(connection)
        self._due = {suite: following(cron, max(since, begun.get(suite, 0.0))) for suite, cron, since in schedules}

    @property
    def newest(self) -> dict[str, object]:
        """Suite -> what tells its newest night that is over from others."""
        return {suite: version for suite, (version, _) in self._known.items()}

    def families(self) -> Iterator[Metric]:
        """All families of nights; without a night they have no series."""
        nights = {suite: night for suite, (_, night) in sorted(self._known.items()) if night is not None}
        yield _gauge("due_timestamp_seconds", "When the newest night of a suite was due.",
                     {suite: night.due_at for suite, night in nights.items()})  # fmt: skip
        yield _gauge("next_timestamp_seconds", "When the next night of a suite with a schedule is due.",
                     dict(sorted(self._due.items())))  # fmt: skip
        yield _gauge("regressions_confirmed", "Rows of the newest night that are worse, twice.",
                     {suite: sum(map(_is_regression, night.rows)) for suite, night in nights.items()})  # fmt: skip
        yield _gauge("devices_missing", "Devices that should have taken part in the newest night.",
                     {suite: len(night.missing) for suite, night in nights.items()})  # fmt: skip
        went = (((suite, each), each == night.outcome) for suite, night in nights.items() for each in OUTCOMES)
        yield gauge("farm_night_outcome", "How the newest night went.", ("suite", "outcome"), went)
        counts = {suite: Counter(row.said.replace(" ", "_") for row in night.rows) for suite, night in nights.items()}
        rows = (((suite, each), counts[suite][each]) for suite in nights for each in SAID)
        yield gauge("farm_night_rows", "Rows of the newest night, by verdict.", ("suite", "verdict"), rows)


def _read(connection: Transaction, night_id: str) -> Night | None:
    return readable(f"night {night_id}", lambda: Night.model_validate_json(stored.body(connection, night_id)))


def _gauge(name: str, text: str, values: Mapping[str, float]) -> Metric:
    return gauge(f"farm_night_{name}", text, "suite", values.items())


def _is_regression(row: NightRow) -> bool:
    return row.said == "worse" and row.confirmed is True
