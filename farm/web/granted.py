"""The files that a host may have: those that its attempts under way name, as the ledger says, and no others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.ledger.rows import RunningRow
from orchestrator.model.errors import Unreadable

KEPT = 4096
"""Attempts whose files are remembered: what they name is never changed."""


class Granted:
    """The rights of hosts to files. A hash alone gives nobody a file."""

    def __init__(self, ledger: Callable[[], Ledger], kept: Artifacts) -> None:
        self._ledger, self._kept = ledger, kept
        self._of = lru_cache(KEPT)(self._files)

    def may_have(self, host: str, sha256: str) -> bool:
        """Return whether a job that the host has in hand needs the file. Raises FarmError where the ledger is away."""
        return any(sha256 in self._of(row) for row in self._ledger().running() if row.host == host)

    def _files(self, row: RunningRow) -> set[str]:
        try:
            return self._kept.named_by(self._ledger().assignment(row).job.model_dump_json())
        except Unreadable:
            return set()
