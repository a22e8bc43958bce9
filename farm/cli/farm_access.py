"""How commands reach the farm: its ledger, its inventory, its leases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from orchestrator.config import Settings
from orchestrator.errors import ServiceDown, StableError

if TYPE_CHECKING:
    from orchestrator.inventory import Inventory
    from orchestrator.leases import Leases
    from orchestrator.ledger import ExperimentRow, Ledger
    from orchestrator.model.experiment import Experiment
    from orchestrator.model.waiting import WaitReason

LATEST = "latest"


@contextmanager
def open_ledger(settings: Settings) -> Iterator[Ledger]:
    """The ledger; works whether or not a farm runs. Raises SetupError, ServiceDown."""
    from orchestrator.ledger import Ledger

    with Ledger(settings.ledger) as ledger:
        yield ledger


def connect(settings: Settings) -> Any:
    """A Redis client of the running farm. Raises ServiceDown where none runs."""
    from orchestrator import redis_client

    if not settings.redis_url:
        raise ServiceDown(
            f"no farm runs on {settings.state}",
            remedy=f"start one in another terminal: `farm up --state {settings.state}` (`--virtual 4` without phones)",
        )
    return redis_client.connect(settings)


def open_inventory(settings: Settings) -> Inventory:
    """Devices and hosts of the running farm. Raises ServiceDown where none runs."""
    from orchestrator.inventory import Inventory

    return Inventory(connect(settings))


def reasons_of(settings: Settings) -> dict[str, WaitReason] | None:
    """Why jobs wait, as the scheduler says; None where none does, be it that no farm runs."""
    try:
        return open_inventory(settings).waiting()
    except ServiceDown:
        return None


def open_leases(settings: Settings) -> Leases:
    from orchestrator.leases import Leases

    return Leases(connect(settings))


def labels_of(settings: Settings, experiment: Experiment) -> tuple[int, ...] | None:
    """The right class of each example of an experiment's set; None where it has none.

    Raises ModelFileError where they cannot be read.
    """
    from orchestrator.artifacts import Artifacts
    from orchestrator.labels import read_labels

    dataset = experiment.workload.dataset
    if dataset is None or dataset.labels_sha256 is None:
        return None
    return read_labels(Artifacts(settings.state).path(dataset.labels_sha256))


def find_experiment(ledger: Ledger, name: str) -> ExperimentRow:
    """The experiment of this id, of this name (the newest one), or the newest of all for `latest`.

    Raises StableError where there is none.
    """
    rows = ledger.experiments()
    for row in reversed(rows):
        if name in (row.id, row.experiment.name, LATEST):
            return row
    known = [row.id for row in rows] + [row.experiment.name for row in rows]
    near = get_close_matches(name, known, n=3) or [row.id for row in rows[-3:]]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "farm run experiments/first.yaml"
    raise StableError(f"there is no experiment {name!r} in the ledger", remedy=hint)
