"""The ends of experiments, thought about beside the pages that show them: an estimate takes as long as its queue is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.answers import Ending, when_it_ends
from orchestrator.ledger import Ledger
from orchestrator.model.errors import FarmError

from .look import Watch

BELIEVED_S = 5.0
"""The least time for which an estimate is shown before it is thought about again."""
SHARE = 20.0
"""The same as a multiple of all thinking: it takes no more than a twentieth of a core."""
FORGOTTEN_S = 300.0
NOT_YET = Ending(unknown="it is being estimated")


@dataclass(frozen=True)
class _Thought:
    found: Ending = NOT_YET
    at: float = float("-inf")
    """The time by the monotonic clock."""
    took_s: float = 0.0
    """The time of the processor."""


_NO_THOUGHT = _Thought()


class Endings:
    """One estimate at a time."""

    def __init__(self, ledger: Callable[[], Ledger], watch: Watch) -> None:
        self._ledger, self._watch = ledger, watch
        self._known: dict[str, _Thought] = {}
        self._asked: set[str] = set()
        self._thinking = ThreadPoolExecutor(1, "ending")

    def of(self, experiment_id: str) -> Ending:
        """Return the end as it was last thought; a new thought begins where that is old."""
        known = self._known
        thought = known.get(experiment_id, _NO_THOUGHT)
        believed_s = max(BELIEVED_S, SHARE * sum(each.took_s for each in known.values()))
        if time.monotonic() > thought.at + believed_s and experiment_id not in self._asked:
            self._asked.add(experiment_id)
            self._thinking.submit(self._think, experiment_id)
        return thought.found

    def _think(self, experiment_id: str) -> None:
        with suppress(FarmError):
            began = time.thread_time()
            found = when_it_ends(self._ledger(), experiment_id, self._watch.look().devices)
            thought = _Thought(found, time.monotonic(), time.thread_time() - began)
            old = time.monotonic() - FORGOTTEN_S
            known = {each: kept for each, kept in self._known.items() if kept.at > old}
            self._known = {**known, experiment_id: thought}
        self._asked.discard(experiment_id)
