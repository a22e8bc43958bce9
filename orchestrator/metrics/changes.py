"""Change points of nights as metrics: when the figures of a suite last took another level."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from orchestrator.analysis.history import Night as Column
from orchestrator.analysis.history import history
from orchestrator.ledger.database import Database
from orchestrator.ledger.runs.nights import Nights
from orchestrator.nightly.past import MOST_NIGHTS, figures_of, readable_nights

from .family import gauge

log = logging.getLogger(__name__)

Found = dict[str, float]
"""Direction (worse, better) -> Unix time of the first night of the newest level."""


class Changes:
    """The newest settled change point of each suite, in either direction; sought once a night, outside of scrapes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Found]] = {}
        self._search: threading.Thread | None = None

    def follow(self, database: Database, newest: Mapping[str, object]) -> None:
        """`newest`: suite -> what tells its newest night from others. Where that is new, the nights are searched in a
        thread of its own, which takes seconds; until it is done, what was found before is told."""
        self._known = {suite: known for suite, known in dict(self._known).items() if suite in newest}
        due = {suite: of for suite, of in newest.items() if self._known.get(suite, (None,))[0] != of}
        if due and (self._search is None or not self._search.is_alive()):
            self._search = threading.Thread(target=self._seek, args=(database, due), daemon=True)
            self._search.start()

    def families(self) -> Iterator[Metric]:
        """A suite without a change point has no series."""
        text = "The first night of the newest level of a suite's figures, of settled change points."
        samples = (
            ((suite, direction), at)
            for suite, (_, found) in sorted(self._known.items())
            for direction, at in sorted(found.items())
        )
        yield gauge("farm_night_changed_timestamp_seconds", text, ("suite", "direction"), samples)

    def _seek(self, database: Database, due: Mapping[str, object]) -> None:
        for suite, of in due.items():
            try:
                self._known[suite] = (of, _found(database, suite))
            except Exception as e:  # one suite's history stops neither the others' nor the exporter
                log.warning("the change points of suite %s cannot be found: %s", suite, e)
                self._known[suite] = (of, self._known.get(suite, (None, Found()))[1])


def _found(database: Database, suite: str) -> Found:
    newest = Nights(database).of(suite, over=True, limit=MOST_NIGHTS)
    nights = [night for night in readable_nights(newest) if night.is_judged]
    columns = [Column(id=night.night_id, at=night.due_at) for night in nights]
    past = history(suite, columns, [figure for night in nights for figure in figures_of(night)])
    settled = [change for _, change in reversed(past.changes) if change.settled]
    return {"worse" if change.worse else "better": change.at for change in settled}
