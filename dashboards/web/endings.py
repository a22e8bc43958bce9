"""When experiments end, thought about beside the pages that show it: an estimate takes as long as its queue is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from orchestrator.answers import Ending, when_it_ends
from orchestrator.errors import FarmError
from orchestrator.ledger import Ledger

from .look import Watch

BELIEVED_S = 5.0
"""So long an estimate is shown before it is thought about again."""
FORGOTTEN_S = 300.0
NOT_YET = Ending(unknown="it is being estimated")


class Endings:
    """One estimate at a time."""

    def __init__(self, ledger: Callable[[], Ledger], watch: Watch) -> None:
        self._ledger, self._watch = ledger, watch
        self._known: dict[str, tuple[float, Ending]] = {}
        self._asked: set[str] = set()
        self._thinking = ThreadPoolExecutor(1, "ending")

    def of(self, experiment_id: str) -> Ending:
        """As it was last thought; a new thought begins where that is old."""
        at, found = self._known.get(experiment_id, (float("-inf"), NOT_YET))
        if time.monotonic() > at + BELIEVED_S and experiment_id not in self._asked:
            self._asked.add(experiment_id)
            self._thinking.submit(self._think, experiment_id)
        return found

    def _think(self, experiment_id: str) -> None:
        with suppress(FarmError):
            found = when_it_ends(self._ledger(), experiment_id, self._watch.look().devices)
            old = time.monotonic() - FORGOTTEN_S
            known = {each: kept for each, kept in self._known.items() if kept[0] > old}
            self._known = {**known, experiment_id: (time.monotonic(), found)}
        self._asked.discard(experiment_id)
