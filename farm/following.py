"""Follow an experiment to its end, through restarts of the farm's parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from orchestrator.answers.fleet import Snapshot, take
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.model.errors import TransientError

PERIOD_S = 0.5
PATIENCE_S = 60.0
"""The time for which Redis or the ledger may be away before we give up."""


def looks(
    ledger: Ledger,
    inventory: Inventory,
    leases: Leases,
    experiment_id: str | None,
    is_over: Callable[[Snapshot], bool] = lambda snapshot: snapshot.is_over,
    limit_s: float | None = None,
) -> Iterator[Snapshot]:
    """Look twice a second until `is_over`, or for `limit_s`. Rides out short absences of Redis and ledger.

    Raises the transient error where they stay away.
    """
    away_since: float | None = None
    end = float("inf") if limit_s is None else time.monotonic() + limit_s
    while True:
        try:
            snapshot = take(ledger, inventory, leases, experiment_id)
        except TransientError:
            away_since = away_since or time.monotonic()
            if time.monotonic() > min(end, away_since + PATIENCE_S):
                raise
        else:
            away_since = None
            yield snapshot
            if is_over(snapshot) or time.monotonic() >= end:
                return
        time.sleep(PERIOD_S)


def follow(
    ledger: Ledger,
    inventory: Inventory,
    leases: Leases,
    experiment_id: str | None,
    show: Callable[[Snapshot], None],
    is_over: Callable[[Snapshot], bool] = lambda snapshot: snapshot.is_over,
    limit_s: float | None = None,
) -> Snapshot:
    """Show each look; return the last one. Raises as `looks` does."""
    for snapshot in looks(ledger, inventory, leases, experiment_id, is_over, limit_s):
        show(snapshot)
    return snapshot
